package wire

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// Body is the job as its queue gets it at a time: its owner's bytes, with the jid filled in if it is missing and, for what failed before,
// the number of its attempt. A dead job that is retried starts anew, and waits from then on.
func (e *Entry) Body(now time.Time) ([]byte, error) {
	raw, err := withJID(e.Job.Raw, e.Job.JID)
	if err != nil || e.Stream == ScheduledJobs {
		return raw, err
	}
	if e.Stream == Gated {
		return WithQueue(raw, e.Job.Queue)
	}
	attempt := e.Attempt
	if e.Stream == DeadJobs { // it starts anew
		attempt = 0
		if raw, err = waitingSince(raw, now); err != nil {
			return nil, err
		}
	}
	return setRaw(raw, "retry_count", strconv.Itoa(attempt))
}

// waitingSince is a job that was read, whose enqueued_at, if it has one, is another time: from it a worker tells how long the job waited.
func waitingSince(job []byte, at time.Time) ([]byte, error) {
	if gjson.GetBytes(job, "enqueued_at").Type == gjson.Null { // as it is where there is none
		return job, nil
	}
	return setRaw(job, "enqueued_at", seconds(at))
}

// Dead is the entry's job as a dead job, buried at a time for a reason that a person or the broker gave. It fails where the result
// would be larger than what is read.
func (e *Entry) Dead(at time.Time, class, message string) ([]byte, error) {
	raw, err := withJID(e.Job.Raw, e.Job.JID)
	if err != nil {
		return nil, err
	}
	record := DeadJob(DeadEnvelope{JID: e.JID, DiedAt: at, Attempt: e.Attempt, ErrorClass: class, ErrorMessage: message}, raw)
	if len(record) > MaxRecord {
		return nil, fmt.Errorf("wire: as a dead job it has %d bytes, at most %d are read", len(record), MaxRecord)
	}
	return record, nil
}

// DeadEnvelope is what is said of a dead job beside the job itself.
type DeadEnvelope struct {
	JID          string
	DiedAt       time.Time
	Attempt      int
	ErrorClass   string
	ErrorMessage string
}

// DeadJob writes a record of dead_jobs around a job's own bytes.
func DeadJob(d DeadEnvelope, job []byte) []byte {
	head := fmt.Sprintf(`{"type":"dead_job","jid":%s,"died_at":%s,"retry_count":%d,"error_class":%s,"error_message":%s,"job":`,
		quote(d.JID), strconv.FormatFloat(Seconds(d.DiedAt), 'f', -1, 64), d.Attempt,
		quote(Shorten(d.ErrorClass, maxErrorClass)), quote(Shorten(d.ErrorMessage, maxErrorMessage)))
	out := make([]byte, 0, len(head)+len(job)+1)
	return append(append(append(out, head...), job...), '}')
}

// ScheduledJob writes a record of scheduled_jobs around a job's own bytes.
func ScheduledJob(jid string, at float64, job []byte) []byte {
	head := fmt.Sprintf(`{"type":"scheduled_job","jid":%s,"scheduled_at":%s,"job":`, quote(jid), strconv.FormatFloat(at, 'f', -1, 64))
	return slices.Concat([]byte(head), job, []byte{'}'})
}

// What a dead job says of its error at most, in bytes: writing it down can take six times as many.
const (
	maxErrorClass   = 1 << 10
	maxErrorMessage = 64 << 10
)

// withJID is a job that was read, with its jid filled in.
func withJID(raw []byte, jid string) ([]byte, error) {
	if has := gjson.GetBytes(raw, "jid"); has.Type == gjson.String && has.Str != "" { // most have one: no need to look at all of them
		return raw, nil
	}
	if _, err := parseObject(string(raw), jobMembers); err != nil {
		return nil, err
	}
	return setRaw(raw, "jid", quote(jid))
}

// setRaw sets one member of an object and leaves every other byte alone.
func setRaw(raw []byte, name, value string) ([]byte, error) {
	out, err := sjson.SetRawBytesOptions(raw, name, []byte(value), &sjson.Options{Optimistic: false})
	if err != nil {
		return nil, fmt.Errorf("wire: set %s: %w", name, err)
	}
	return out, nil
}

// maxShort is the longest AMQP short string.
const maxShort = 255

// Property is s if it may stand in a message property, else "". RabbitMQ 4.3 closes the connection over the type "amqp-1.0".
func Property(s string) string {
	if len(s) > maxShort || !utf8.ValidString(s) || s == "amqp-1.0" {
		return ""
	}
	return s
}

// Traceparent is v if it is a traceparent that may be passed on, else "".
func Traceparent(v any) string {
	s, ok := v.(string)
	if !ok || len(s) > maxShort || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return ""
	}
	return s
}

// TraceOf is the traceparent that a message came with, if it may be passed on, else "".
func TraceOf(headers map[string]any) string { return Traceparent(headers[HeaderTraceparent]) }

// TraceHeaders are the headers of a message that has nothing else to say than its trace.
func TraceHeaders(trace string) map[string]any {
	if trace == "" {
		return nil
	}
	return map[string]any{HeaderTraceparent: trace}
}

// WithQueue is a job with its queue filled in, if it names none: otherwise what comes back would go to the default queue.
func WithQueue(job []byte, queue string) ([]byte, error) {
	o, err := parseObject(string(job), jobMembers)
	if err != nil {
		return nil, err
	}
	if o.has("queue") || CheckQueueName(queue) != nil {
		return job, nil
	}
	return setRaw(job, "queue", quote(queue))
}

// ForQueue is a job that was read, with its queue set, whichever it named.
func ForQueue(job []byte, queue string) ([]byte, error) {
	if err := CheckQueueName(queue); err != nil {
		return nil, err
	}
	o, err := parseObject(string(job), jobMembers)
	if err != nil {
		return nil, err
	}
	if o.at("queue").String() == queue {
		return job, nil
	}
	return setRaw(job, "queue", quote(queue))
}

// WithEntryJID is a record of an entry stream with the jid that it was read with, if it has none itself: one derived from where it stands
// would change with its place.
func WithEntryJID(record []byte, e *Entry) ([]byte, error) {
	if e.Stream == Gated {
		return withJID(record, e.JID)
	}
	o, err := parseObject(string(record), entryMembers)
	if err != nil {
		return nil, err
	}
	job, err := parseObject(o.at("job").Raw, jobMembers)
	if err != nil {
		return nil, err
	}
	own, _ := o.text("jid")
	inner, _ := job.text("jid")
	if own != "" || inner != "" {
		return record, nil
	}
	return setRaw(record, "jid", quote(e.JID))
}
