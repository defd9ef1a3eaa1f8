package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"time"

	shared "github.com/millrace-jobs/millrace/clients/go/wire"
)

// Entry is a job with a time, or a dead job, at one offset of a stream.
type Entry struct {
	Stream       string
	Offset       int64
	JID          string
	At           time.Time // due, or died
	Attempt      int       // retry_count
	ErrorClass   string
	ErrorMessage string
	Job          Job
	Raw          []byte // the record, byte for byte
}

// kind is what differs between the entry streams whose records are envelopes around a job.
type kind struct {
	record string // the value of "type"
	at     string // the member with the time
	form   string // shown to whoever used another form
}

var kinds = map[string]kind{
	ScheduledJobs: {"scheduled_job", "scheduled_at", `{"type":"scheduled_job","jid":…,"scheduled_at":seconds,"job":{"class":…,"args":[…],"queue":…}}`},
	Retries:       {"retry", "retry_at", `{"type":"retry","jid":…,"retry_at":seconds,"retry_count":n,"error_class":…,"error_message":…,"job":{…}}`},
	DeadJobs:      {"dead_job", "died_at", `{"type":"dead_job","jid":…,"died_at":seconds,"error_class":…,"error_message":…,"job":{…}}`},
}

var entryMembers = shared.Set("type", "jid", "scheduled_at", "retry_at", "died_at", "retry_count", "failed_at", "error_class", "error_message",
	"job", "millrace")

// ParseEntry reads what stands at an offset of an entry stream. Of jobs.gated that is what EntryBody returns, and when it is due the
// body does not say.
func ParseEntry(stream string, offset int64, body []byte) (Entry, error) {
	if stream == Gated {
		return parseGated(offset, body)
	}
	if _, known := kinds[stream]; !known {
		return Entry{}, fmt.Errorf("%s holds no entries", stream)
	}
	if err := shared.CheckRecord(body); err != nil {
		return Entry{}, err
	}
	if err := shared.CheckDepth(body, shared.MaxEntryDepth); err != nil {
		return Entry{}, err
	}
	return RereadEntry(stream, offset, body)
}

// RereadEntry reads a record that ParseEntry has read before: that it is JSON, and not nested too deep, is known.
func RereadEntry(stream string, offset int64, body []byte) (Entry, error) {
	if stream == Gated {
		job, err := shared.RereadJob(string(body))
		return gatedEntry(offset, job, body), err
	}
	k := kinds[stream]
	o, err := shared.ParseObject(string(body), entryMembers)
	if err != nil {
		return Entry{}, err
	}
	if err := k.check(o); err != nil {
		return Entry{}, err
	}
	e := Entry{Stream: stream, Offset: offset, Raw: body}
	if err := e.read(k, o); err != nil {
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

func (e *Entry) read(k kind, o shared.Object) (err error) {
	if e.At, err = shared.ParseTime(k.at, o.At(k.at)); err != nil {
		return err
	}
	if e.JID, err = o.Text("jid"); err != nil {
		return err
	}
	if e.Job, err = shared.RereadJob(o.At("job").Raw); err != nil {
		return err
	}
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

// name fills in a missing jid: the job's for the envelope, the envelope's for the job, else one derived from where the record stands
// and what it holds, so that every reader derives the same and a stream made anew does not repeat it.
func (e *Entry) name() {
	if e.JID == "" {
		e.JID = e.Job.JID
	}
	if e.JID == "" {
		e.JID = DerivedJID(e.Stream, e.Offset, e.Raw)
	}
	if e.Job.JID == "" {
		e.Job.JID = e.JID
	}
}

// DerivedJID is the jid of a record that has none.
func DerivedJID(stream string, offset int64, raw []byte) string {
	h := sha256.New()
	h.Write([]byte(stream))
	h.Write([]byte{0})
	h.Write(strconv.AppendInt(nil, offset, 10))
	h.Write([]byte{0})
	h.Write(raw)
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// SamePublish tells whether b, which came later, is the publish of a repeated: the same jid, time and bytes, or, for a retry, the same
// failed attempt of the same job. When a job of jobs.gated came does not matter.
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

// Item is the entry as the REST API shows it: the record byte for byte, with one member more. A job of jobs.gated is the member job
// of the item, as in the other streams.
func (e *Entry) Item(first int64) []byte {
	extra := fmt.Sprintf(`,"millrace":{"offset":%d,"first_offset":%d,"at":%s,"queue":%s,"class":%s,"attempt":%d}}`,
		e.Offset, first, strconv.FormatFloat(Seconds(e.At), 'f', -1, 64), shared.Quote(e.Job.Queue), shared.Quote(e.Job.Class), e.Attempt)
	if e.Stream == Gated {
		return slices.Concat([]byte(`{"jid":`), []byte(shared.Quote(e.JID)), []byte(`,"job":`), e.Raw, []byte(extra))
	}
	return append(trimClose(e.Raw), extra...)
}

// trimClose copies an object without its closing brace.
func trimClose(raw []byte) []byte {
	end := len(raw) - 1
	for raw[end] != '}' {
		end--
	}
	return append(make([]byte, 0, len(raw)+160), raw[:end]...)
}

// Shorten cuts a text behind its first n bytes, and says so.
func Shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return shared.FirstBytes(s, n) + "…"
}
