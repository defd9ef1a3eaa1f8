package millrace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/clients/go/wire"
)

// PeriodicJob is a job that the leader enqueues again and again. Cron or Every says when it is due.
// What is zero has the default of a definition.
type PeriodicJob struct {
	Name  string
	Cron  string        // five fields, such as "0 3 * * *", or a nickname such as @daily
	Every time.Duration // in whole seconds
	TZ    string        // time zone of Cron and Except, such as Europe/Stockholm; UTC if empty

	Args JobArgs // of the job
	// Options of the job may be nil. JID, ScheduledAt, ExpiresAt and Traceparent cannot be set.
	Options *EnqueueOptions

	Jitter     time.Duration  // each job is due up to so much later than its tick
	ExpiresIn  time.Duration  // the job expires so long after it is due
	Grace      *time.Duration // a tick that is later than this is late; a minute if nil
	CatchUp    CatchUp        // what becomes of late ticks
	CatchUpMax int            // of CatchUpAll; 100 if zero
	Overlap    Overlap
	Except     []string // dates without ticks: 2026-12-24, or 2026-12-24..2026-12-26
	Paused     bool
}

// CatchUp says what becomes of ticks that are late. The zero value is CatchUpSkip.
type CatchUp string

// What becomes of ticks that are late.
const (
	CatchUpSkip CatchUp = "skip" // they are missed
	CatchUpLast CatchUp = "last" // the newest brings its job
	CatchUpAll  CatchUp = "all"  // they bring their jobs, up to CatchUpMax
)

// Overlap says what becomes of a tick while the job of the last one waits. The zero value is
// OverlapAllow.
type Overlap string

// What becomes of a tick while the job of the last one waits.
const (
	OverlapAllow Overlap = "allow"
	OverlapSkip  Overlap = "skip"
)

// Defined says what Define, DefineLimits or DefineQueues did, by the names of what is defined.
type Defined struct {
	Made      []string `json:"made"`
	Changed   []string `json:"changed"`
	Forgotten []string `json:"forgotten"` // the source had defined them and does not any more
	Unchanged int      `json:"unchanged"`
}

// Define sets all periodic jobs of a source, which is the name of a program. What the source had
// defined before and does not any more is removed. Call it at each deploy: to repeat it changes
// nothing.
//
// The leader carries it out. Without a leader, Define tries again until the deadline of ctx, or
// until ClientConfig.Timeout. The error is ErrInvalid if a definition breaks a rule, ErrRefused if
// another source has defined one of the jobs or no sidecar leads, ErrUnreachable if there was no
// connection, and ErrUnconfirmed if there was no answer. If an answer is lost and the leader says
// only that it has done this before, Defined is empty.
func (c *Client) Define(ctx context.Context, source string, jobs ...PeriodicJob) (Defined, error) {
	all := make([]json.RawMessage, len(jobs))
	for i, j := range jobs {
		var err error
		if all[i], err = j.Definition(); err != nil {
			return Defined{}, fmt.Errorf("millrace: define %s: %w", source, err)
		}
	}
	return c.defineAll(ctx, source, "periodic_jobs", all)
}

// Definition checks a periodic job as Define does, and returns its definition. It is for test
// helpers.
func (j PeriodicJob) Definition() (json.RawMessage, error) {
	params := paramsOf(j.Args, j.Options)
	o := params.Options
	if o.JID != "" || !o.ScheduledAt.IsZero() || !o.ExpiresAt.IsZero() || o.Traceparent != "" {
		return nil, fmt.Errorf("%w: periodic job %q: each tick sets jid and times of its job", ErrInvalid, j.Name)
	}
	if o.Unique != nil {
		return nil, fmt.Errorf("%w: periodic job %q cannot be unique: set Overlap", ErrInvalid, j.Name)
	}
	r, err := params.prepare(time.Now())
	if err != nil {
		return nil, fmt.Errorf("periodic job %q: %w", j.Name, err)
	}
	var job map[string]json.RawMessage
	if err := json.Unmarshal(r.Body, &job); err != nil {
		return nil, fmt.Errorf("%w: periodic job %q: %w", ErrInvalid, j.Name, err)
	}
	for _, ofTick := range []string{"jid", "retry_count", "enqueued_at"} {
		delete(job, ofTick)
	}
	m := map[string]any{"name": j.Name, "job": job}
	for name, text := range map[string]string{"cron": j.Cron, "tz": j.TZ, "catch_up": string(j.CatchUp), "overlap": string(j.Overlap)} {
		if text != "" {
			m[name] = text
		}
	}
	for name, span := range map[string]time.Duration{"jitter": j.Jitter, "expires_in": j.ExpiresIn} {
		if span != 0 {
			m[name] = span.Seconds()
		}
	}
	if j.Every != 0 {
		m["every"] = j.Every.Seconds()
	}
	if j.Grace != nil {
		m["grace"] = j.Grace.Seconds()
	}
	if j.CatchUpMax != 0 {
		m["catch_up_max"] = j.CatchUpMax
	}
	if len(j.Except) > 0 {
		m["except"] = j.Except
	}
	if j.Paused {
		m["paused"] = true
	}
	return marshal(m)
}

// answerWithin is how long a client waits for the leader before it asks again.
const answerWithin = 5 * time.Second

// leaderReply is the leader's answer to a command.
type leaderReply struct {
	Status  int     `json:"status"`
	Reason  string  `json:"reason"`
	Defined Defined `json:"defined"`
}

// errUnled is returned when the leader has not carried out a command: there is none, or it is busy.
var errUnled = errors.New("no sidecar leads right now")

// ask sends a command until the leader has answered. The leader carries out an id once.
func (c *Client) ask(ctx context.Context, id string, body []byte) (Defined, error) {
	var pause pauses
	sent := false // it may have been carried out
	for {
		if c.ctx.Err() != nil && !sent {
			return Defined{}, ErrClosed
		}
		reply, err := c.askOnce(ctx, id, body)
		switch {
		case err == nil:
			return reply.result()
		case errors.Is(err, errUnled):
		case errors.Is(err, ErrUnreachable):
			if c.cfg.FailFast || unwelcome(err) {
				return Defined{}, err
			}
		default:
			sent = true
		}
		if sleep(ctx, pause.next(longestReturned)) != nil {
			return Defined{}, c.unanswered(err, sent)
		}
	}
}

// unanswered returns the error of a command that is given up.
func (c *Client) unanswered(err error, sent bool) error {
	switch {
	case sent:
		return fmt.Errorf("%w, the leader may have carried it out: %w", ErrUnconfirmed, err)
	case c.ctx.Err() != nil:
		return ErrClosed
	case errors.Is(err, errUnled):
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}

func (r leaderReply) result() (Defined, error) {
	switch r.Status {
	case 200, 204: // 204: it was carried out before, and the answer was lost
		return r.Defined, nil
	case 400:
		return Defined{}, fmt.Errorf("%w: %s", ErrInvalid, r.Reason)
	}
	return Defined{}, fmt.Errorf("%w: %s", ErrRefused, r.Reason)
}

// askOnce sends a command over a connection of its own: commands are rare.
func (c *Client) askOnce(ctx context.Context, id string, body []byte) (reply leaderReply, err error) {
	conn, err := c.hosts.dial(ctx, fmt.Sprintf("millrace producer %s:%d", hostname(), os.Getpid()))
	if err != nil {
		return reply, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer func() { go conn.Close() }() // may wait for a broker that does not answer
	ch, err := conn.Channel()
	if err != nil {
		return reply, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	replies, err := ch.Consume(directReply, "", true, false, false, false, nil)
	if err != nil {
		return reply, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	returned := ch.NotifyReturn(make(chan amqp.Return, 1))
	err = ch.PublishWithContext(ctx, "", wire.LeaderInbox, true, false, amqp.Publishing{
		ContentType: "application/json", ReplyTo: directReply, CorrelationId: id, Body: body,
	})
	if err != nil {
		return reply, fmt.Errorf("%w: %w", errLost, err)
	}
	select {
	case d, open := <-replies:
		if !open {
			return reply, errLost
		}
		err = json.Unmarshal(d.Body, &reply)
	case _, open := <-returned:
		if !open {
			return reply, errLost
		}
		return reply, errUnled
	case <-ctx.Done():
		return reply, fmt.Errorf("no answer: %w", ctx.Err())
	}
	if reply.Status == 503 {
		return reply, fmt.Errorf("%w: %s", errUnled, reply.Reason)
	}
	return reply, err
}
