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
	"strconv"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/hosts"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/view"
)

// amqpSettings say where the broker is, and as whom.
type amqpSettings struct {
	AMQPURL          string `name:"amqp-url" env:"MILLRACE_AMQP_URL" type:"urls" default:"amqp://guest:guest@localhost:5672/" placeholder:"URL" help:"The broker and virtual host: amqp://user:password@host:port/vhost, or amqps:// (${default}). Several hosts of one broker: host:port,host:port, or the flag again."`
	AMQPPassword     string `name:"amqp-password" env:"MILLRACE_AMQP_PASSWORD" placeholder:"PASSWORD" help:"The password, unencoded, instead of the one in the URL. Set it in the environment: every user of a machine can see its command lines."`
	AMQPPasswordFile string `name:"amqp-password-file" env:"MILLRACE_AMQP_PASSWORD_FILE" placeholder:"FILE" help:"Read the password from this file instead of the URL."`
}

// brokerSettings say where the broker and its management API are.
type brokerSettings struct {
	amqpSettings

	ManagementURL string `name:"management-url" env:"MILLRACE_MANAGEMENT_URL" type:"urls" placeholder:"URL" help:"The broker's management API: http://host:port. Default: the broker's hosts at the port of --amqp-url plus 10000 (5672: 15672), if this broker's API answers there. Several hosts as in --amqp-url."`

	private bool // the broker's data lie beside the view, and its ports are whichever are free
}

// sidecarSettings are all settings of a sidecar.
type sidecarSettings struct {
	brokerSettings `group:"Connection flags:"`
	apiSettings
	securitySettings
	sideSettings
	timelineSettings

	StreamURL    string                   `name:"stream-url" env:"MILLRACE_STREAM_URL" type:"urls" placeholder:"URL" help:"RabbitMQ's stream listener: rabbitmq-stream://host:port. Default: those that the management API names, if any. Several hosts as in --amqp-url."`
	StateDir     string                   `name:"state-dir" env:"MILLRACE_STATE_DIR" placeholder:"DIR" help:"Where to keep the view between runs. It is a cache: losing it loses nothing. Default: a temporary folder, which is deleted when the sidecar stops."`
	Identity     string                   `name:"identity" env:"MILLRACE_IDENTITY" placeholder:"NAME" help:"This sidecar's name in the journal and in logs. Default: host:pid."`
	LogLevel     string                   `name:"log-level" env:"MILLRACE_LOG_LEVEL" enum:"debug,info,warn,error" default:"info" help:"debug, info, warn or error."`
	LogFormat    string                   `name:"log-format" env:"MILLRACE_LOG_FORMAT" enum:"text,json" default:"text" help:"text or json."`
	OnGap        string                   `name:"on-gap" env:"MILLRACE_ON_GAP" enum:"hold,fire,discard" default:"hold" help:"What to do with due jobs when the journal has lost records, so that some may have run already: hold, fire or discard."`
	TrustedUsers []string                 `name:"trusted-users" env:"MILLRACE_TRUSTED_USERS" placeholder:"USER" help:"Broker users besides Millrace's own whose journal records count."`
	DeadMax      int                      `name:"dead-max" env:"MILLRACE_DEAD_MAX" default:"1000000" help:"How many dead jobs are kept, the newest; in addition, a tenth as many that queues dropped."`
	DeadAge      string                   `name:"dead-age" env:"MILLRACE_DEAD_AGE" default:"180d" placeholder:"DURATION" help:"How long dead jobs are kept: 12h, 30d (${default})."`
	QueueSLO     map[string]time.Duration `name:"queue-slo" env:"MILLRACE_QUEUE_SLO" mapsep:"," placeholder:"QUEUE=DURATION,…" help:"How long a job may wait in a queue before this needs attention: critical=5s,*=10m. Other queues: 10m; *=0s turns it off."`
	MaxQueues    int                      `name:"max-queues" env:"MILLRACE_MAX_QUEUES" default:"1000" help:"How many job queues Millrace makes for names that producers use."`
	QueueType    string                   `name:"queue-type" env:"MILLRACE_QUEUE_TYPE" enum:"auto,classic,quorum" default:"auto" help:"The type of new job queues: auto, classic or quorum. auto makes classic queues, and quorum queues where they are the virtual host's default and the broker is RabbitMQ 4.3 or later. Existing queues are used unchanged."`
	SingleNode   bool                     `name:"single-node" env:"MILLRACE_SINGLE_NODE" help:"The broker is one node and its job queues are classic queues. Only needed if no management API says so: without it, jobs in flight when a sidecar dies are delivered twice."`
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
	if err != nil {
		return err
	}
	if given {
		u.User = url.UserPassword(userOf(u), password)
	}
	s.AMQPURL, s.AMQPPassword = u.String(), "" // what shows settings masks URLs
	return nil
}

// password is the one that is given beside the URL.
func (s *amqpSettings) password() (password string, given bool, err error) {
	switch {
	case s.AMQPPasswordFile == "":
		return s.AMQPPassword, s.AMQPPassword != "", nil
	case s.AMQPPassword != "":
		return "", false, errors.New("--amqp-password and --amqp-password-file cannot be used together")
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
	u, err := parseURL("--stream-url", s.StreamURL, "rabbitmq-stream://host:port or rabbitmq-stream+tls://host:port", "rabbitmq-stream", "rabbitmq-stream+tls")
	if err != nil {
		return err
	}
	if u.User == nil {
		u.User = url.UserPassword(userOf(amqp), passwordOf(amqp))
	}
	if strings.TrimPrefix(u.EscapedPath(), "/") == "" {
		vhost := vhostOf(amqp)
		u.Path, u.RawPath = "/"+vhost, "/"+url.PathEscape(vhost)
	}
	s.StreamURL = u.String()
	return nil
}

// parseURL reads a URL of one host or several. It never quotes the URL in its error: it may hold a
// password.
func parseURL(flag, raw, form string, schemes ...string) (hosts.URL, error) {
	u, err := hosts.Parse(raw)
	switch {
	case errors.Is(err, hosts.ErrMalformed) || err == nil && !slices.Contains(schemes, u.Scheme):
		return u, fmt.Errorf("%s: must be %s", flag, form)
	case err != nil:
		return u, fmt.Errorf("%s: %w", flag, err)
	}
	return u, nil
}

func parseAMQPURL(raw string) (hosts.URL, error) {
	return parseURL("--amqp-url", raw, "amqp://user:password@host:port/vhost, with reserved characters percent-encoded", "amqp", "amqps")
}

// withCredentials gives a management URL without a user those of the AMQP URL.
func withCredentials(raw string, amqp hosts.URL) (string, error) {
	u, err := parseURL("--management-url", raw, "http://host:port or https://host:port", "http", "https")
	if err != nil {
		return "", err
	}
	if u.User == nil {
		u.User = url.UserPassword(userOf(amqp), passwordOf(amqp))
	}
	return u.String(), nil
}

// amqp is the AMQP URL, which AfterApply has checked.
func (s *amqpSettings) amqp() hosts.URL {
	u, err := parseAMQPURL(s.AMQPURL)
	if err != nil {
		return hosts.URL{}
	}
	return u
}

// managementURL is the one that is set, or where the management API is by default: as far from the AMQP
// port as with the brokers' own ports, which is how most who run two brokers on a host choose them.
func (s *brokerSettings) managementURL() string {
	if s.ManagementURL != "" {
		return s.ManagementURL
	}
	amqp := s.amqp()
	u := hosts.URL{URL: url.URL{Scheme: "http", User: url.UserPassword(userOf(amqp), passwordOf(amqp))}}
	if amqp.Scheme == "amqps" {
		u.Scheme = "https"
	}
	for _, address := range amqp.Addresses(amqpPorts[amqp.Scheme]) {
		host, port, _ := net.SplitHostPort(address)
		u.Hosts = append(u.Hosts, net.JoinHostPort(host, managementPort(port)))
	}
	return u.String()
}

// amqpPorts are the brokers' own, by scheme.
var amqpPorts = map[string]string{"amqp": "5672", "amqps": "5671"}

// managementPort is where the management API is by default beside an AMQP port.
func managementPort(amqp string) string {
	port, err := strconv.Atoi(amqp)
	if err != nil || port+10000 > 65535 {
		return "15672"
	}
	return strconv.Itoa(port + 10000)
}

// brokerIdentity names broker and virtual host, so that a view of another one is never taken for ours.
// The order of the hosts does not matter.
func (s *brokerSettings) brokerIdentity() string {
	u := s.amqp()
	if s.private {
		return "private/" + url.PathEscape(vhostOf(u))
	}
	addresses := u.Addresses(amqpPorts[u.Scheme])
	slices.Sort(addresses)
	return strings.ToLower(strings.Join(addresses, ",")) + "/" + url.PathEscape(vhostOf(u))
}

// vhost is the virtual host that this sidecar serves.
func (s *brokerSettings) vhost() string { return vhostOf(s.amqp()) }

// user is whom the broker will vouch for on what we publish.
func (s *brokerSettings) user() string { return userOf(s.amqp()) }

func vhostOf(u hosts.URL) string {
	if name := strings.TrimPrefix(u.Path, "/"); name != "" {
		return name
	}
	return "/"
}

// amqp091-go's defaults, and both brokers'.
func userOf(u hosts.URL) string {
	if name := u.User.Username(); name != "" {
		return name
	}
	return "guest"
}

func passwordOf(u hosts.URL) string {
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
