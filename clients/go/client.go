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
	// URL is amqp://user:password@host:port/vhost, or amqps://. It may name several hosts, as
	// host:port,host:port. If it is empty, it is DefaultURL.
	URL        string
	URLs       []string           // one for each host, in place of a URL with commas
	Timeout    time.Duration      // of an enqueue whose context has no deadline; 30 s if zero
	FailFast   bool               // fail as soon as each host was tried once; do not wait for the broker
	Middleware []ClientMiddleware // the first is the outermost

	Credentials CredentialsFunc // returns user and password of each connection; the URL's if nil
	// TLS is for amqps:// URLs: a private authority, or a client certificate. If it is nil, the
	// parameters of the URL apply.
	TLS *tls.Config
}

// EnqueueFunc publishes a job and returns its jid. Client middleware wraps it.
type EnqueueFunc func(ctx context.Context, job *EnqueueParams) (jid string, err error)

// ClientMiddleware wraps each publish. It may change the job. If it does not call next, nothing is
// published. It must be safe for concurrent use, as the client is. Return next's jid: Enqueue
// returns what the middleware returns.
//
// For EnqueueBulk, the middleware runs as far as its call of next for each job, in order, for up to
// 1,000 jobs. Then the client publishes these jobs. When the broker has answered, the calls of next
// return, in order. A job that the broker returns is tried again for a share of the time: of 3,000
// jobs, the first 1,000 have a third of the time that is left.
type ClientMiddleware func(next EnqueueFunc) EnqueueFunc

const defaultTimeout = 30 * time.Second

// Client enqueues jobs. It is safe for concurrent use. It connects when it has to, and connects
// again after a connection is lost.
type Client struct {
	cfg     ClientConfig
	hosts   *hosts
	enqueue EnqueueFunc
	ctx     context.Context // ends when the client is closed
	cancel  context.CancelFunc

	mu      sync.Mutex
	conn    *amqp.Connection
	pub     *publisher
	opening *opening // nil if none is under way
	why     error    // error of the last attempt to connect; nil if it succeeded
	// welcome is set after the first connection. From then on, a refusal means that the broker is
	// starting.
	welcome bool
}

// NewClient returns a client. It does not connect yet.
func NewClient(cfg ClientConfig) (*Client, error) {
	hosts, err := newHosts(urlsOf(cfg.URL, cfg.URLs), login{cfg.Credentials, cfg.TLS})
	if err != nil {
		return nil, err
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	c := &Client{cfg: cfg, hosts: hosts}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.enqueue = c.one
	for i := len(cfg.Middleware) - 1; i >= 0; i-- {
		c.enqueue = cfg.Middleware[i](c.enqueue)
	}
	return c, nil
}

// Close ends the connection. Publishes that wait for an answer fail.
func (c *Client) Close() error {
	c.mu.Lock()
	c.cancel()
	conn := c.conn
	c.conn, c.pub = nil, nil
	c.mu.Unlock()
	if conn == nil || conn.IsClosed() {
		return nil
	}
	return conn.Close()
}

// Enqueue publishes a job, and returns its jid when the broker has confirmed it. options may be
// nil. With ErrUnconfirmed it returns the jid too.
//
// Enqueue tries again while the broker cannot be reached, or returns the job because no queue takes
// it. It stops at the deadline of ctx, or after ClientConfig.Timeout if ctx has no deadline. With
// ClientConfig.FailFast it waits for no broker.
func (c *Client) Enqueue(ctx context.Context, args JobArgs, options *EnqueueOptions) (jid string, err error) {
	return c.push(ctx, paramsOf(args, options))
}

// EnqueueAt publishes a job that is due at a time. If the time is past, the job is due immediately.
func (c *Client) EnqueueAt(ctx context.Context, at time.Time, args JobArgs, options *EnqueueOptions) (jid string, err error) {
	job := paramsOf(args, options)
	job.Options.ScheduledAt = at
	return c.push(ctx, job)
}

// EnqueueIn publishes a job that is due after a duration.
func (c *Client) EnqueueIn(ctx context.Context, after time.Duration, args JobArgs, options *EnqueueOptions) (jid string, err error) {
	return c.EnqueueAt(ctx, time.Now().Add(after), args, options)
}

func (c *Client) push(ctx context.Context, job EnqueueParams) (string, error) {
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	jid, err := c.enqueue(ctx, &job)
	if err != nil {
		if !errors.Is(err, ErrUndecided) {
			jid = jidOf(err)
		}
		return jid, fmt.Errorf("millrace: enqueue %s: %w", job.Class(), err)
	}
	return jid, nil
}

func (c *Client) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.cfg.Timeout)
}

// one publishes one job, and tries again until the broker has it or refuses it.
func (c *Client) one(ctx context.Context, job *EnqueueParams) (string, error) {
	if p, _ := ctx.Value(passKey{}).(*pass); p != nil && p.take() {
		return p.publish(ctx, job)
	}
	r, err := job.prepare(time.Now())
	if err != nil {
		return "", err
	}
	r.asks = job.decision != nil
	a, err := c.publish(ctx, r)
	if err != nil {
		return jidOf(err), err
	}
	if r.asks {
		*job.decision, err = a.decide(ctx, r.jid)
		return r.jid, err
	}
	return r.jid, nil
}

// publish returns the broker's answer, which is a confirm if there is no error.
func (c *Client) publish(ctx context.Context, r ready) (*answer, error) {
	tries := c.tries(ctx)
	sent := false // it may have arrived
	for {
		pub, err := c.publisher(ctx)
		if err != nil {
			return nil, r.ended(err, sent)
		}
		a, err := pub.send(ctx, r.message)
		if err == nil {
			err = a.wait(ctx)
			sent = sent || !isReturned(err)
		}
		switch {
		case err == nil:
			return a, nil
		case errors.Is(err, errLost):
			c.forget(pub)
		case isReturned(err):
			if why := tries.wait(ctx); why != nil {
				return nil, r.ended(tries.over(err, why), sent)
			}
		case errors.Is(err, ErrRefused):
			return nil, err
		default:
			return nil, r.ended(err, sent)
		}
	}
}

// ended returns the error of a job that is given up.
func (r ready) ended(err error, sent bool) error {
	switch {
	case sent:
		return &UnconfirmedError{r.jid, err}
	case errors.Is(err, ErrClosed) || errors.Is(err, ErrUnreachable) || errors.Is(err, ErrRefused):
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}

// forget drops a publisher whose channel is gone, together with its connection.
func (c *Client) forget(pub *publisher) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pub == pub {
		conn := c.conn
		c.conn, c.pub = nil, nil
		go conn.Close() // may wait for a broker that does not answer
	}
}

// opening connects for all enqueues that wait. It continues when an enqueue reaches its deadline,
// because a later enqueue can use the connection.
type opening struct {
	ended chan struct{} // closed when it has ended; then pub and err are valid
	pub   *publisher
	err   error

	waiting int // enqueues that wait; guarded by Client.mu
}

// publisher returns the open publisher, or waits for one until ctx ends.
func (c *Client) publisher(ctx context.Context) (*publisher, error) {
	pub, o, err := c.current()
	if o == nil {
		return pub, err
	}
	defer c.leave(o)
	select {
	case <-o.ended:
		return o.pub, o.err
	case <-c.ctx.Done():
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, c.unreached(ctx.Err())
	}
}

// current returns the open publisher, or the opening for which the caller must wait.
func (c *Client) current() (*publisher, *opening, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return nil, nil, ErrClosed
	}
	if c.pub != nil && !c.pub.ch.IsClosed() {
		return c.pub, nil, nil
	}
	if c.opening == nil {
		c.opening = &opening{ended: make(chan struct{})}
		go c.open(c.opening)
	}
	c.opening.waiting++
	return nil, c.opening, nil
}

func (c *Client) leave(o *opening) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o.waiting--
}

// unreached returns the error of an enqueue whose context ended before there was a connection. It
// says why the last attempt failed, or that the first one waits for credentials.
func (c *Client) unreached(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.why != nil:
		err = c.why
	case c.hosts.isAsking():
		err = &credentialsError{fmt.Errorf("no answer: %w", err)}
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}

// open connects, and tries again until it succeeds, the broker refuses the client, or no enqueue
// waits. With FailFast it tries once.
func (c *Client) open(o *opening) {
	var pause pauses
	for {
		pub, err := c.connect()
		if c.opened(o, pub, err) {
			return
		}
		_ = pause.wait(c.ctx)
	}
}

// opened records how an attempt to connect ended, and reports whether it was the last one.
func (c *Client) opened(o *opening, pub *publisher, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.why = err
	switch {
	case c.ctx.Err() != nil:
		err = ErrClosed
	case err == nil:
	case c.cfg.FailFast || unwelcome(err) && !c.welcome:
		err = fmt.Errorf("%w: %w", ErrUnreachable, err)
	case o.waiting > 0:
		return false
	}
	o.pub, o.err = pub, err
	c.opening = nil
	close(o.ended)
	return true
}

func (c *Client) connect() (*publisher, error) {
	if c.ctx.Err() != nil {
		return nil, ErrClosed
	}
	conn, err := c.hosts.dial(c.ctx, fmt.Sprintf("millrace producer %s:%d", hostname(), os.Getpid()))
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
	if c.ctx.Err() != nil {
		go conn.Close() // may wait for a broker that does not answer
		return nil, ErrClosed
	}
	if c.conn != nil {
		go c.conn.Close() // its channel is gone
	}
	c.conn, c.pub, c.welcome = conn, pub, true
	return pub, nil
}
