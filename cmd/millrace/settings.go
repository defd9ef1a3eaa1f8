package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/view"
)

// amqpSettings say where the broker is, and as whom.
type amqpSettings struct {
	AMQPURL          string `name:"amqp-url" env:"MILLRACE_AMQP_URL" default:"amqp://guest:guest@localhost:5672/" placeholder:"URL" help:"The broker and virtual host: amqp://user:password@host:port/vhost, or amqps:// (${default})."`
	AMQPPassword     string `name:"amqp-password" env:"MILLRACE_AMQP_PASSWORD" placeholder:"PASSWORD" help:"The password, as it is, instead of the URL's: in the environment, since everybody on a machine sees its command lines."`
	AMQPPasswordFile string `name:"amqp-password-file" env:"MILLRACE_AMQP_PASSWORD_FILE" placeholder:"FILE" help:"Read the password from this file instead of the URL."`
}

// brokerSettings say where the broker and its management API are.
type brokerSettings struct {
	amqpSettings

	ManagementURL string `name:"management-url" env:"MILLRACE_MANAGEMENT_URL" placeholder:"URL" help:"The broker's management API: http://host:port. Default: port 15672 of the broker's host, if it answers."`
}

// sidecarSettings are all settings of a sidecar.
type sidecarSettings struct {
	brokerSettings
	apiSettings
	securitySettings
	sideSettings
	timelineSettings

	StreamURL    string                   `name:"stream-url" env:"MILLRACE_STREAM_URL" placeholder:"URL" help:"RabbitMQ's stream listener: rabbitmq-stream://host:port. Default: the one that the management API names, if any."`
	StateDir     string                   `name:"state-dir" env:"MILLRACE_STATE_DIR" placeholder:"DIR" help:"Where to keep the view between runs. It is a cache: losing it loses nothing. Default: a temporary folder, which goes when it stops."`
	Identity     string                   `name:"identity" env:"MILLRACE_IDENTITY" placeholder:"NAME" help:"This sidecar's name in the journal and in logs. Default: host:pid."`
	LogLevel     string                   `name:"log-level" env:"MILLRACE_LOG_LEVEL" enum:"debug,info,warn,error" default:"info" help:"debug, info, warn or error."`
	LogFormat    string                   `name:"log-format" env:"MILLRACE_LOG_FORMAT" enum:"text,json" default:"text" help:"text or json."`
	OnGap        string                   `name:"on-gap" env:"MILLRACE_ON_GAP" enum:"hold,fire,discard" default:"hold" help:"What to do with due jobs when the journal has lost records, so that some may have run already: hold, fire or discard."`
	TrustedUsers []string                 `name:"trusted-users" env:"MILLRACE_TRUSTED_USERS" placeholder:"USER" help:"Broker users beside Millrace's own whose journal records are obeyed."`
	DeadMax      int                      `name:"dead-max" env:"MILLRACE_DEAD_MAX" default:"1000000" help:"How many dead jobs are kept, the newest; a tenth as many more of those that queues dropped."`
	DeadAge      string                   `name:"dead-age" env:"MILLRACE_DEAD_AGE" default:"180d" placeholder:"DURATION" help:"How long dead jobs are kept: 12h, 30d (${default})."`
	QueueSLO     map[string]time.Duration `name:"queue-slo" env:"MILLRACE_QUEUE_SLO" mapsep:"," placeholder:"QUEUE=DURATION,…" help:"How long a job may wait in a queue before that is pointed out: critical=5s,*=10m."`
	MaxQueues    int                      `name:"max-queues" env:"MILLRACE_MAX_QUEUES" default:"1000" help:"How many job queues are made for names that producers use."`
}

// apiSettings say where the REST API is.
type apiSettings struct {
	HTTPAddr string `name:"http-addr" env:"MILLRACE_HTTP_ADDR" default:"127.0.0.1:15680" placeholder:"HOST:PORT" help:"Where the sidecar's REST API is (${default})."`
}

// AfterApply fills in what kong cannot: the password, and the URL's checks.
func (s *amqpSettings) AfterApply() error {
	u, err := parseAMQPURL(s.AMQPURL)
	if err != nil {
		return err
	}
	password, given, err := s.password()
	if err != nil || !given {
		return err
	}
	u.User = url.UserPassword(userOf(u), password)
	s.AMQPURL, s.AMQPPassword = u.String(), "" // what shows settings masks URLs
	return nil
}

// password is the one that is given beside the URL.
func (s *amqpSettings) password() (password string, given bool, err error) {
	switch {
	case s.AMQPPasswordFile == "":
		return s.AMQPPassword, s.AMQPPassword != "", nil
	case s.AMQPPassword != "":
		return "", false, errors.New("--amqp-password does not go with --amqp-password-file: which of them is it?")
	}
	if password, err = readSecret(s.AMQPPasswordFile); err != nil {
		return "", false, fmt.Errorf("--amqp-password-file: %w", err)
	}
	return password, true, nil
}

// readSecret reads a file with one line.
func readSecret(path string) (string, error) {
	secret, err := os.ReadFile(path)
	return strings.TrimRight(string(secret), "\r\n"), err
}

// AfterApply gives a management URL without a user that of the AMQP URL.
func (s *brokerSettings) AfterApply() error {
	err := s.amqpSettings.AfterApply()
	if err == nil && s.ManagementURL != "" {
		s.ManagementURL, err = withCredentials(s.ManagementURL, s.amqp())
	}
	return err
}

// AfterApply gives a stream URL without a user or virtual host those of the AMQP URL.
func (s *sidecarSettings) AfterApply() error {
	if err := errors.Join(s.brokerSettings.AfterApply(), s.check(), s.checkDead(), s.checkTimelines()); err != nil || s.StreamURL == "" {
		return err
	}
	amqp := s.amqp()
	u, err := url.Parse(s.StreamURL)
	if err != nil || u.Scheme != "rabbitmq-stream" && u.Scheme != "rabbitmq-stream+tls" || u.Hostname() == "" {
		return errors.New("--stream-url: must be rabbitmq-stream://host:port or rabbitmq-stream+tls://host:port")
	}
	if u.User == nil {
		u.User = url.UserPassword(userOf(amqp), passwordOf(amqp))
	}
	address := *u
	address.Path, address.RawPath = "", ""
	vhost := strings.TrimPrefix(u.EscapedPath(), "/")
	if vhost == "" {
		vhost = url.PathEscape(vhostOf(amqp))
	}
	s.StreamURL = address.String() + "/" + vhost
	return nil
}

// parseAMQPURL never quotes the URL in its error: it may hold a password.
func parseAMQPURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "amqp" && u.Scheme != "amqps" || u.Hostname() == "" {
		return nil, errors.New("--amqp-url: must be amqp://user:password@host:port/vhost, with reserved characters percent-encoded")
	}
	return u, nil
}

// withCredentials gives a management URL without a user those of the AMQP URL.
func withCredentials(raw string, amqp *url.URL) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return "", errors.New("--management-url: must be http://host:port or https://host:port")
	}
	if u.User == nil {
		u.User = url.UserPassword(userOf(amqp), passwordOf(amqp))
	}
	return u.String(), nil
}

// amqp is the AMQP URL, which AfterApply has checked.
func (s *amqpSettings) amqp() *url.URL {
	u, err := parseAMQPURL(s.AMQPURL)
	if err != nil {
		return &url.URL{}
	}
	return u
}

// managementURL is the one that is set, or where the management API is unless somebody moved it.
func (s *brokerSettings) managementURL() string {
	if s.ManagementURL != "" {
		return s.ManagementURL
	}
	amqp := s.amqp()
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(amqp.Hostname(), "15672"), User: url.UserPassword(userOf(amqp), passwordOf(amqp))}
	if amqp.Scheme == "amqps" {
		u.Scheme, u.Host = "https", net.JoinHostPort(amqp.Hostname(), "15671")
	}
	return u.String()
}

// brokerIdentity names broker and virtual host, so that a view of another one is never taken for ours.
func (s *brokerSettings) brokerIdentity() string {
	u := s.amqp()
	port := u.Port()
	if port == "" {
		port = map[string]string{"amqp": "5672", "amqps": "5671"}[u.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port) + "/" + url.PathEscape(vhostOf(u))
}

// vhost is the virtual host that this sidecar serves.
func (s *brokerSettings) vhost() string { return vhostOf(s.amqp()) }

// user is whom the broker will vouch for on what we publish.
func (s *brokerSettings) user() string { return userOf(s.amqp()) }

func vhostOf(u *url.URL) string {
	if name := strings.TrimPrefix(u.Path, "/"); name != "" {
		return name
	}
	return "/"
}

// amqp091-go's defaults, and both brokers'.
func userOf(u *url.URL) string {
	if name := u.User.Username(); name != "" {
		return name
	}
	return "guest"
}

func passwordOf(u *url.URL) string {
	if password, set := u.User.Password(); set {
		return password
	}
	return "guest"
}

// openView opens the view's store, in a folder of its own: what cannot be used there is deleted.
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

// masked is the settings as they may be shown.
func (s sidecarSettings) masked() sidecarSettings {
	s.AMQPURL, s.ManagementURL, s.StreamURL = broker.MaskURL(s.AMQPURL), broker.MaskURL(s.ManagementURL), broker.MaskURL(s.StreamURL)
	return s
}
