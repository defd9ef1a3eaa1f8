package millrace

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// Options are what may be said of a job beside its class and args. The zero value says nothing.
type Options struct {
	Queue       string         // default "default"
	Retry       *int           // how often at most it is retried: see Retries. Default 25
	Priority    int            // 0 to 10, the highest first
	Tags        []string       // to find jobs by
	JID         string         // default: 16 random bytes in hex
	ExpiresAt   time.Time      // a job that has not begun by then becomes a dead job
	Timeout     time.Duration  // how long it may run
	KeepNot     bool           // do not keep it in the dead set when it is given up
	Backtrace   int            // how many lines of a failure's stack are kept
	Fields      map[string]any // members of your own
	Traceparent string         // W3C trace context
}

// Retries is n as Options take it.
func Retries(n int) *int { return &n }

// NewJob is a job that is to be enqueued.
type NewJob struct {
	Class string
	Args  []any
	At    time.Time // zero: now
	Options
}

// ready is a job that is checked and written.
type ready struct {
	jid string
	message
}

// reserved are the members that the format names.
var reserved = map[string]bool{
	"jid": true, "class": true, "args": true, "queue": true, "retry": true, "retry_count": true, "priority": true, "tags": true,
	"expires_at": true, "timeout": true, "dead": true, "backtrace": true, "enqueued_at": true, "created_at": true, "failed_at": true,
	"error_class": true, "error_message": true, "millrace": true,
}

// prepare checks a job and writes it down.
func (n NewJob) prepare(now time.Time) (ready, error) {
	if n.Queue == "" {
		n.Queue = wire.DefaultQueue
	}
	if n.JID == "" {
		n.JID = newJID()
	}
	if err := n.check(); err != nil {
		return ready{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	body, err := marshal(n.members(now))
	if err != nil {
		return ready{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	r := ready{jid: n.JID, message: message{exchange: wire.ExchangeDirect, key: n.Queue}}
	if !n.At.IsZero() {
		r.exchange, r.key = "", wire.ScheduledJobs
		body = scheduled(n.JID, n.At, body)
	}
	if len(body) > wire.MaxRecord {
		return ready{}, fmt.Errorf("%w: it has %d bytes, at most %d are allowed", ErrInvalid, len(body), wire.MaxRecord)
	}
	r.Publishing = publishing(n.JID, n.Class, uint8(n.Priority), n.Traceparent, now, body)
	return r, nil
}

func (n NewJob) check() error {
	switch {
	case n.Class == "":
		return fmt.Errorf("it has no class")
	case !utf8.ValidString(n.Class) || !utf8.ValidString(n.JID):
		return fmt.Errorf("class or jid is not UTF-8")
	case n.Priority < 0 || n.Priority > wire.MaxPriority:
		return fmt.Errorf("priority is %d, 0 to %d are allowed", n.Priority, wire.MaxPriority)
	case n.Retry != nil && *n.Retry < 0:
		return fmt.Errorf("retry is %d", *n.Retry)
	case n.Timeout < 0:
		return fmt.Errorf("timeout is %v", n.Timeout)
	}
	for name := range n.Fields {
		if reserved[name] {
			return fmt.Errorf("field %q is named by the format: there is an option for it, or it is not yours", name)
		}
	}
	return errors.Join(wire.CheckQueueName(n.Queue), checkText(n.Args), checkText(n.Fields))
}

// members are the job as it is written.
func (n NewJob) members(now time.Time) map[string]any {
	m := map[string]any{"jid": n.JID, "class": n.Class, "args": n.Args, "queue": n.Queue, "retry_count": 0}
	if n.Args == nil {
		m["args"] = []any{}
	}
	if n.At.IsZero() {
		m["enqueued_at"] = wire.Seconds(now)
	} else {
		m["created_at"] = wire.Seconds(now)
	}
	n.addOptions(m)
	for name, value := range n.Fields {
		m[name] = value
	}
	return m
}

func (n NewJob) addOptions(m map[string]any) {
	if n.Retry != nil {
		m["retry"] = *n.Retry
	}
	if n.Priority > 0 {
		m["priority"] = n.Priority
	}
	if len(n.Tags) > 0 {
		m["tags"] = n.Tags
	}
	if !n.ExpiresAt.IsZero() {
		m["expires_at"] = wire.Seconds(n.ExpiresAt)
	}
	if n.Timeout > 0 {
		m["timeout"] = n.Timeout.Seconds()
	}
	if n.KeepNot {
		m["dead"] = false
	}
	if n.Backtrace > 0 {
		m["backtrace"] = n.Backtrace
	}
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

// publishing has the properties of everything that a client publishes about a job.
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

// marshal writes JSON as people write it: without escapes for HTML.
func marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimRight(out.Bytes(), "\n"), err
}

// checkText finds text that is not UTF-8, which encoding/json would change silently. What is in structs is not looked at.
func checkText(v any) error {
	switch v := v.(type) {
	case string:
		if !utf8.ValidString(v) {
			return fmt.Errorf("the text %.40q is not UTF-8", v)
		}
	case []any:
		for _, item := range v {
			if err := checkText(item); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, item := range v {
			if err := errors.Join(checkText(name), checkText(item)); err != nil {
				return err
			}
		}
	}
	return nil
}

func newJID() string {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails, by its contract
	return hex.EncodeToString(id)
}
