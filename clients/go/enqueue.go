package millrace

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/clients/go/wire"
)

// EnqueueOptions are the options of a job. The zero value sets nothing.
type EnqueueOptions struct {
	Queue       string    // "default" if empty
	ScheduledAt time.Time // when the job is due; now if zero
	MaxAttempts int       // number of attempts; 26 if zero, 1 for no retries
	Priority    int       // 0 to 10, the highest first
	Tags        []string  // to find jobs by
	// Limited has the limits of the installation count the job, if they are about its queue and
	// class. A job with a LimitKey is limited anyway.
	Limited   bool
	LimitKey  string        // what limits per key count the job under, such as a customer
	Unique    *Unique       // makes other jobs with the same key duplicates, which do not run
	JID       string        // 16 random bytes in hex if empty
	ExpiresAt time.Time     // a job that has not begun by then becomes a dead job
	Timeout   time.Duration // how long an attempt may run
	// NoDead keeps no dead job. A job that has used up its attempts, or has expired, is discarded.
	NoDead      bool
	Backtrace   int            // lines of a failure's stack to keep; 20 if zero, none if negative
	Fields      map[string]any // the job's own members, such as a tenant or a locale
	Traceparent string         // W3C trace context
}

// EnqueueParams is a job to be enqueued. EnqueueBulk takes it, and client middleware may change it.
type EnqueueParams struct {
	Args    JobArgs
	Options EnqueueOptions

	decision *Decision // where EnqueueUnique wants the leader's decision
}

// Class returns the job's class, or "" if it has no args.
func (p EnqueueParams) Class() string {
	if p.Args == nil {
		return ""
	}
	return p.Args.Kind()
}

// paramsOf returns the job of a call, with the options of its kind.
func paramsOf(args JobArgs, options *EnqueueOptions) EnqueueParams {
	p := EnqueueParams{Args: args}
	if options != nil {
		p.Options = *options
	}
	return p.withDefaults()
}

// withDefaults returns the job with those options of its kind that the job does not set.
func (p EnqueueParams) withDefaults() EnqueueParams {
	if args, ok := p.Args.(JobArgsWithOptions); ok {
		p.Options = p.Options.or(args.EnqueueOptions())
	}
	return p
}

// or returns o, with those options of other that o does not set.
func (o EnqueueOptions) or(other EnqueueOptions) EnqueueOptions {
	o.Queue = cmp.Or(o.Queue, other.Queue)
	o.MaxAttempts = cmp.Or(o.MaxAttempts, other.MaxAttempts)
	o.Priority = cmp.Or(o.Priority, other.Priority)
	o.JID = cmp.Or(o.JID, other.JID)
	o.Timeout = cmp.Or(o.Timeout, other.Timeout)
	o.NoDead = o.NoDead || other.NoDead
	o.Backtrace = cmp.Or(o.Backtrace, other.Backtrace)
	o.Traceparent = cmp.Or(o.Traceparent, other.Traceparent)
	o.Limited, o.LimitKey = o.Limited || other.Limited, cmp.Or(o.LimitKey, other.LimitKey)
	o.Unique = cmp.Or(o.Unique, other.Unique)
	if o.ScheduledAt.IsZero() {
		o.ScheduledAt = other.ScheduledAt
	}
	if o.ExpiresAt.IsZero() {
		o.ExpiresAt = other.ExpiresAt
	}
	if o.Tags == nil {
		o.Tags = other.Tags
	}
	if len(other.Fields) > 0 {
		fields := maps.Clone(other.Fields)
		maps.Copy(fields, o.Fields)
		o.Fields = fields
	}
	return o
}

// ready is a job that is checked and encoded.
type ready struct {
	jid string
	message
}

// reserved are the members that the format defines.
var reserved = map[string]bool{
	"jid": true, "class": true, "args": true, "queue": true, "retry": true, "retry_count": true, "priority": true, "tags": true,
	"expires_at": true, "timeout": true, "dead": true, "backtrace": true, "enqueued_at": true, "created_at": true, "failed_at": true,
	"error_class": true, "error_message": true, "millrace": true, "gate": true,
}

// prepare checks a job and encodes it.
func (p EnqueueParams) prepare(now time.Time) (ready, error) {
	class, o := p.Class(), p.Options
	o.Queue = cmp.Or(o.Queue, wire.DefaultQueue)
	if o.JID == "" {
		o.JID = newJID()
	}
	if p.Args == nil {
		return ready{}, fmt.Errorf("%w: it has no args", ErrInvalid)
	}
	if err := o.check(class); err != nil {
		return ready{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	members := o.members(class, listOf(p.Args), now)
	body, err := marshal(members)
	if err == nil {
		err = checkText(body, members)
	}
	if err != nil {
		return ready{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	r := ready{jid: o.JID, message: message{exchange: wire.ExchangeDirect, key: o.Queue}}
	switch {
	case o.Unique != nil || o.ScheduledAt.IsZero() && o.limited():
		r.exchange, r.key = "", wire.GatedJobs
	case !o.ScheduledAt.IsZero():
		r.exchange, r.key = "", wire.ScheduledJobs
		body = scheduled(o.JID, o.ScheduledAt, body)
	}
	if len(body) > wire.MaxRecord {
		return ready{}, fmt.Errorf("%w: it has %d bytes, at most %d are allowed", ErrInvalid, len(body), wire.MaxRecord)
	}
	r.Publishing = publishing(o.JID, class, uint8(o.Priority), o.Traceparent, now, body)
	return r, nil
}

func (o EnqueueOptions) check(class string) error {
	switch {
	case class == "":
		return errors.New("it has no class")
	case !utf8.ValidString(class) || !utf8.ValidString(o.JID):
		return errors.New("class or jid is not UTF-8")
	case o.Priority < 0 || o.Priority > wire.MaxPriority:
		return fmt.Errorf("priority is %d, 0 to %d are allowed", o.Priority, wire.MaxPriority)
	case o.MaxAttempts < 0:
		return fmt.Errorf("MaxAttempts is %d", o.MaxAttempts)
	case o.Timeout < 0:
		return fmt.Errorf("timeout is %v", o.Timeout)
	case class == wire.MessageClass && o.Queue != wire.MessageQueue:
		return fmt.Errorf("a message waits in the queue %s, not in %q", wire.MessageQueue, o.Queue)
	case class == wire.MessageClass && o.limited():
		return errors.New("a delayed message cannot be limited")
	case class == wire.MessageClass && o.Unique != nil:
		return errors.New("a delayed message cannot be unique")
	}
	if err := o.Unique.check(); err != nil {
		return err
	}
	if err := wire.CheckLimitKey(o.LimitKey); err != nil {
		return err
	}
	for name := range o.Fields {
		if reserved[name] {
			return fmt.Errorf("field %q is a member of the job format: set the option for it, or choose another name", name)
		}
	}
	return wire.CheckQueueName(o.Queue)
}

// members returns the members of the encoded job.
func (o EnqueueOptions) members(class string, args []any, now time.Time) map[string]any {
	m := map[string]any{"jid": o.JID, "class": class, "args": args, "queue": o.Queue, "retry_count": 0}
	if o.ScheduledAt.IsZero() {
		m["enqueued_at"] = wire.Seconds(now)
	} else {
		m["created_at"] = wire.Seconds(now)
	}
	o.addTo(m)
	maps.Copy(m, o.Fields)
	return m
}

func (o EnqueueOptions) limited() bool { return o.Limited || o.LimitKey != "" }

func (o EnqueueOptions) addTo(m map[string]any) {
	if o.MaxAttempts > 0 {
		m["retry"] = o.MaxAttempts - 1
	}
	if o.Priority > 0 {
		m["priority"] = o.Priority
	}
	if len(o.Tags) > 0 {
		m["tags"] = o.Tags
	}
	if !o.ExpiresAt.IsZero() {
		m["expires_at"] = wire.Seconds(o.ExpiresAt)
	}
	if o.limited() || o.Unique != nil {
		m["gate"] = o.gate()
	}
	if o.Timeout > 0 {
		m["timeout"] = o.Timeout.Seconds()
	}
	if o.NoDead {
		m["dead"] = false
	}
	if o.Backtrace != 0 {
		m["backtrace"] = max(o.Backtrace, 0)
	}
}

func (o EnqueueOptions) gate() map[string]any {
	gate := map[string]any{}
	if o.LimitKey != "" {
		gate["key"] = o.LimitKey
	}
	if o.Unique != nil {
		gate["unique"] = o.Unique.members()
		if !o.ScheduledAt.IsZero() { // a unique job waits in jobs.gated until it is due
			gate["at"] = wire.Seconds(o.ScheduledAt)
		}
	}
	return gate
}

func scheduled(jid string, at time.Time, job []byte) []byte {
	body, err := marshal(map[string]any{
		"type": "scheduled_job", "jid": jid, "scheduled_at": wire.Seconds(at), "job": json.RawMessage(job),
	})
	if err != nil {
		panic(fmt.Sprintf("millrace: a job that was just written: %v", err))
	}
	return body
}

// publishing returns a message with the properties of everything that a client publishes about a
// job.
func publishing(jid, class string, priority uint8, traceparent string, now time.Time, body []byte) amqp.Publishing {
	p := amqp.Publishing{
		ContentType: "application/json", DeliveryMode: amqp.Persistent, MessageId: wire.Property(jid), Type: wire.Property(class),
		Timestamp: now, Priority: priority, Body: body,
	}
	if t := wire.Traceparent(traceparent); t != "" {
		p.Headers = amqp.Table{headerTraceparent: t}
	}
	return p
}

// marshal encodes JSON without escapes for HTML.
func marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimRight(out.Bytes(), "\n"), err
}

func newJID() string {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never returns an error
	return hex.EncodeToString(id)
}
