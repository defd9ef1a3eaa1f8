package httpapi

import (
	"cmp"
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

	Entries *tracker.Reader // required
	View    *view.View      // required

	Processes *processes.Processes
	Metrics   *metrics.Reader
	Queues    *queues.Watch
	Feed      *feed.Feed // what happens to jobs, for viewers

	// QueueSLO returns how long a job may wait in a queue; 0: for any time.
	QueueSLO func(queue string) time.Duration
	// They lend a connection to the broker. OnQueues is for frequent use; it defaults to OnBroker.
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

	// Auth is auth.ModeBroker, ModeToken, ModeHeader or ModeNone. For the default see
	// auth.Authenticator.Mode.
	Auth string
	// HasUsers says whether there is a management API to ask.
	HasUsers func() auth.HasUsers
	// Identify asks it. It returns auth.ErrWrongPassword, auth.ErrNoTag, or why it cannot be asked.
	Identify    func(ctx context.Context, name, password string) (auth.User, error)
	TokensFile  string         // for auth.ModeToken
	HeaderKey   []byte         // for auth.ModeHeader: what a proxy signs with
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
	c.Addr = cmp.Or(c.Addr, DefaultAddr)
	c.Grace = cmp.Or(c.Grace, 5*time.Second)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	unlessSet(&c.Now, c.Now == nil, time.Now)
	unlessSet(&c.HasUsers, c.HasUsers == nil, func() auth.HasUsers { return auth.UsersAbsent })
	unlessSet(&c.Identify, c.Identify == nil, func(context.Context, string, string) (auth.User, error) { return auth.User{}, errUnwired })
	unlessSet(&c.Leader, c.Leader == nil, func() scheduler.Status { return scheduler.Status{Epoch: -1} })
	unlessSet(&c.Ask, c.Ask == nil, func(context.Context, wire.Command) wire.Reply { return problem.NoLeader })
	unlessSet(&c.Publish, c.Publish == nil, func(context.Context, wire.Message) error { return errUnwired })
	unlessSet(&c.Fetch, c.Fetch == nil, func(context.Context, string, int64) (wire.Record, error) { return wire.Record{}, errUnwired })
	unlessSet(&c.OnBroker, c.OnBroker == nil, func(context.Context, func(*broker.Conn) error) error { return errUnwired })
	unlessSet(&c.OnQueues, c.OnQueues == nil, c.OnBroker)
	unlessSet(&c.PauseQueue, c.PauseQueue == nil, func(context.Context, string, bool) error { return nil })
	unlessSet(&c.Broker, c.Broker == nil, func() (bool, string, string) { return false, "", "" })
	return c
}

// unlessSet sets a function that is missing.
func unlessSet[F any](f *F, missing bool, otherwise F) {
	if missing {
		*f = otherwise
	}
}
