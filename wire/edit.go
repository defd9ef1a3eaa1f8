package wire

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	shared "github.com/millrace-jobs/millrace/clients/go/wire"
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
	return shared.SetRaw(raw, "retry_count", strconv.Itoa(attempt))
}

// waitingSince is a job that was read, whose enqueued_at, if it has one, is another time: from it a worker tells how long the job waited.
func waitingSince(job []byte, at time.Time) ([]byte, error) {
	if gjson.GetBytes(job, "enqueued_at").Type == gjson.Null { // as it is where there is none
		return job, nil
	}
	return shared.SetRaw(job, "enqueued_at", seconds(at))
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
		shared.Quote(d.JID), strconv.FormatFloat(Seconds(d.DiedAt), 'f', -1, 64), d.Attempt,
		shared.Quote(Shorten(d.ErrorClass, maxErrorClass)), shared.Quote(Shorten(d.ErrorMessage, maxErrorMessage)))
	out := make([]byte, 0, len(head)+len(job)+1)
	return append(append(append(out, head...), job...), '}')
}

// ScheduledJob writes a record of scheduled_jobs around a job's own bytes.
func ScheduledJob(jid string, at float64, job []byte) []byte {
	head := fmt.Sprintf(`{"type":"scheduled_job","jid":%s,"scheduled_at":%s,"job":`, shared.Quote(jid), strconv.FormatFloat(at, 'f', -1, 64))
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
	if _, err := shared.ParseObject(string(raw), shared.JobMembers); err != nil {
		return nil, err
	}
	return shared.SetRaw(raw, "jid", shared.Quote(jid))
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

// ForQueue is a job that was read, with its queue set, whichever it named.
func ForQueue(job []byte, queue string) ([]byte, error) {
	if err := CheckQueueName(queue); err != nil {
		return nil, err
	}
	o, err := shared.ParseObject(string(job), shared.JobMembers)
	if err != nil {
		return nil, err
	}
	if o.At("queue").String() == queue {
		return job, nil
	}
	return shared.SetRaw(job, "queue", shared.Quote(queue))
}

// WithEntryJID is a record of an entry stream with the jid that it was read with, if it has none itself: one derived from where it stands
// would change with its place.
func WithEntryJID(record []byte, e *Entry) ([]byte, error) {
	if e.Stream == Gated {
		return withJID(record, e.JID)
	}
	o, err := shared.ParseObject(string(record), entryMembers)
	if err != nil {
		return nil, err
	}
	job, err := shared.ParseObject(o.At("job").Raw, shared.JobMembers)
	if err != nil {
		return nil, err
	}
	own, _ := o.Text("jid")
	inner, _ := job.Text("jid")
	if own != "" || inner != "" {
		return record, nil
	}
	return shared.SetRaw(record, "jid", shared.Quote(e.JID))
}
