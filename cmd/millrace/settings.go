package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/flags"
	"github.com/millrace-jobs/millrace/internal/connect"
	"github.com/millrace-jobs/millrace/internal/hosts"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/view"
)

// sidecarSettings are all settings of a sidecar.
type sidecarSettings struct {
	flags.Broker `group:"Connection flags:"`
	flags.API
	securitySettings
	sideSettings
	supervisorSettings
	timelineSettings
	messageSettings

	StreamURL    string   `name:"stream-url" env:"MILLRACE_STREAM_URL" type:"urls" placeholder:"URL" help:"RabbitMQ's stream listener: rabbitmq-stream://host:port. Default: those that the management API names, if any. Several hosts as in --amqp-url."`
	StateDir     string   `name:"state-dir" env:"MILLRACE_STATE_DIR" placeholder:"DIR" help:"Where to keep the view between runs. It is a cache: losing it loses nothing. Default: a temporary folder, which is deleted when the sidecar stops."`
	Identity     string   `name:"identity" env:"MILLRACE_IDENTITY" placeholder:"NAME" help:"This sidecar's name in the journal and in logs. Default: host:pid."`
	LogLevel     string   `name:"log-level" env:"MILLRACE_LOG_LEVEL" enum:"debug,info,warn,error" default:"info" help:"debug, info, warn or error."`
	LogFormat    string   `name:"log-format" env:"MILLRACE_LOG_FORMAT" enum:"text,json" default:"text" help:"text or json."`
	OnGap        string   `name:"on-gap" env:"MILLRACE_ON_GAP" enum:"hold,fire,discard" default:"hold" help:"What to do with due jobs when the journal has lost records, so that some may have run already: hold, fire or discard."`
	TrustedUsers []string `name:"trusted-users" env:"MILLRACE_TRUSTED_USERS" placeholder:"USER" help:"Broker users besides Millrace's own whose journal records count."`

	deadSettings

	QueueSLO   map[string]time.Duration `name:"queue-slo" env:"MILLRACE_QUEUE_SLO" mapsep:"," placeholder:"QUEUE=DURATION,…" help:"How long a job may wait in a queue before this needs attention: critical=5s,*=10m. Other queues: 10m; *=0s turns it off."`
	MaxQueues  int                      `name:"max-queues" env:"MILLRACE_MAX_QUEUES" default:"1000" help:"How many job queues Millrace makes for names that producers use."`
	QueueType  string                   `name:"queue-type" env:"MILLRACE_QUEUE_TYPE" enum:"auto,classic,quorum" default:"auto" help:"The type of new job queues: auto, classic or quorum. auto makes classic queues, and quorum queues where they are the virtual host's default and the broker is RabbitMQ 4.3 or later. Existing queues are used unchanged."`
	SingleNode bool                     `name:"single-node" env:"MILLRACE_SINGLE_NODE" help:"The broker is one node and its job queues are classic queues. Only needed if no management API says so: without it, jobs in flight when a sidecar dies are delivered twice."`

	private bool // the data of the broker are beside the view, and its ports are any free ones
}

// AfterApply checks the settings. It gives a stream URL without a user or virtual host those of the
// AMQP URL.
func (s *sidecarSettings) AfterApply() error {
	_, timelines := s.timelines()
	_, messages := s.deliverTo()
	if err := errors.Join(s.Broker.AfterApply(), s.check(), s.checkDead(), timelines, messages); err != nil || s.StreamURL == "" {
		return err
	}
	amqp := s.URL()
	u, err := flags.ParseURL("--stream-url", s.StreamURL, "rabbitmq-stream://host:port or rabbitmq-stream+tls://host:port", "rabbitmq-stream", "rabbitmq-stream+tls")
	if err != nil {
		return err
	}
	if u.User == nil {
		u.User = connect.Userinfo(amqp)
	}
	if strings.TrimPrefix(u.EscapedPath(), "/") == "" {
		vhost := connect.VHost(amqp)
		u.Path, u.RawPath = "/"+vhost, "/"+url.PathEscape(vhost)
	}
	s.StreamURL = u.String()
	return nil
}

// Connect returns the broker that the settings name.
func (s *sidecarSettings) Connect(order *hosts.Order, log *slog.Logger) connect.Broker {
	b := s.Broker.Connect(order, log)
	b.StreamURL = s.StreamURL
	return b
}

// apiAddress returns the address of the API as users know it.
func (s *sidecarSettings) apiAddress(l net.Listener) string {
	return apiclient.At(s.scheme(), auth.AddrOf(l), s.HTTPPrefix).String()
}

// apiClient returns a client of the API of a sidecar with these settings.
func (s *sidecarSettings) apiClient(in *flags.SignIn) *apiclient.Client {
	return in.APIClient(apiclient.At(s.scheme(), s.HTTPAddr, s.HTTPPrefix), &s.AMQP)
}

// brokerIdentity names the broker and the virtual host, so that a view of another broker is never
// used. The order of the hosts does not matter.
func (s *sidecarSettings) brokerIdentity() string {
	u := s.URL()
	if s.private {
		return "private/" + url.PathEscape(connect.VHost(u))
	}
	addresses := u.Addresses(connect.AMQPPorts[u.Scheme])
	slices.Sort(addresses)
	return strings.ToLower(strings.Join(addresses, ",")) + "/" + url.PathEscape(connect.VHost(u))
}

// vhost returns the virtual host that this sidecar serves.
func (s *sidecarSettings) vhost() string { return connect.VHost(s.URL()) }

// user returns the user whose name the broker puts on what this sidecar publishes.
func (s *sidecarSettings) user() string { return connect.User(s.URL()) }

// openView opens the store of the views, in a folder of its own. What cannot be used there is
// deleted.
func (s *sidecarSettings) openView(log *slog.Logger) (*view.Store, error) {
	c := view.Config{Identity: s.brokerIdentity(), Schema: tracker.Schema, Log: log}
	if s.StateDir == "" {
		return view.OpenTemporary(c)
	}
	c.Dir = filepath.Join(s.StateDir, "view")
	return view.Open(c)
}

func (s *sidecarSettings) identity() string {
	if s.Identity != "" {
		return s.Identity
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

// everyQueue stands for all queues that have no limit of their own.
const everyQueue = "*"

// defaultSLO is the limit of a queue for which --queue-slo says nothing.
const defaultSLO = 10 * time.Minute

// queueSLO returns how long a job may wait in a queue; 0 means without limit.
func (s *sidecarSettings) queueSLO(queue string) time.Duration {
	for _, name := range []string{queue, everyQueue} {
		if limit, given := s.QueueSLO[name]; given {
			return limit
		}
	}
	return defaultSLO
}

// masked returns the settings as they may be shown.
func (s sidecarSettings) masked() sidecarSettings {
	s.AMQPURL, s.ManagementURL, s.StreamURL = broker.MaskURL(s.AMQPURL), broker.MaskURL(s.ManagementURL), broker.MaskURL(s.StreamURL)
	if s.AuthHeaderKey != "" {
		s.AuthHeaderKey = "***"
	}
	return s
}
