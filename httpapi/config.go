package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"regexp"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/scheduler"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/tracker/feed"
	"github.com/millrace-jobs/millrace/tracker/metrics"
	"github.com/millrace-jobs/millrace/tracker/processes"
	"github.com/millrace-jobs/millrace/tracker/queues"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// DefaultAddr is where the server listens if it is not told.
const DefaultAddr = "127.0.0.1:15680"

// Config is what a Server is made of. A function that is nil answers as if what is behind it were out of reach.
type Config struct {
	Addr    string   // where Run listens if it is given no listener, and what it listens on if it is; default DefaultAddr
	Hosts   []string // host names that requests may carry, beside localhost, 127.0.0.1, [::1], that of Addr and those of the certificate
	Prefix  string   // of all paths but the probes', such as "/millrace"; default: none
	Version string   // of this build
	VHost   string   // the virtual host that this sidecar serves

	Environment string        // what its users call the place, such as "staging"; default: nothing is said
	DeadMax     int           // how many dead jobs are kept; 0: it is not said
	DeadAge     time.Duration // how long dead jobs are kept; 0: it is not said
	RunAge      time.Duration // how long workers' reports of single jobs are kept; 0: it is not said

	Entries *tracker.Entries // needed
	View    *view.View       // needed

	Processes *processes.Processes
	Metrics   *metrics.Metrics
	Queues    *queues.Watch
	Feed      *feed.Feed // what happens to jobs, for those who watch

	QueueSLO func(queue string) time.Duration                                  // how long a job may wait in a queue; 0: as long as it likes
	OnBroker func(ctx context.Context, do func(conn *broker.Conn) error) error // lends a connection to the broker

	OnQueues func(ctx context.Context, do func(conn *broker.Conn) error) error // the same for what is done often, such as leases; default: OnBroker

	PauseQueue func(ctx context.Context, queue string, paused bool) error // has the broker itself pause a queue, where it can; default: it cannot

	Leader  func() scheduler.Status                                                     // this sidecar's part in leadership
	Ask     func(ctx context.Context, c wire.Command) wire.Reply                        // sends a command to whoever leads
	Publish func(ctx context.Context, m wire.Message) error                             // returns once the broker has confirmed
	Fetch   func(ctx context.Context, stream string, offset int64) (wire.Record, error) // reads one record of a stream
	Broker  func() (connected bool, product, version string)                            // what is known of the broker

	Auth        string                                                              // auth.ModeBroker, ModeToken or ModeNone; default: broker, or none where there is no management API and only this machine can connect
	HasUsers    func() auth.HasUsers                                                // whether there is a management API to ask
	Identify    func(ctx context.Context, name, password string) (auth.User, error) // asks it; auth.ErrWrongPassword, auth.ErrNoTag, or it is out of reach
	TokensFile  string                                                              // for auth.ModeToken
	SessionKey  []byte                                                              // a secret of which sessions' keys are made; default: a new one
	ReadOnly    bool                                                                // nothing can be changed through this server
	HideArgs    *regexp.Regexp                                                      // members whose names match are shown only to those who may act; see ParseHideArgs; default: none are hidden
	TLS         *tls.Config                                                         // default: no TLS
	BehindProxy bool                                                                // a proxy does TLS, and says in X-Forwarded-For and -Proto who asks
	CORSOrigins []string                                                            // origins whose pages may read and act, such as "https://ops.example"

	Now   func() time.Time // default time.Now
	Log   *slog.Logger     // default: none
	Grace time.Duration    // how long Run lets requests end; default 5 s
}

var errUnwired = errors.New("httpapi: this server was started without it")

func (c Config) withDefaults() Config {
	if c.Addr == "" {
		c.Addr = DefaultAddr
	}
	if c.HasUsers == nil {
		c.HasUsers = func() auth.HasUsers { return auth.UsersAbsent }
	}
	if c.Identify == nil {
		c.Identify = func(context.Context, string, string) (auth.User, error) { return auth.User{}, errUnwired }
	}
	if c.Leader == nil {
		c.Leader = func() scheduler.Status { return scheduler.Status{Epoch: -1} }
	}
	if c.Ask == nil {
		c.Ask = func(context.Context, wire.Command) wire.Reply { return problem.NoLeader }
	}
	if c.Publish == nil {
		c.Publish = func(context.Context, wire.Message) error { return errUnwired }
	}
	if c.Fetch == nil {
		c.Fetch = func(context.Context, string, int64) (wire.Record, error) { return wire.Record{}, errUnwired }
	}
	if c.OnBroker == nil {
		c.OnBroker = func(context.Context, func(*broker.Conn) error) error { return errUnwired }
	}
	if c.OnQueues == nil {
		c.OnQueues = c.OnBroker
	}
	if c.PauseQueue == nil {
		c.PauseQueue = func(context.Context, string, bool) error { return nil }
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

func (c *Config) exposure() auth.Exposure {
	return auth.Exposure{Auth: c.Auth, TLS: c.TLS != nil, BehindProxy: c.BehindProxy}
}
