package wire

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	shared "github.com/millrace-jobs/millrace/clients/go/wire"
)

// Body returns the job as its queue gets it: its owner's bytes, with a missing jid filled in. A job
// of jobs.gated also gets its queue, and a retry the number of its attempt. A dead job that is
// retried starts over: its attempt is 0, and its wait begins now.
func (e *Entry) Body(now time.Time) ([]byte, error) {
	raw, err := e.namedJob()
	if err != nil || e.Stream == ScheduledJobs {
		return raw, err
	}
	if e.Stream == Gated {
		return WithQueue(raw, e.Job.Queue)
	}
	attempt := e.Attempt
	if e.Stream == DeadJobs {
		attempt = 0
		if raw, err = waitingSince(raw, now); err != nil {
			return nil, err
		}
	}
	return shared.SetRaw(raw, "retry_count", strconv.Itoa(attempt))
}

// waitingSince returns a parsed job with enqueued_at set to at, if it has that member. Workers use
// it to compute how long the job waited.
func waitingSince(job []byte, at time.Time) ([]byte, error) {
	if gjson.GetBytes(job, "enqueued_at").Type == gjson.Null {
		return job, nil
	}
	return shared.SetRaw(job, "enqueued_at", seconds(at))
}

// Dead returns the job as a dead job, buried at a time by a user or by the broker. class and
// message say why. Dead returns an error if the record would be larger than MaxRecord.
func (e *Entry) Dead(at time.Time, class, message string) ([]byte, error) {
	raw, err := e.namedJob()
	if err != nil {
		return nil, err
	}
	record := DeadJob(DeadEnvelope{JID: e.JID, DiedAt: at, Attempt: e.Attempt, ErrorClass: class, ErrorMessage: message}, raw)
	if len(record) > MaxRecord {
		return nil, fmt.Errorf("wire: as a dead job it has %d bytes, at most %d are read", len(record), MaxRecord)
	}
	return record, nil
}

// DeadEnvelope is what the record of a dead job has in addition to the job.
type DeadEnvelope struct {
	JID          string
	DiedAt       time.Time
	Attempt      int
	ErrorClass   string
	ErrorMessage string
}

// DeadJob returns a record of dead_jobs with the job's own bytes.
func DeadJob(d DeadEnvelope, job []byte) []byte {
	head := fmt.Sprintf(`{"type":"dead_job","jid":%s,"died_at":%s,"retry_count":%d,"error_class":%s,"error_message":%s,"job":`,
		shared.Quote(d.JID), strconv.FormatFloat(Seconds(d.DiedAt), 'f', -1, 64), d.Attempt,
		shared.Quote(Shorten(d.ErrorClass, maxErrorClass)), shared.Quote(Shorten(d.ErrorMessage, maxErrorMessage)))
	out := make([]byte, 0, len(head)+len(job)+1)
	return append(append(append(out, head...), job...), '}')
}

// ScheduledJob returns a record of scheduled_jobs with the job's own bytes.
func ScheduledJob(jid string, at float64, job []byte) []byte {
	head := fmt.Sprintf(`{"type":"scheduled_job","jid":%s,"scheduled_at":%s,"job":`, shared.Quote(jid), strconv.FormatFloat(at, 'f', -1, 64))
	return slices.Concat([]byte(head), job, []byte{'}'})
}

// Limits of the error in a dead job, in bytes. JSON can take six times as many.
const (
	maxErrorClass   = 1 << 10
	maxErrorMessage = 64 << 10
)

// namedJob returns the job with its jid filled in.
func (e *Entry) namedJob() ([]byte, error) {
	switch e.Naming {
	case Named:
		return e.Job.Raw, nil
	case Nameless: // and it was parsed
		if !gjson.GetBytes(e.Job.Raw, "jid").Exists() { // null or empty otherwise
			return fmt.Appendf(trimClose(e.Job.Raw), `,"jid":%s}`, shared.Quote(e.Job.JID)), nil // it has a class before
		}
	}
	return withJID(e.Job.Raw, e.Job.JID)
}

// withJID returns a parsed job with its jid filled in.
func withJID(raw []byte, jid string) ([]byte, error) {
	// Most jobs have one, and need no full parse.
	if has := gjson.GetBytes(raw, "jid"); has.Type == gjson.String && has.Str != "" {
		return raw, nil
	}
	if _, err := shared.ParseObject(string(raw), shared.JobMembers); err != nil {
		return nil, err
	}
	return shared.SetRaw(raw, "jid", shared.Quote(jid))
}

// WithEntryJID returns a record of an entry stream with the jid of e, if the record has none. A
// derived jid depends on the offset, and would change when the record is written again.
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

// Item returns the entry as the REST API shows it: the bytes of the record, with one more member. A
// job of jobs.gated becomes the member job of the item, as in the other streams.
func (e *Entry) Item(first int64) []byte {
	extra := fmt.Sprintf(`,"millrace":{"offset":%d,"first_offset":%d,"at":%s,"queue":%s,"class":%s,"attempt":%d}}`,
		e.Offset, first, strconv.FormatFloat(Seconds(e.At), 'f', -1, 64), shared.Quote(e.Job.Queue), shared.Quote(e.Job.Class), e.Attempt)
	if e.Stream == Gated {
		return slices.Concat([]byte(`{"jid":`), []byte(shared.Quote(e.JID)), []byte(`,"job":`), e.Raw, []byte(extra))
	}
	return append(trimClose(e.Raw), extra...)
}

// seconds formats a time for a record. It writes milliseconds if the number would be taken for
// those.
func seconds(t time.Time) string {
	s := Seconds(t)
	if s > shared.MillisAbove {
		s *= 1000
	}
	return strconv.FormatFloat(s, 'f', -1, 64)
}
