package messages

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/broker"
	millrace "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/wire"
)

// Config configures the delivery of messages.
type Config struct {
	URL  string                                      // of the broker, for the worker
	Conn func(context.Context) (*broker.Conn, error) // returns the connection for messages, a new one if it was lost
	To   *regexp.Regexp                              // the exchanges to which messages are delivered
	User string                                      // in the URL
	Own  func(user string) bool                      // reports whether a broker user is Millrace's own
	Log  *slog.Logger
}

const (
	atOnce       = 100              // messages that are delivered at the same time
	answerWithin = 30 * time.Second // a broker may never answer
	lostTries    = 5                // how often a message is tried in an attempt whose connection is lost
	longestPause = time.Second      // between these
)

// ownStreams are the streams that only Millrace and the libraries write.
var ownStreams = map[string]bool{
	wire.ScheduledJobs: true, wire.Retries: true, wire.DeadJobs: true, wire.Heartbeats: true, wire.JobMetrics: true, wire.Rollups: true, wire.Journal: true,
}

// Run delivers messages until ctx ends.
func Run(ctx context.Context, cfg Config) error {
	d := &deliverer{cfg: cfg, outlets: map[string]*outlet{}}
	worker := millrace.NewWorker(millrace.WorkerConfig{
		URL: cfg.URL, Queues: []string{wire.MessageQueue}, Concurrency: atOnce, Tag: "messages", Logger: cfg.Log,
		MaxDeaths: -1, // a sidecar that dies says nothing about the message
		Record:    d.record,
	})
	worker.Handle(wire.MessageClass, d.deliver, nil)
	defer d.close()
	return worker.Run(ctx)
}

// deliverer publishes messages, each exchange on a channel of its own: a broker that refuses a
// message closes the channel, and then says nothing of the others on it.
type deliverer struct {
	cfg Config

	mu      sync.Mutex
	outlets map[string]*outlet // by exchange
	warn    sync.Once
}

// outlet is the channel for an exchange.
type outlet struct {
	sync.Mutex // is held while the channel is opened
	conn       *broker.Conn
	publisher  *broker.Publisher
	users      int
}

// sender returns the user_id with which the message of a job was published.
func (d *deliverer) sender(job *millrace.RawJob) string {
	return wire.SenderOf(job.Headers, job.UserID, d.cfg.Own(job.UserID))
}

// record keeps the sender for the next attempt. It counts because the record is Millrace's own.
func (d *deliverer) record(job *millrace.RawJob) millrace.RecordProperties {
	sender := d.sender(job)
	if sender == "" {
		return millrace.RecordProperties{}
	}
	return millrace.RecordProperties{UserID: d.cfg.User, Headers: map[string]string{wire.HeaderUserID: sender}}
}

// deliver runs one job.
func (d *deliverer) deliver(ctx context.Context, job *millrace.RawJob) error {
	m, err := parse(job.Args, job.JID)
	switch {
	case err != nil:
		return millrace.KillWith(err)
	case !d.cfg.To.MatchString(m.exchange):
		return fmt.Errorf("nothing is delivered to exchange %q: --deliver-to does not match it", m.exchange)
	}
	m.UserId = d.sender(job)
	again := pause.Growing(longestPause)
	for try := 1; ; try++ {
		err := d.publish(ctx, &m)
		if !errors.Is(err, broker.ErrLost) || try == lostTries {
			return err
		}
		select {
		case <-job.Stopping():
			return millrace.ErrHandBack
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(again.NextBackOff()):
		}
	}
}

// publish publishes a message and waits for the confirm.
func (d *deliverer) publish(ctx context.Context, m *message) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	o := d.use(m.exchange)
	defer d.leave(o)
	p, err := o.open(ctx, d.cfg.Conn)
	if err != nil {
		return err
	}
	if err := d.impersonate(ctx, o.conn, m); err != nil {
		return err
	}
	err = p.Deliver(ctx, m.exchange, m.key, m.Publishing)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, broker.ErrReturned):
		return fmt.Errorf("no queue is bound to exchange %q for routing key %q", m.exchange, m.key)
	case errors.Is(err, broker.ErrNacked):
		return fmt.Errorf("a queue refused the message of exchange %q with routing key %q: it may be full", m.exchange, m.key)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the broker did not answer within %s: the message may have been delivered", answerWithin)
	}
	var refusal *amqp.Error
	if broker.CausedByClient(err) && errors.As(err, &refusal) {
		return fmt.Errorf("the broker refused the message: %s", refusal.Reason)
	}
	return err
}

// impersonate takes the user_id from a message if the broker would refuse it.
func (d *deliverer) impersonate(ctx context.Context, conn *broker.Conn, m *message) error {
	if m.UserId == "" || m.UserId == conn.User() {
		return nil
	}
	allowed, err := conn.Impersonates(ctx)
	if err == nil && !allowed {
		m.UserId = ""
		d.warn.Do(func() {
			d.cfg.Log.Warn("delayed messages are delivered without their user_id: give the broker user the tag impersonator", "user", conn.User())
		})
	}
	return err
}

// use returns the outlet for an exchange. If a new one is one too many, it closes those that are
// not used.
func (d *deliverer) use(exchange string) *outlet {
	d.mu.Lock()
	defer d.mu.Unlock()
	if o := d.outlets[exchange]; o != nil {
		o.users++
		return o
	}
	for name, idle := range d.outlets {
		if len(d.outlets) >= atOnce && idle.users == 0 {
			idle.close()
			delete(d.outlets, name)
		}
	}
	o := &outlet{users: 1}
	d.outlets[exchange] = o
	return o
}

func (d *deliverer) leave(o *outlet) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o.users--
}

func (d *deliverer) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range d.outlets {
		o.close()
	}
}

// open returns the channel, a new one if it was closed.
func (o *outlet) open(ctx context.Context, conn func(context.Context) (*broker.Conn, error)) (*broker.Publisher, error) {
	o.Lock()
	defer o.Unlock()
	if o.publisher != nil && o.publisher.Err() == nil {
		return o.publisher, nil
	}
	c, err := conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", broker.ErrLost, err)
	}
	o.conn = c
	o.publisher, err = c.Publisher(ctx)
	return o.publisher, err
}

func (o *outlet) close() {
	o.Lock()
	defer o.Unlock()
	if o.publisher != nil {
		go func() { _ = o.publisher.Close() }() // not awaited: the broker may be away
	}
}
