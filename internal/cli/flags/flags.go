// Package flags has the flags that several commands share: where the broker is, where the API is,
// and who signs in. Kong fills the structs from the command line, the environment and the
// configuration file.
//
// A URL is checked when it is read, and completed with the user and password of --amqp-url. An
// error names the flag and never quotes the URL, because it may hold a password.
package flags

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
	"github.com/millrace-jobs/millrace/internal/connect"
	"github.com/millrace-jobs/millrace/internal/hosts"
)

// AMQP says where the broker is, and as whom to connect.
type AMQP struct {
	AMQPURL          string `name:"amqp-url" env:"MILLRACE_AMQP_URL" type:"urls" default:"amqp://guest:guest@localhost:5672/" placeholder:"URL" help:"The broker and virtual host: amqp://user:password@host:port/vhost, or amqps:// (${default}). Several hosts of one broker: host:port,host:port, or the flag again."`
	AMQPUser         string `name:"amqp-user" env:"MILLRACE_AMQP_USER" placeholder:"USER" help:"The user, unencoded, instead of the one in the URL. It needs --amqp-password-file, or a password in the environment."`
	AMQPPassword     string `name:"amqp-password" env:"MILLRACE_AMQP_PASSWORD" placeholder:"PASSWORD" help:"The password, unencoded, instead of the one in the URL. Set it in the environment: every user of a machine can see its command lines."`
	AMQPPasswordFile string `name:"amqp-password-file" env:"MILLRACE_AMQP_PASSWORD_FILE" placeholder:"FILE" help:"Read the password from this file instead of the URL."`
}

// Broker says where the broker and its management API are.
type Broker struct {
	AMQP

	ManagementURL string `name:"management-url" env:"MILLRACE_MANAGEMENT_URL" type:"urls" placeholder:"URL" help:"The broker's management API: http://host:port. Default: the broker's hosts at the port of --amqp-url plus 10000 (5672: 15672), if this broker's API answers there. Several hosts as in --amqp-url."`
}

// Redis says where the Redis of another job system is.
type Redis struct {
	RedisURL string `name:"redis-url" env:"MILLRACE_REDIS_URL" default:"redis://localhost:6379/0" placeholder:"URL" help:"Sidekiq's Redis: redis://user:password@host:port/database, or rediss:// (${default})."`
}

// API says where the REST API is.
type API struct {
	HTTPAddr string `name:"http-addr" env:"MILLRACE_HTTP_ADDR" default:"127.0.0.1:15680" placeholder:"HOST:PORT" help:"Where the sidecar's REST API is (${default}), or unix:PATH for a socket in the file system."`
}

// Address returns where a command asks the API. An API that listens on every address of the machine
// is asked on the loopback one.
func (a *API) Address() apiclient.Address {
	addr := a.HTTPAddr
	if host, port, err := net.SplitHostPort(addr); err == nil {
		switch {
		case host == "" || host == net.IPv4zero.String():
			addr = net.JoinHostPort("127.0.0.1", port)
		case host == net.IPv6zero.String():
			addr = net.JoinHostPort(net.IPv6loopback.String(), port)
		}
	}
	return apiclient.At("http", addr, "")
}

// Probe has the flags of a command that asks the API without signing in.
type Probe struct {
	API    `group:"Connection flags:"`
	APIURL string `name:"api-url" env:"MILLRACE_API_URL" group:"Connection flags:" placeholder:"URL" help:"The API: https://host:port/prefix. A user in the URL is not sent. Default: http:// and --http-addr."`
}

// APIClient returns a client of the API that sends no user, password or token.
func (p *Probe) APIClient() *apiclient.Client {
	at := p.Address()
	var err error
	if p.APIURL != "" {
		at, _, err = parseAPIURL(p.APIURL)
	}
	return apiclient.New(at, apiclient.Credentials{}, err)
}

// SignIn says how a command reaches the API where the defaults do not do.
type SignIn struct {
	APIURL          string `name:"api-url" env:"MILLRACE_API_URL" placeholder:"URL" help:"The API and the user to sign in as: https://user:password@host:port/prefix. Default: http:// and --http-addr, as the user of --amqp-url."`
	APIPasswordFile string `name:"api-password-file" env:"MILLRACE_API_PASSWORD_FILE" placeholder:"FILE" help:"Read that user's password from this file."`
	APITokenFile    string `name:"api-token-file" env:"MILLRACE_API_TOKEN_FILE" placeholder:"FILE" help:"Sign in with the token in this file instead."`
}

// Client has the flags of a command that calls the API.
type Client struct {
	AMQP   `group:"Connection flags:"`
	API    `group:"Connection flags:"`
	SignIn `group:"Connection flags:"`
}

// APIClient returns a client of the API.
func (c *Client) APIClient() *apiclient.Client {
	return c.SignIn.APIClient(c.Address(), &c.AMQP)
}

// AfterApply checks the URL and puts the password into it.
func (a *AMQP) AfterApply() error {
	u, err := parseAMQPURL(a.AMQPURL)
	if err != nil {
		return err
	}
	password, given, err := a.password()
	if err != nil {
		return err
	}
	switch {
	case given:
		u.User = url.UserPassword(cmp.Or(a.AMQPUser, connect.User(u)), password)
	case a.AMQPUser != "":
		return errors.New("--amqp-user needs that user's password: set --amqp-password-file, or MILLRACE_AMQP_PASSWORD in the environment")
	}
	a.AMQPURL, a.AMQPUser, a.AMQPPassword = u.String(), "", "" // URLs are masked where settings are shown
	return nil
}

// password returns the password that is given beside the URL.
func (a *AMQP) password() (password string, given bool, err error) {
	switch {
	case a.AMQPPasswordFile == "":
		return a.AMQPPassword, a.AMQPPassword != "", nil
	case a.AMQPPassword != "":
		return "", false, errors.New("--amqp-password and --amqp-password-file cannot be used together")
	}
	if password, err = readSecret(a.AMQPPasswordFile); err != nil {
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
func (b *Broker) AfterApply() error {
	err := b.AMQP.AfterApply()
	if err != nil || b.ManagementURL == "" {
		return err
	}
	u, err := ParseURL("--management-url", b.ManagementURL, "http://host:port or https://host:port", "http", "https")
	if err != nil {
		return err
	}
	if u.User == nil {
		u.User = connect.Userinfo(b.URL())
	}
	b.ManagementURL = u.String()
	return nil
}

// ParseURL reads a URL of one host or several. form says in errors what it must look like.
func ParseURL(flag, raw, form string, schemes ...string) (hosts.URL, error) {
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
	return ParseURL("--amqp-url", raw, "amqp://user:password@host:port/vhost, with reserved characters percent-encoded", "amqp", "amqps")
}

// URL returns the AMQP URL, which AfterApply has checked.
func (a *AMQP) URL() hosts.URL {
	u, err := parseAMQPURL(a.AMQPURL)
	if err != nil {
		return hosts.URL{}
	}
	return u
}

// Connect returns the broker that the flags name.
func (b *Broker) Connect(order *hosts.Order, log *slog.Logger) connect.Broker {
	return connect.Broker{AMQPURL: b.AMQPURL, ManagementURL: b.ManagementURL, Hosts: order, Log: log}
}

// APIClient returns a client of the API at an address, unless the flags name another. The user is
// that of the AMQP URL, unless the flags name another.
func (s *SignIn) APIClient(at apiclient.Address, amqp *AMQP) *apiclient.Client {
	user, from := connect.Userinfo(amqp.URL()), "--amqp-url"
	if s.APIURL != "" {
		address, given, err := parseAPIURL(s.APIURL)
		if err != nil {
			return apiclient.New(at, apiclient.Credentials{}, err)
		}
		if at = address; given != nil {
			user, from = given, "--api-url"
		}
	}
	c := apiclient.Credentials{As: fmt.Sprintf("user %q of %s", user.Username(), from)}
	if s.APITokenFile != "" {
		c.As = "the bearer of the token in --api-token-file"
	}
	var err error
	c.Authorization, err = s.authorization(user)
	return apiclient.New(at, c, err)
}

// parseAPIURL returns the address in --api-url, and the user in it, if there is one.
func parseAPIURL(raw string) (apiclient.Address, *url.Userinfo, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return apiclient.Address{}, nil, usage.Errorf("invalid --api-url: use http://host:port or https://user:password@host:port/prefix")
	}
	user := u.User
	u.User = nil
	return apiclient.Address{Base: strings.TrimSuffix(u.String(), "/")}, user, nil
}

// authorization returns the header of requests.
func (s *SignIn) authorization(user *url.Userinfo) (string, error) {
	if s.APITokenFile != "" {
		token, err := readSecret(s.APITokenFile)
		if err != nil {
			return "", usage.Errorf("--api-token-file: %w", err)
		}
		return "Bearer " + strings.TrimSpace(token), nil
	}
	password, _ := user.Password()
	if s.APIPasswordFile != "" {
		var err error
		if password, err = readSecret(s.APIPasswordFile); err != nil {
			return "", usage.Errorf("--api-password-file: %w", err)
		}
	}
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)), nil
}

// URLs is the type, in kong's tags, of a flag that can be given several times. Its URLs become one
// string, with commas between them, as hosts.Parse reads them.
const URLs = "urls"

// URLsMapper has kong read such a flag.
var URLsMapper = kong.NamedMapper(URLs, kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
	var one string
	if err := ctx.Scan.PopValueInto("string", &one); err != nil {
		return err
	}
	if before := target.String(); before != "" {
		one = before + "," + one
	}
	target.SetString(one)
	return nil
}))
