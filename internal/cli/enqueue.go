package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/cli/flags"
	"github.com/millrace-jobs/millrace/internal/cli/humantime"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
	"github.com/millrace-jobs/millrace/internal/connect"
	"github.com/millrace-jobs/millrace/wire"
)

// producer is a command that publishes a job as any producer does.
type producer struct {
	flags.Broker `group:"Connection flags:"`
	output.Result
}

// publishFlags are those of a command that publishes a job of any class.
type publishFlags struct {
	producer
	jobFlags
}

type enqueueCmd struct{ publishFlags }

// Run publishes a job, and prints its jid when the broker has confirmed it.
func (c *enqueueCmd) Run(ctx context.Context, out output.Streams) error {
	j, err := c.job(time.Now())
	if err != nil {
		return err
	}
	m := wire.Message{Exchange: wire.ExchangeDirect, Key: j.Queue, Priority: uint8(j.Priority)} // checked to be 0 to 10
	if j.Gate != nil {
		m.Exchange, m.Key, m.ReplyTo = "", wire.Gated, c.replyTo(&j)
	}
	err = c.publish(ctx, out, m, &j, j)
	if errors.Is(err, broker.ErrReturned) {
		return fmt.Errorf("the job was not enqueued: there is no %s%s, and no policy on %s that keeps jobs for queues to come; "+
			"declare the queue and bind it to %s, or let a sidecar with access to the management API set the policy (millrace doctor says more)",
			wire.QueuePrefix, j.Queue, wire.ExchangeDirect, wire.ExchangeDirect)
	}
	return err
}

type scheduleCmd struct {
	publishFlags
	whenFlags
}

// whenFlags say when something is due.
type whenFlags struct {
	At string `xor:"when" required:"" placeholder:"TIME" help:"When: 2026-12-24T18:00:00+01:00, 2026-12-24 18:00 (local time), 2026-12-24, 18:00 (the next), or seconds since 1970."`
	In string `xor:"when" required:"" placeholder:"DURATION" help:"How long from now: 90s, 15m, 2h30m, 3d."`
}

// Run publishes a scheduled job, and prints its jid when the broker has confirmed it.
func (c *scheduleCmd) Run(ctx context.Context, out output.Streams) error {
	now := time.Now()
	at, err := c.when(now)
	if err != nil {
		return err
	}
	j, err := c.job(now)
	if err != nil {
		return err
	}
	if j.Gate != nil && j.Gate.Unique != nil {
		j.Gate.At = wire.Seconds(at)
		return c.publish(ctx, out, wire.Message{Key: wire.Gated, ReplyTo: c.replyTo(&j)}, &j, j)
	}
	return c.schedule(ctx, out, at, &j)
}

// schedule publishes a scheduled job.
func (c *producer) schedule(ctx context.Context, out output.Streams, at time.Time, j *job) error {
	record := scheduledJob{Type: "scheduled_job", JID: j.JID, ScheduledAt: wire.Seconds(at), Job: *j}
	err := c.publish(ctx, out, wire.Message{Key: wire.ScheduledJobs}, j, record)
	if errors.Is(err, broker.ErrReturned) {
		return fmt.Errorf("the job was not scheduled: the broker has no stream %s; start a sidecar (millrace serve), which makes it", wire.ScheduledJobs)
	}
	return err
}

func (c *whenFlags) when(now time.Time) (time.Time, error) {
	if c.In != "" {
		d, err := humantime.ParseDuration(c.In)
		return now.Add(d), named("--in", err)
	}
	return parseTime("at", c.At, now)
}

// publishTimeout is how long a command waits for the broker.
const publishTimeout = 30 * time.Second

// publish publishes the record of a job over a connection of its own, waits for the confirm, and
// prints the jid. If the message has a reply_to, it waits for the decision of a leader too.
func (c *producer) publish(ctx context.Context, out output.Streams, m wire.Message, j *job, record any) (err error) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	m.MessageID, m.Type, m.Timestamp = j.JID, j.Class, time.Now()
	if m.Body, err = encode(record); err != nil {
		return err
	}
	conn, err := broker.Dial(ctx, broker.Config{AMQPURL: c.AMQPURL, Name: connect.Name + " enqueue"})
	if err != nil {
		return err
	}
	defer conn.Close()
	publisher, answers, err := openProducer(ctx, conn, m.ReplyTo)
	if err != nil {
		return err
	}
	if err := publisher.SendMandatory(ctx, m); err != nil {
		return lossOf(ctx, publisher, m, err)
	}
	if m.ReplyTo != "" {
		return c.decided(ctx, out, j, answers)
	}
	return c.Printer(out).Done(fields{"jid": j.JID, "class": j.Class, "queue": j.Queue}, "%s", j.JID)
}

func openProducer(ctx context.Context, conn *broker.Conn, replyTo string) (p *broker.Publisher, answers <-chan wire.Delivery, err error) {
	if replyTo != "" {
		return conn.Asker(ctx)
	}
	p, err = conn.Publisher(ctx)
	return p, nil, err
}

// lossOf adds to an error why the publisher was lost, if it was: most likely the broker closed it.
func lossOf(ctx context.Context, publisher *broker.Publisher, m wire.Message, err error) error {
	if !errors.Is(err, broker.ErrLost) {
		return err
	}
	select {
	case <-publisher.Done():
	case <-ctx.Done():
		return err
	}
	reason := publisher.Err()
	if strings.Contains(fmt.Sprint(reason), "NOT_FOUND") {
		return fmt.Errorf("the broker has no exchange %s: start a sidecar (millrace serve), which makes it", m.Exchange)
	}
	return fmt.Errorf("%w: %w", err, reason)
}

// jobFlags are the arguments and flags that make a job.
type jobFlags struct {
	Class string `arg:"" help:"Class of the job, such as SendEmail."`
	Args  string `arg:"" optional:"" default:"[]" name:"args-json" help:"The job's arguments, a JSON array: '[\"ann@example.com\", 3]'."`

	Queue    string   `short:"q" placeholder:"QUEUE" default:"default" help:"Queue, without \"queue.\" in front (${default})."`
	Retry    int      `placeholder:"N" default:"25" help:"Maximum number of retries (${default})."`
	Priority int      `placeholder:"N" default:"0" help:"Priority, 0 to 10, the highest first (${default})."`
	Tag      []string `help:"Tag; may be given several times." placeholder:"TAG"`
	Limited  bool     `help:"Let limits count the job."`
	LimitKey string   `placeholder:"KEY" help:"Let limits count the job, under this key."`

	uniqueFlags
}

// job is a job as producers write it. Args keep all digits of their numbers.
type job struct {
	JID        string          `json:"jid"`
	Class      string          `json:"class"`
	Args       json.RawMessage `json:"args"`
	Queue      string          `json:"queue"`
	Retry      int             `json:"retry"`
	RetryCount int             `json:"retry_count"`
	Priority   int             `json:"priority,omitempty"`
	EnqueuedAt float64         `json:"enqueued_at"`
	Tags       []string        `json:"tags,omitempty"`
	Gate       *gate           `json:"gate,omitempty"`
}

// gate is in a job that limits count, or that is unique.
type gate struct {
	Key    string  `json:"key,omitempty"`
	At     float64 `json:"at,omitempty"`
	Unique *unique `json:"unique,omitempty"`
}

// unique is in a job that is unique.
type unique struct {
	Key   string   `json:"key,omitempty"`
	By    []string `json:"by,omitempty"`
	While string   `json:"while,omitempty"`
	For   float64  `json:"for,omitempty"`
	On    string   `json:"on,omitempty"`
	Wait  float64  `json:"wait,omitempty"`
	Max   float64  `json:"max,omitempty"`
}

// scheduledJob is the record of a job for later.
type scheduledJob struct {
	Type        string  `json:"type"`
	JID         string  `json:"jid"`
	ScheduledAt float64 `json:"scheduled_at"`
	Job         job     `json:"job"`
}

// job returns a new job. It is checked as the sidecar would check it.
func (a *jobFlags) job(now time.Time) (job, error) {
	if err := checkArgs(a.Args); err != nil {
		return job{}, err
	}
	j := job{
		JID: newJID(), Class: a.Class, Args: json.RawMessage(a.Args), Queue: a.Queue, Retry: a.Retry,
		Priority: a.Priority, EnqueuedAt: wire.Seconds(now), Tags: a.Tag,
	}
	u, err := a.unique()
	if err != nil {
		return job{}, err
	}
	if a.Limited || a.LimitKey != "" || u != nil {
		j.Gate = &gate{Key: a.LimitKey, Unique: u}
	}
	body, err := encode(j)
	if err != nil {
		return job{}, err
	}
	_, err = wire.ParseJob(body)
	return j, usage.Fault(err)
}

func checkArgs(args string) error {
	const hint = `must be a JSON array, such as '["ann@example.com", 3]' (in single quotes, so that the shell leaves it alone)`
	var list []json.RawMessage
	err := json.Unmarshal([]byte(args), &list)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return usage.Errorf("arguments %s: %w at character %d", hint, err, syntax.Offset)
	case err != nil || list == nil:
		return usage.Errorf("arguments %s", hint)
	}
	return nil
}

func newJID() string {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	return fmt.Sprintf("%x", id)
}

// encode is json.Marshal without the escapes for HTML, which would change the bytes of the owner.
func encode(v any) ([]byte, error) {
	var buffer bytes.Buffer
	e := json.NewEncoder(&buffer)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}
