package connect

import (
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/hosts"
)

// Name begins the names of all connections of a sidecar. It distinguishes them from those of
// clients.
const Name = "millrace"

// Broker says where a broker is. Its URLs have been checked.
type Broker struct {
	AMQPURL       string
	ManagementURL string // default: beside AMQP
	StreamURL     string // default: those that the management API names
	Hosts         *hosts.Order
	Log           *slog.Logger
	SlowAcks      bool // of streams.Config
}

// Config returns the configuration of a connection that is named for what it does.
func (b *Broker) Config(does string) broker.Config {
	return broker.Config{AMQPURL: b.AMQPURL, Hosts: b.Hosts, Name: Name + " " + does}
}

func (b *Broker) amqp() hosts.URL {
	u, err := hosts.Parse(b.AMQPURL)
	if err != nil {
		return hosts.URL{}
	}
	return u
}

// AMQPPorts are the default ports, by scheme.
var AMQPPorts = map[string]string{"amqp": "5672", "amqps": "5671"}

// Management returns the URL of the management API. Its default port is as far from the AMQP port
// as the brokers' own ports are from each other. Most who run two brokers on a host keep that
// distance.
func (b *Broker) Management() string {
	if b.ManagementURL != "" {
		return b.ManagementURL
	}
	amqp := b.amqp()
	u := hosts.URL{URL: url.URL{Scheme: "http", User: Userinfo(amqp)}}
	if amqp.Scheme == "amqps" {
		u.Scheme = "https"
	}
	for _, address := range amqp.Addresses(AMQPPorts[amqp.Scheme]) {
		host, port, _ := net.SplitHostPort(address)
		u.Hosts = append(u.Hosts, net.JoinHostPort(host, managementPort(port)))
	}
	return u.String()
}

func managementPort(amqp string) string {
	port, err := strconv.Atoi(amqp)
	if err != nil || port+10000 > 65535 {
		return "15672"
	}
	return strconv.Itoa(port + 10000)
}

// VHost returns the virtual host of an AMQP URL.
func VHost(u hosts.URL) string {
	if name := strings.TrimPrefix(u.Path, "/"); name != "" {
		return name
	}
	return "/"
}

// User returns the user of a URL, or the brokers' default.
func User(u hosts.URL) string {
	if name := u.User.Username(); name != "" {
		return name
	}
	return "guest"
}

// Userinfo returns the user and password of a URL, or the brokers' defaults.
func Userinfo(u hosts.URL) *url.Userinfo {
	password, set := u.User.Password()
	if !set {
		password = "guest"
	}
	return url.UserPassword(User(u), password)
}
