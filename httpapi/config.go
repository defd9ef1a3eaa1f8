package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/millrace-jobs/millrace/scheduler"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/tracker/processes"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// DefaultAddr is where the server listens if it is not told.
const DefaultAddr = "127.0.0.1:15680"

// Config is what a Server is made of. A function that is nil answers as if what is behind it were out of reach.
type Config struct {
	Addr    string   // where Run listens if it is given no listener; loopback only; default DefaultAddr
	Hosts   []string // host names that requests may carry, beside localhost, 127.0.0.1 and [::1]
	Version string   // of this build
	VHost   string   // the virtual host that this sidecar serves

	Entries *tracker.Entries // needed
	View    *view.View       // needed

	Processes *processes.Processes

	Leader  func() scheduler.Status                                                     // this sidecar's part in leadership
	Ask     func(ctx context.Context, c wire.Command) wire.Reply                        // sends a command to whoever leads
	Publish func(ctx context.Context, m wire.Message) error                             // returns once the broker has confirmed
	Fetch   func(ctx context.Context, stream string, offset int64) (wire.Record, error) // reads one record of a stream
	Broker  func() (connected bool, product, version string)                            // what is known of the broker
	Now     func() time.Time                                                            // default time.Now
	Log     *slog.Logger                                                                // default: none
	Grace   time.Duration                                                               // how long Run lets requests end; default 5 s
}

var errUnwired = errors.New("httpapi: this server was started without it")

func (c Config) withDefaults() Config {
	if c.Addr == "" {
		c.Addr = DefaultAddr
	}
	if c.Leader == nil {
		c.Leader = func() scheduler.Status { return scheduler.Status{Epoch: -1} }
	}
	if c.Ask == nil {
		c.Ask = func(context.Context, wire.Command) wire.Reply { return noLeader }
	}
	if c.Publish == nil {
		c.Publish = func(context.Context, wire.Message) error { return errUnwired }
	}
	if c.Fetch == nil {
		c.Fetch = func(context.Context, string, int64) (wire.Record, error) { return wire.Record{}, errUnwired }
	}
	if c.Broker == nil {
		c.Broker = func() (bool, string, string) { return false, "", "" }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Grace == 0 {
		c.Grace = 5 * time.Second
	}
	return c
}

var noLeader = wire.Reply{Status: wire.StatusUnavailable, Error: codeNoLeader, Reason: "no sidecar leads now: nothing was done, try again"}
