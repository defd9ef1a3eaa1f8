package tracker

import (
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

// maxInline is the largest record that the view keeps itself. Larger ones stay in the stream.
const maxInline = 64 << 10

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
