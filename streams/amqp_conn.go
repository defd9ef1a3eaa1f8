package streams

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// leaveTimeout bounds how long a connection takes to say goodbye.
const leaveTimeout = time.Second

// amqpConn is one AMQP 0-9-1 connection.
type amqpConn struct {
	conn   *amqp.Connection
	socket *pacedConn
}

// dialAMQP connects. With out, nothing is read from the socket while out is full: the client library itself buffers without limit.
func dialAMQP(ctx context.Context, cfg Config, out *ahead) (*amqpConn, error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	socket := &pacedConn{out: out, heartbeat: cfg.Heartbeat, left: make(chan struct{})}
	var stop func() bool
	conn, err := amqp.DialConfig(cfg.AMQPURL, amqp.Config{
		Heartbeat:       cfg.Heartbeat,
		TLSClientConfig: cfg.TLS.Clone(),
		Properties:      amqp.Table{"connection_name": cfg.Name, "product": "Millrace", "platform": "Go"},
		Dial: func(network, addr string) (net.Conn, error) {
			var dialer net.Dialer
			raw, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			stop = context.AfterFunc(ctx, func() { raw.Close() })
			socket.Conn = raw
			return socket, nil
		},
	})
	if stop != nil && !stop() && err == nil {
		conn.Close() // returns at once: its socket is closed
		err = ctx.Err()
	}
	if err != nil {
		return nil, dialError(err)
	}
	return &amqpConn{conn: conn, socket: socket}, nil
}

func dialError(err error) error {
	var e *amqp.Error
	if errors.As(err, &e) && (e.Code == amqp.AccessRefused || e.Code == amqp.NotAllowed) {
		return fmt.Errorf("streams: connecting over AMQP 0-9-1: %w: %s", ErrRefused, e.Reason)
	}
	return lost("connecting over AMQP 0-9-1: %w", err)
}

// leave makes whatever waits on this connection end soon.
func (c *amqpConn) leave() { c.socket.leave() }

func (c *amqpConn) close() {
	c.socket.leave()
	_ = c.conn.CloseDeadline(time.Now().Add(leaveTimeout))
}

// pacedConn is a socket that is not read from while out is full.
type pacedConn struct {
	net.Conn
	out       *ahead
	heartbeat time.Duration

	mu   sync.Mutex
	left chan struct{} // closed when the connection is being given up
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
	// The deadline that was set before the pause has passed; the broker is not to blame.
	p.mu.Lock()
	defer p.mu.Unlock()
	if !isClosed(p.left) {
		_ = p.Conn.SetReadDeadline(time.Now().Add(3 * p.heartbeat))
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

// SetReadDeadline is how the client library moves the deadline at each heartbeat; not once we are leaving.
func (p *pacedConn) SetReadDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if isClosed(p.left) {
		return nil
	}
	return p.Conn.SetReadDeadline(t)
}

// errPoison is what the broker does to a connection when it fails to convert what it should deliver.
var errPoison = errors.New("the broker failed to deliver")

func isPoison(err error) bool { return errors.Is(err, errPoison) }

// whyClosed says why a subscription's deliveries ended.
func whyClosed(stream string, closed <-chan *amqp.Error, cancels <-chan string) error {
	select {
	case <-cancels:
		return cancelled(stream)
	default:
	}
	select {
	case e := <-closed:
		switch {
		case e == nil:
			return lost("the channel was closed")
		case e.Server && e.Code == amqp.InternalError:
			return fmt.Errorf("%w: %w", errPoison, amqpError(stream, e))
		default:
			return amqpError(stream, e)
		}
	case <-time.After(leaveTimeout):
		return lost("the deliveries ended")
	}
}

// amqpError says what an exception of the broker means to a reader.
func amqpError(stream string, err error) error {
	var e *amqp.Error
	if !errors.As(err, &e) {
		return lost("reading %s: %w", stream, err)
	}
	switch {
	case e.Code == amqp.NotFound && strings.Contains(e.Reason, "inaccessible"):
		return lost("reading %s: %s", stream, e.Reason) // right after a restart
	case e.Code == amqp.NotFound:
		return fmt.Errorf("streams: %w: %s", ErrNoStream, stream)
	case e.Code == amqp.AccessRefused:
		return fmt.Errorf("streams: reading %s: %w: %s", stream, ErrRefused, e.Reason)
	default:
		return lost("reading %s: %s (%d)", stream, e.Reason, e.Code)
	}
}
