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

// DefaultAddr is where the server listens by default.
const DefaultAddr = "127.0.0.1:15680"

// Config configures a Server. A function that is nil answers as if what it reaches were out of
// reach. Only New sees all of it: each group of handlers gets the few members that it needs.
type Config struct {
	Addr    string   // where Run listens, or what its listener listens on; default: DefaultAddr
	Hosts   []string // more host names that requests may carry; see auth.NewHosts
	Prefix  string   // of all paths except the probes', such as "/millrace"; default: none
	Version string   // of this build
	VHost   string   // the virtual host that this sidecar serves

	Environment string        // a label for users, such as "staging"; default: none
	DeadMax     int           // how many dead jobs are kept; 0: not shown
	DeadAge     time.Duration // how long dead jobs are kept; 0: not shown
	RunAge      time.Duration // how long workers' reports of single jobs are kept; 0: not shown

	Entries *tracker.Entries // required
	View    *view.View       // required

	Processes *processes.Processes
	Metrics   *metrics.Metrics
	Queues    *queues.Watch
	Feed      *feed.Feed // what happens to jobs, for viewers

	// QueueSLO returns how long a job may wait in a queue; 0: for any time.
	QueueSLO func(queue string) time.Duration
	// OnBroker lends a connection to the broker. OnQueues is for what is done often, such as leases;
	// it defaults to OnBroker.
	OnBroker, OnQueues func(ctx context.Context, do func(conn *broker.Conn) error) error
	// PauseQueue makes the broker itself pause a queue, if it can; by default it cannot.
	PauseQueue func(ctx context.Context, queue string, paused bool) error
	// Leader returns this sidecar's part in leadership.
	Leader func() scheduler.Status
	// Ask sends a command to the sidecar that leads.
	Ask func(ctx context.Context, c wire.Command) wire.Reply
	// Publish returns once the broker has confirmed.
	Publish func(ctx context.Context, m wire.Message) error
	// Fetch reads one record of a stream.
	Fetch func(ctx context.Context, stream string, offset int64) (wire.Record, error)
	// Broker returns what is known of the broker.
	Broker func() (connected bool, product, version string)

	// Auth is auth.ModeBroker, ModeToken or ModeNone. For the default see auth.Authenticator.Mode.
	Auth string
	// HasUsers says whether there is a management API to ask.
	HasUsers func() auth.HasUsers
	// Identify asks it. It returns auth.ErrWrongPassword, auth.ErrNoTag, or why it cannot be asked.
	Identify    func(ctx context.Context, name, password string) (auth.User, error)
	TokensFile  string         // for auth.ModeToken
	SessionKey  []byte         // a secret from which sessions' keys are derived; default: a new one
	ReadOnly    bool           // nothing can be changed through this server
	HideArgs    *regexp.Regexp // names of members that only users who may act see; default: none
	TLS         *tls.Config    // default: no TLS
	BehindProxy bool           // a proxy does TLS, and sets X-Forwarded-For and -Proto
	CORSOrigins []string       // of pages that may use the API, such as "https://ops.example"

	Now   func() time.Time // default: time.Now
	Log   *slog.Logger     // default: none
	Grace time.Duration    // how long Run waits for requests to end; default: 5 s
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
