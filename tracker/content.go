package tracker

import (
	"cmp"
	"encoding/binary"
	"time"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/wire"
)

// content is what the view keeps of an entry's record, so that it is parsed once.
type content struct {
	Size int64  // in bytes
	Raw  []byte // the record; nil if it is large and stays in the stream

	// What its job says, beside what the entry says.
	jobAt, jobEnd int // where the job is in Raw
	priority      uint8
	expires       time.Time // zero: never
	discards      bool      // a job that expires is not kept as a dead job
	nameless      bool      // the job has no jid of its own
	jobJID        string    // its own jid, if it is not the entry's
}

func newContent(e *wire.Entry) content {
	c := content{Size: int64(len(e.Raw)), jobAt: e.JobAt, jobEnd: e.JobAt + len(e.Job.Raw), priority: e.Job.Priority, expires: e.Job.ExpiresAt,
		discards: !e.Job.Dead, nameless: e.Naming == wire.Nameless}
	if e.Job.JID != e.JID {
		c.jobJID = e.Job.JID
	}
	if len(e.Raw) <= maxInline {
		c.Raw = e.Raw
	}
	return c
}

// Fireable returns what is needed to fire the entry, which is all but its error and the job's tags
// and retries. ok is false if the view does not keep the record.
func (s *Stored) Fireable() (e wire.Entry, ok bool) {
	if s.Raw == nil {
		return e, false
	}
	job := wire.Job{JID: cmp.Or(s.jobJID, s.JID), Class: s.Class, Queue: s.Queue, Priority: s.priority, ExpiresAt: s.expires, Dead: !s.discards,
		Raw: s.Raw[s.jobAt:s.jobEnd:s.jobEnd]}
	e = wire.Entry{Stream: s.Stream, Offset: s.Offset, JID: s.JID, At: s.At, Attempt: s.Attempt, Job: job, Raw: s.Raw, JobAt: s.jobAt, Naming: wire.Named}
	if s.nameless {
		e.Naming = wire.Nameless
	}
	return e, true
}

func (c *content) append(b []byte) []byte {
	for _, n := range []int64{c.Size, int64(c.jobAt), int64(c.jobEnd), int64(c.priority)} {
		b = binary.AppendVarint(b, n)
	}
	if !c.expires.IsZero() {
		b = binary.AppendVarint(b, c.expires.UnixMicro())
	}
	return append(table.AppendText(b, c.jobJID), c.Raw...)
}

func (c *content) decode(d *table.Decoder, expires bool) {
	c.Size, c.jobAt, c.jobEnd, c.priority = d.Int(), int(d.Int()), int(d.Int()), uint8(d.Int())
	if expires {
		c.expires = time.UnixMicro(d.Int()).UTC()
	}
	if c.jobJID = d.Text(); len(d.B) == 0 {
		return
	}
	c.Raw = d.B
	d.Bad = d.Bad || c.jobAt < 0 || c.jobAt > c.jobEnd || c.jobEnd > len(c.Raw)
}
