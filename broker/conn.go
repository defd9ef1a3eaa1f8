package broker

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/internal/hosts"
)

const (
	product          = "Millrace"
	defaultHeartbeat = 5 * time.Second
	closeTimeout     = 2 * time.Second
)

// connecting limits how long Dial tries each of several hosts. RabbitMQ takes three seconds to
// refuse a password, and Dial must not miss that answer.
var connecting = hosts.Rules[*Conn]{
	Patience: time.Second, Repeat: true,
	Limits: hosts.Limits{Each: 4 * time.Second, Only: 15 * time.Second},
	Drop:   func(c *Conn) { _ = c.Close() },
}

// Conn is one connection. It is safe for concurrent use.
type Conn struct {
	amqp      *amqp.Connection
	host      hosts.Target
	hosts     *hosts.Order
	socket    *socket
	user      string
	vhost     string
	features  Features
	queueType QueueType
	alarm     alarm
	lifetime
	impersonation impersonation
}

// Dial connects to one of the hosts. ctx limits the attempt, not the connection.
func Dial(ctx context.Context, cfg Config) (*Conn, error) {
	u, err := parseURL(cfg.AMQPURL)
	if err != nil {
		return nil, err
	}
	if cfg.Hosts == nil {
		cfg.Hosts = &hosts.Order{}
	}
	c, err := hosts.Race(ctx, cfg.Hosts, addresses(u), connecting, func(ctx context.Context, to hosts.Target) (*Conn, error) {
		return dialHost(ctx, cfg, u, to)
	})
	if err != nil {
		return nil, fmt.Errorf("broker: connect to %s: %w", MaskURL(cfg.AMQPURL), err)
	}
	return c, nil
}

// dialHost connects to one address.
func dialHost(ctx context.Context, cfg Config, u hosts.URL, to hosts.Target) (*Conn, error) {
	raw := u.At(to.Host) // TLS checks this name
	uri, err := amqp.ParseURI(raw)
	if err != nil {
		return nil, errMalformed
	}
	c := &Conn{host: to, hosts: cfg.Hosts, user: uri.Username, vhost: uri.Vhost, queueType: cfg.QueueType, lifetime: newLifetime()}
	if err := c.connect(ctx, cfg, raw); err != nil {
		if reason := refusedFor(err); reason != "" {
			err = &RefusedError{Host: to.Host, User: c.user, VHost: c.vhost, Reason: reason, Err: err}
		}
		return nil, err
	}
	c.socket.limitSilence(c.amqp.Config.Heartbeat)
	if c.features = FeaturesOn(c.amqp); c.features.HoldsSmallFramesBack {
		c.socket.Begin()
	}
	go c.watch(c.amqp.NotifyClose(make(chan *amqp.Error, 1)), c.amqp.NotifyBlocked(make(chan amqp.Blocking, 16)))
	return c, nil
}

func (c *Conn) connect(ctx context.Context, cfg Config, url string) error {
	properties := amqp.NewConnectionProperties()
	properties["product"] = product // doctor recognises our connections by it
	properties.SetClientConnectionName(cmp.Or(cfg.Name, "millrace"))
	inTime := func() bool { return true }
	var err error
	c.amqp, err = amqp.DialConfig(url, amqp.Config{
		Heartbeat:  cmp.Or(cfg.Heartbeat, defaultHeartbeat),
		Properties: properties,
		Dial: func(network, _ string) (net.Conn, error) {
			raw, err := (&net.Dialer{}).DialContext(ctx, network, c.host.Address)
			if err != nil {
				return nil, err
			}
			c.socket = newSocket(raw)
			inTime = context.AfterFunc(ctx, func() { raw.Close() })
			return c.socket, nil
		},
	})
	if err == nil && inTime() {
		return nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	} else if c.socket != nil {
		err = explainHandshake(err, scheme(url), c.socket.begunWith())
	}
	if c.socket != nil {
		c.socket.Close() // the library leaves its reader running
	}
	return err
}

func scheme(url string) string {
	scheme, _, _ := strings.Cut(url, "://")
	return scheme
}

// watch reads the library's notifications until the connection is gone.
func (c *Conn) watch(closes <-chan *amqp.Error, blocks <-chan amqp.Blocking) {
	for {
		select {
		case b, open := <-blocks:
			if !open {
				blocks = nil
				continue
			}
			c.alarm.set(b)
		case cause := <-closes:
			c.lifetime.end(cause, c.Shun)
			return
		}
	}
}

// Blocked reports whether the broker has stopped reading from this connection because of an alarm.
// It also returns the reason and the time at which the block began.
func (c *Conn) Blocked() (reason string, since time.Time, blocked bool) { return c.alarm.lasts() }

// Host returns the host and port of this connection, as the URL names them.
func (c *Conn) Host() string { return c.host.Host }

// Shun makes the next connection try other hosts first. A lost connection does so by itself.
func (c *Conn) Shun() { c.hosts.Lost(c.host) }

// User returns the user name of the connection. Its messages carry it as their user_id.
func (c *Conn) User() string { return c.user }

// VHost returns the virtual host of the connection.
func (c *Conn) VHost() string { return c.vhost }

// describe returns the broker's product and version, and the name of the cluster if it has one.
func (c *Conn) describe() string {
	cluster, _ := c.amqp.Properties["cluster_name"].(string)
	return describe(c.Product(), c.Version(), "", cluster)
}

// Product returns the broker's name.
func (c *Conn) Product() string { return c.features.Product }

// Version returns the broker's version.
func (c *Conn) Version() string { return c.features.Version }

// Features returns what this broker can do.
func (c *Conn) Features() Features { return c.features }

// Close ends the connection. It cuts the connection if the broker does not answer within two
// seconds. A second call has no effect.
func (c *Conn) Close() error {
	c.beginClose()
	go c.amqp.Close() // returns immediately if another goroutine is closing it
	polite := time.NewTimer(closeTimeout)
	defer polite.Stop()
	select {
	case <-c.done:
	case <-polite.C:
		c.socket.Close()
		<-c.done
	}
	c.work.Wait()
	return nil
}

// impersonation is whether the user of a connection may publish messages with the user_id of
// another user.
type impersonation struct {
	sync.Mutex // is held while the broker is asked
	allowed    bool
	asked      time.Time
}
