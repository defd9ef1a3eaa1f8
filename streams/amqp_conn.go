package streams

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/hosts"
	"github.com/millrace-jobs/millrace/internal/quickack"
)

// leaveTimeout limits the time to close a connection properly.
const leaveTimeout = time.Second

// amqpConn is one AMQP 0-9-1 connection.
type amqpConn struct {
	conn   *amqp.Connection
	host   hosts.Target
	socket *pacedConn

	mu     sync.Mutex
	closed <-chan *amqp.Error
	why    *amqp.Error
}

// amqpHosts are the hosts for AMQP 0-9-1. They are tried in an order of their own, not in that of
// the process's other AMQP connections: a healthy node may have no replica of a stream.
type amqpHosts struct {
	url   hosts.URL
	all   []string
	order hosts.Order
}

func newAMQPHosts(cfg Config) (*amqpHosts, error) {
	u, err := hosts.Parse(cfg.AMQPURL)
	if err == nil {
		_, err = amqp.ParseURI(u.At(u.Hosts[0]))
	}
	if err != nil {
		return nil, errors.New("streams: the AMQP URL is malformed (amqp://user:password@host:port/vhost; reserved characters must be percent-encoded)")
	}
	h := &amqpHosts{url: u, all: u.Addresses("5672")}
	if u.Scheme == "amqps" {
		h.all = u.Addresses("5671")
	}
	h.order.Near = cfg.Hosts
	return h, nil
}

const (
	amqpEach     = 4 * time.Second // limits connecting to one of several hosts, as in broker.Dial
	amqpPatience = time.Second     // after this time another host is tried in parallel
)

// dial connects to one of the hosts. If out is not nil, the connection does not read from its
// socket while out is full: the client library buffers without limit.
func (h *amqpHosts) dial(ctx context.Context, cfg Config, purpose string, out *ahead) (*amqpConn, error) {
	rules := hosts.Rules[*amqpConn]{
		Patience: amqpPatience, Repeat: true,
		Limits: hosts.Limits{Each: amqpEach, Only: cfg.Timeout},
		Drop:   func(c *amqpConn) { c.close() },
	}
	c, err := hosts.Race(ctx, &h.order, h.all, rules, func(ctx context.Context, to hosts.Target) (*amqpConn, error) {
		return dialAMQP(ctx, cfg, h.url.At(to.Host), to, purpose, out)
	})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, dialError(err)
	}
	return c, nil
}

// lost makes the next connection try other hosts first.
func (h *amqpHosts) lost(c *amqpConn) { h.order.Lost(c.host) }

// several reports whether there is more than one host.
func (h *amqpHosts) several() bool { return len(h.all) > 1 }

func dialAMQP(ctx context.Context, cfg Config, url string, to hosts.Target, purpose string, out *ahead) (*amqpConn, error) {
	socket := &pacedConn{out: out, heartbeat: cfg.Heartbeat, left: make(chan struct{})}
	var stop func() bool
	conn, err := amqp.DialConfig(url, amqp.Config{
		Heartbeat:       cfg.Heartbeat,
		TLSClientConfig: cfg.TLS.Clone(),
		Properties:      amqp.Table{"connection_name": cfg.Name + " " + purpose, "product": "Millrace", "platform": "Go"},
		Dial: func(network, _ string) (net.Conn, error) {
			var dialer net.Dialer
			raw, err := dialer.DialContext(ctx, network, to.Address)
			if err != nil {
				return nil, err
			}
			stop = context.AfterFunc(ctx, func() { raw.Close() })
			socket.Conn = quickack.New(raw)
			return socket, nil
		},
	})
	if stop != nil && !stop() && err == nil {
		conn.Close() // its socket is closed already
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	if broker.FeaturesOn(conn).HoldsSmallFramesBack && !cfg.SlowAcks {
		socket.Begin()
	}
	return &amqpConn{conn: conn, host: to, socket: socket, closed: conn.NotifyClose(make(chan *amqp.Error, 1))}, nil
}

func dialError(err error) error {
	var e *amqp.Error
	if errors.As(err, &e) && (e.Code == amqp.AccessRefused || e.Code == amqp.NotAllowed) {
		return fmt.Errorf("streams: connecting over AMQP 0-9-1: %w: %s", ErrRefused, e.Reason)
	}
	return lost("connecting over AMQP 0-9-1: %w", err)
}

// leave makes all calls that wait on this connection return soon.
func (c *amqpConn) leave() { c.socket.leave() }

// leaveIfStuck gives up the connection if finished is not called soon after ctx ended. The calls of
// the client library take no context. If the broker does not answer, they wait until the heartbeats
// fail.
func (c *amqpConn) leaveIfStuck(ctx context.Context) (finished func()) {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-done:
		case <-time.After(leaveTimeout):
			c.leave()
		}
	})
	return func() {
		stop()
		close(done)
	}
}

func (c *amqpConn) close() {
	c.socket.leave()
	_ = c.conn.CloseDeadline(time.Now().Add(leaveTimeout))
}

// reason returns the error that closed the connection, or nil.
func (c *amqpConn) reason() *amqp.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why == nil {
		c.why = receive(c.closed)
	}
	return c.why
}

// receive waits briefly for a close notification that may be on its way.
func receive(closed <-chan *amqp.Error) *amqp.Error {
	select {
	case e := <-closed:
		return e
	case <-time.After(leaveTimeout):
		return nil
	}
}

// pacedConn is a socket that is not read while out is full.
type pacedConn struct {
	*quickack.Conn
	out       *ahead
	heartbeat time.Duration

	mu   sync.Mutex
	left chan struct{} // closed by leave
}

func (p *pacedConn) Read(b []byte) (int, error) {
	if p.out != nil && !p.out.hasRoom() {
		p.wait()
	}
	return p.Conn.Read(b)
}

func (p *pacedConn) wait() {
	for !p.out.hasRoom() {
		select {
		case <-p.left:
			return
		case <-p.out.room:
		}
	}
	// The read deadline from before the pause has passed, through no fault of the broker.
	p.mu.Lock()
	defer p.mu.Unlock()
	if !isClosed(p.left) {
		_ = p.Conn.SetReadDeadline(silentAt(p.heartbeat))
	}
}

func (p *pacedConn) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if isClosed(p.left) {
		return
	}
	close(p.left)
	_ = p.Conn.SetDeadline(time.Now().Add(leaveTimeout))
}

// SetReadDeadline does nothing after leave. The client library calls it at each heartbeat.
func (p *pacedConn) SetReadDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if isClosed(p.left) {
		return nil
	}
	return p.Conn.SetReadDeadline(t)
}
