package httpapi

import (
	"bytes"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// filter says which entries a list shows. What is empty does not count.
type filter struct {
	queue, class, jid string
	errorClass, tag   string    // these two and text look into the record
	text              string    // stands in the record, whatever the case of ASCII letters
	from, to          time.Time // from ≤ at < to
	needles           [][]byte  // text in every way in which JSON may write it
	hide              *redactor // what is not shown is not found either
}

func filterOf(p problem.Params, now time.Time) (f filter, err error) {
	f = filter{queue: p["queue"], class: p["class"], jid: p["jid"], errorClass: p["error"], tag: p["tag"], text: p["text"]}
	if f.from, f.to, err = p.Period(now); err != nil {
		return f, err
	}
	if f.text != "" {
		f.needles = wire.Spellings(f.text)
	}
	return f, nil
}

// looksInside tells whether the filter needs the record itself.
func (f *filter) looksInside() bool { return f.errorClass != "" || f.tag != "" || f.text != "" }

// countable tells whether it is known, without looking, how many entries match.
func (f *filter) countable() bool {
	return f.unset() || f.set() == 1 && (f.queue != "" || f.class != "")
}

// counted is how many entries of a stream match a filter that is countable.
func (f *filter) counted(e *tracker.Entries, stream string) int64 {
	switch {
	case f.queue != "":
		return e.InQueue(stream, f.queue)
	case f.class != "":
		return e.OfClass(stream, f.class)
	}
	return e.Total(stream)
}

// unset tells whether every entry matches.
func (f *filter) unset() bool { return f.set() == 0 }

// set counts what the filter asks for.
func (f *filter) set() (n int) {
	for _, set := range []bool{f.queue != "", f.class != "", f.jid != "", f.errorClass != "", f.tag != "", f.text != "", !f.from.IsZero(), !f.to.IsZero()} {
		if set {
			n++
		}
	}
	return n
}

func (f *filter) within(at time.Time) bool {
	return (f.from.IsZero() || !at.Before(f.from)) && (f.to.IsZero() || at.Before(f.to))
}

// row tells whether an entry may match, by what its line in the list says.
func (f *filter) row(r *tracker.Row) bool {
	return (f.queue == "" || r.Queue == f.queue) && (f.class == "" || r.Class == f.class) && (f.jid == "" || r.JID == f.jid)
}

// record tells whether an entry that passed row matches. scratch is a buffer that is used again and again.
func (f *filter) record(s *tracker.Stored, scratch *[]byte) bool {
	if f.text != "" && !f.contains(s.Raw, scratch) {
		return false
	}
	if f.errorClass == "" && f.tag == "" {
		return true
	}
	e, err := s.Entry(nil)
	if err != nil {
		return false
	}
	return (f.errorClass == "" || f.hasError(&e)) && (f.tag == "" || slices.Contains(e.Job.Tags, f.tag))
}

// hasError tells whether an entry has the error class, or the fingerprint, that is asked for.
func (f *filter) hasError(e *wire.Entry) bool {
	if wire.IsFingerprint(f.errorClass) {
		return wire.Fingerprint(e.Job.Class, e.ErrorClass, e.ErrorMessage) == f.errorClass
	}
	return e.ErrorClass == f.errorClass
}

func (f *filter) contains(raw []byte, scratch *[]byte) bool {
	raw, _ = f.hide.record(raw)
	*scratch = wire.LowerASCII(append((*scratch)[:0], raw...))
	return slices.ContainsFunc(f.needles, func(n []byte) bool { return bytes.Contains(*scratch, n) })
}
