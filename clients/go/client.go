package millrace

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// ClientConfig says how to reach the broker. The zero value connects to DefaultURL.
type ClientConfig struct {
	URL        string             // DefaultURL if empty. amqp://user:password@host:port/vhost, or amqps://; several hosts: host:port,host:port
	URLs       []string           // in place of a URL with commas: one for each host
	Timeout    time.Duration      // how long an enqueue may take whose context has no deadline; 30 s if zero
	Middleware []ClientMiddleware // the first is the outermost

	Credentials CredentialsFunc // called for each connection, in place of the URL's user; the URL's user if nil
	TLS         *tls.Config     // for amqps:// URLs: a private authority, a client certificate; that of the URL's parameters if nil
}

// EnqueueFunc is what client middleware wraps: it publishes a job and returns its jid.
type EnqueueFunc func(ctx context.Context, job *EnqueueParams) (jid string, err error)

// ClientMiddleware wraps each publish. It may change the job. If it does not call next, nothing is published.
//
// For the jobs of EnqueueBulk it runs up to its call of next for each job, in order, up to 1,000 times; when the broker has answered, the
// calls return, in order. It has to be safe for concurrent use, as the client is.
type ClientMiddleware func(next EnqueueFunc) EnqueueFunc

const defaultTimeout = 30 * time.Second

// Client enqueues jobs. It is safe for concurrent use, connects when it has to, and connects again when a connection is lost.
type Client struct {
	cfg     ClientConfig
	hosts   *hosts
	enqueue EnqueueFunc
	dialing chan struct{} // held by whoever connects

	mu      sync.Mutex
	conn    *amqp.Connection
	pub     *publisher
	welcome bool // it was connected once: then what sounds like a refusal is a broker that is starting
	closed  bool
}

// NewClient makes a client. It does not connect yet.
func NewClient(cfg ClientConfig) (*Client, error) {
	hosts, err := newHosts(urlsOf(cfg.URL, cfg.URLs), login{cfg.Credentials, cfg.TLS})
	if err != nil {
		return nil, err
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	c := &Client{cfg: cfg, hosts: hosts, dialing: make(chan struct{}, 1)}
	c.enqueue = c.one
	for i := len(cfg.Middleware) - 1; i >= 0; i-- {
		c.enqueue = cfg.Middleware[i](c.enqueue)
	}
	return c, nil
}

// Close ends the connection. Publishes that wait for an answer fail.
func (c *Client) Close() error {
	c.mu.Lock()
	conn := c.conn
	c.conn, c.pub, c.closed = nil, nil, true
	c.mu.Unlock()
	if conn == nil || conn.IsClosed() {
		return nil
	}
	return conn.Close()
}

// Enqueue publishes a job and returns its jid when the broker has confirmed it. Options may be nil. With ErrUnconfirmed it returns
// the jid too.
//
// While the broker cannot be reached, it waits for a connection until the deadline of ctx, or for ClientConfig.Timeout if ctx has no
// deadline.
func (c *Client) Enqueue(ctx context.Context, args JobArgs, options *EnqueueOptions) (jid string, err error) {
	return c.push(ctx, paramsOf(args, options))
}

// EnqueueAt publishes a job that is due at a time. One in the past is due immediately.
func (c *Client) EnqueueAt(ctx context.Context, at time.Time, args JobArgs, options *EnqueueOptions) (jid string, err error) {
	job := paramsOf(args, options)
	job.Options.ScheduledAt = at
	return c.push(ctx, job)
}

// EnqueueIn publishes a job that is due after a while.
func (c *Client) EnqueueIn(ctx context.Context, after time.Duration, args JobArgs, options *EnqueueOptions) (jid string, err error) {
	return c.EnqueueAt(ctx, time.Now().Add(after), args, options)
}

func (c *Client) push(ctx context.Context, job EnqueueParams) (string, error) {
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	jid, err := c.enqueue(ctx, &job)
	if err != nil {
		return jidOf(err), fmt.Errorf("millrace: enqueue %s: %w", job.Class(), err)
	}
	return jid, nil
}

func (c *Client) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.cfg.Timeout)
}

// one publishes one job, again and again on new connections until it is answered.
func (c *Client) one(ctx context.Context, job *EnqueueParams) (string, error) {
	if p, _ := ctx.Value(passKey{}).(*pass); p != nil && p.take() {
		return p.publish(ctx, job)
	}
	r, err := job.prepare(time.Now())
	if err != nil {
		return "", err
	}
	err = c.publish(ctx, r)
	if err != nil {
		return jidOf(err), err
	}
	return r.jid, nil
}

func (c *Client) publish(ctx context.Context, r ready) error {
	sent := false
	for {
		pub, err := c.publisher(ctx)
		if err != nil {
			return r.ended(err, sent)
		}
		a, err := pub.send(ctx, r.message)
		if err == nil {
			sent = true
			err = a.wait(ctx)
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errLost):
			c.forget(pub)
		case errors.Is(err, ErrRefused):
			return err
		default:
			return r.ended(err, sent)
		}
	}
}

// ended returns the error of a job whose time is over.
func (r ready) ended(err error, sent bool) error {
	switch {
	case sent:
		return &UnconfirmedError{r.jid, err}
	case errors.Is(err, ErrClosed) || errors.Is(err, ErrUnreachable):
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}

// forget drops a publisher whose channel is gone, and its connection with it.
func (c *Client) forget(pub *publisher) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pub == pub {
		conn := c.conn
		c.conn, c.pub = nil, nil
		go conn.Close() // it may wait for a broker that does not answer
	}
}

// publisher gives the one that is open, or connects until it has one or ctx ends.
func (c *Client) publisher(ctx context.Context) (*publisher, error) {
	if pub, err := c.current(); pub != nil || err != nil {
		return pub, err
	}
	select {
	case c.dialing <- struct{}{}:
		defer func() { <-c.dialing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var pause pauses
	for {
		if pub, err := c.current(); pub != nil || err != nil {
			return pub, err // another one connected meanwhile
		}
		pub, err := c.connect(ctx)
		if err == nil {
			return pub, nil
		}
		if errors.Is(err, ErrClosed) {
			return nil, err
		}
		if unwelcome(err) && !c.wasWelcome() {
			return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
		if pause.wait(ctx) != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
	}
}

func (c *Client) wasWelcome() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.welcome
}

func (c *Client) current() (*publisher, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	if c.pub != nil && !c.pub.ch.IsClosed() {
		return c.pub, nil
	}
	return nil, nil
}

func (c *Client) connect(ctx context.Context) (*publisher, error) {
	conn, err := c.hosts.dial(ctx, fmt.Sprintf("millrace producer %s:%d", hostname(), os.Getpid()))
	if err != nil {
		return nil, err
	}
	pub, err := newPublisher(conn)
	if err != nil {
		conn.Close()
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		conn.Close()
		return nil, ErrClosed
	}
	if c.conn != nil {
		go c.conn.Close() // its channel is gone
	}
	c.conn, c.pub, c.welcome = conn, pub, true
	return pub, nil
}
