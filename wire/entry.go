package wire

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"time"

	shared "github.com/millrace-jobs/millrace/clients/go/wire"
)

// Entry is a scheduled job, a retry, a dead job or a job that waits for its queue, at one offset of
// a stream.
type Entry struct {
	Stream       string
	Offset       int64
	JID          string
	At           time.Time // when it is due, or died
	Attempt      int       // retry_count
	ErrorClass   string
	ErrorMessage string
	Job          Job
	Raw          []byte // the record, byte for byte
	JobAt        int    // where Job.Raw begins in it
	Naming       Naming // whether the job has a jid of its own
}

// Naming says whether the job of an entry has a jid of its own.
type Naming uint8

// The first is that of an entry whose job was not parsed.
const (
	NamingUnknown Naming = iota
	Named
	Nameless // Job.JID is the entry's
)

// kind describes an entry stream whose records are envelopes around a job.
type kind struct {
	record string // the value of "type"
	at     string // the member with the time
	form   string // shown in the reason when a record has another form
}

var kinds = map[string]kind{
	ScheduledJobs: {"scheduled_job", "scheduled_at", `{"type":"scheduled_job","jid":…,"scheduled_at":seconds,"job":{"class":…,"args":[…],"queue":…}}`},
	Retries:       {"retry", "retry_at", `{"type":"retry","jid":…,"retry_at":seconds,"retry_count":n,"error_class":…,"error_message":…,"job":{…}}`},
	DeadJobs:      {"dead_job", "died_at", `{"type":"dead_job","jid":…,"died_at":seconds,"error_class":…,"error_message":…,"job":{…}}`},
}

var entryMembers = shared.Set("type", "jid", "scheduled_at", "retry_at", "died_at", "retry_count", "failed_at", "error_class", "error_message",
	"job", "millrace")

// ParseEntry parses the record at an offset of an entry stream. A body of jobs.gated is the result
// of EntryBody. It has no due time, so At is zero.
func ParseEntry(stream string, offset int64, body []byte) (Entry, error) {
	depth := shared.MaxEntryDepth
	if stream == Gated {
		depth = shared.MaxJobDepth
	} else if _, known := kinds[stream]; !known {
		return Entry{}, fmt.Errorf("%s holds no entries", stream)
	}
	if err := cmp.Or(shared.CheckRecord(body), shared.CheckDepth(body, depth)); err != nil {
		return Entry{}, err
	}
	return RereadEntry(stream, offset, body)
}

// A record of jobs.gated is a bare job. It comes through the alternate exchange of jobs.direct or
// jobs.route, because no queue was bound for it, or it was published to the stream itself.

// EntryOf parses one record of an entry stream. A job of jobs.gated is due when it arrived, or at
// the zero time if the transport does not report that.
func EntryOf(r *Record) (Entry, error) {
	body, err := EntryBody(r)
	if err != nil {
		return Entry{}, err
	}
	e, err := ParseEntry(r.Stream, r.Offset, body)
	if r.Stream == Gated {
		e.At = r.Time
	}
	return e, err
}

// EntryBody returns a record of an entry stream as it is stored and shown. For jobs.gated it is the
// job with the queue and the priority of its publish, so that the job itself says where it belongs.
func EntryBody(r *Record) ([]byte, error) {
	if r.Stream != Gated || r.Fault != "" {
		return r.Body, nil
	}
	job, err := shared.ParseJob(r.Body)
	if err != nil {
		return nil, err
	}
	body := r.Body
	if through := []string{ExchangeDirect, ExchangeRoute, ExchangeFire, Unrouted}; slices.Contains(through, r.Exchange) {
		if body, err = shared.ForQueue(body, r.Key); err != nil {
			return nil, err
		}
	}
	if priority := min(r.Priority, MaxPriority); priority > job.Priority {
		if body, err = shared.SetRaw(body, "priority", strconv.Itoa(int(priority))); err != nil {
			return nil, err
		}
	}
	return body, nil
}

// RereadEntry parses a record that ParseEntry has accepted before. It does not check again that the
// record is JSON, and how deep it is nested.
func RereadEntry(stream string, offset int64, body []byte) (Entry, error) {
	e := Entry{Stream: stream, Offset: offset, Raw: body}
	if err := e.read(); err != nil {
		return Entry{}, err
	}
	if e.JID == "" && e.Job.JID == "" && len(body) > maxNameless {
		return Entry{}, fmt.Errorf("record has %d bytes and no jid: at most %d are read then", len(body), maxNameless)
	}
	e.name()
	return e, nil
}

// maxNameless leaves room for the jid that a record gets when it is carried over.
const maxNameless = MaxRecord - 64

// read reads the members of the record.
func (e *Entry) read() (err error) {
	if e.Stream == Gated {
		e.Job, err = shared.RereadJob(string(e.Raw))
		e.Attempt = e.Job.RetryCount
		return err
	}
	k := kinds[e.Stream]
	o, err := shared.ParseObject(string(e.Raw), entryMembers)
	if err != nil {
		return err
	}
	if err := k.check(o); err != nil {
		return err
	}
	if e.At, err = o.Time(k.at); err != nil {
		return err
	}
	if e.JID, err = o.Text("jid"); err != nil {
		return err
	}
	job := o.At("job")
	if e.Job, err = shared.RereadJob(job.Raw); err != nil {
		return err
	}
	e.JobAt = job.Index
	e.Attempt = e.Job.RetryCount
	if o.Has("retry_count") {
		n, err := o.Count("retry_count", 1<<31)
		if err != nil {
			return err
		}
		e.Attempt = int(n)
	}
	e.ErrorClass, e.ErrorMessage = o.Loose("error_class"), o.Loose("error_message")
	return nil
}

func (k kind) check(o shared.Object) error {
	if !o.At("job").IsObject() {
		return fmt.Errorf("member \"job\" is missing or no object: the form is %s", k.form)
	}
	if o.Has("type") && o.At("type").String() != k.record {
		return fmt.Errorf("member \"type\" is %q: the form is %s", Shorten(o.Loose("type"), 40), k.form)
	}
	if !o.Has(k.at) {
		return fmt.Errorf("member %q is missing: the form is %s", k.at, k.form)
	}
	if _, reserved := o.Get("millrace"); reserved {
		return fmt.Errorf("member \"millrace\" is reserved: leave it out")
	}
	return nil
}

// name fills in a missing jid. An envelope without one takes the job's, and a job without one takes
// the envelope's. If both are missing, name derives one from the record's place and bytes. So every
// reader derives the same jid, and a stream that is created again does not repeat it.
func (e *Entry) name() {
	if e.JID == "" {
		e.JID = e.Job.JID
	}
	if e.JID == "" {
		e.JID = DerivedJID(e.Stream, e.Offset, e.Raw)
	}
	e.Naming = Named
	if e.Job.JID == "" {
		e.Job.JID, e.Naming = e.JID, Nameless
	}
}

// DerivedJID returns the jid of a record that has none.
func DerivedJID(stream string, offset int64, raw []byte) string {
	h := sha256.New()
	h.Write([]byte(stream))
	h.Write([]byte{0})
	h.Write(strconv.AppendInt(nil, offset, 10))
	h.Write([]byte{0})
	h.Write(raw)
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// SamePublish reports whether the later entry b repeats the publish of a: it has the same jid, time
// and bytes. For a retry, the same failed attempt of the same job is enough. For a job of
// jobs.gated the time does not matter.
func SamePublish(a, b Entry) bool {
	if a.Stream != b.Stream || a.JID != b.JID {
		return false
	}
	if a.Stream == Gated {
		return string(a.Raw) == string(b.Raw)
	}
	if a.Stream == Retries && a.Attempt == b.Attempt && a.Job.Class == b.Job.Class {
		return true
	}
	return a.At.Equal(b.At) && string(a.Raw) == string(b.Raw)
}
