package tracker

import (
	"encoding/binary"
	"time"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/wire"
)

// uniqueness is what is known of the key of an entry.
type uniqueness struct {
	Unique    wire.UniqueID // empty: it has none
	Undecided bool          // it is not decided whether it has its key
	Waiting   bool          // its key is free when it is delivered
	Replace   bool
	For       time.Duration
	Wait, Max time.Duration

	PutOffSince int64 // in microseconds since 1970: when the first one came that it replaces

	ReplyTo, CorrelationID string // of an undecided entry
}

// uniquenessOf returns it of an entry that was read. No decision is made in other streams. A fire
// that found no queue had its key before.
func uniquenessOf(e *wire.EntryRecord) (u uniqueness) {
	of := e.Job.Unique
	if of == nil || e.Stream == wire.ScheduledJobs {
		return u
	}
	u = uniqueness{Unique: wire.UniqueIDOf(&e.Job), Waiting: of.Waiting, Replace: of.Replace, For: of.For, Wait: of.Wait, Max: of.Max}
	old := e.Replaces
	u.Undecided = e.Stream == wire.Gated && e.Dispatch == nil && (old == nil || old.Copy == "" && old.Admitted == nil)
	switch {
	case u.Undecided:
		u.ReplyTo, u.CorrelationID = e.ReplyTo, e.CorrelationID
	case old != nil && old.Admitted != nil:
		u.PutOffSince = old.Admitted.First
	}
	return u
}

// slotKey returns the key that the slot of a fire holds, empty if it holds none.
func slotKey(stream string, job *wire.Job) wire.UniqueID {
	if job.Unique == nil || job.Unique.Waiting || stream == wire.ScheduledJobs {
		return ""
	}
	return wire.UniqueIDOf(job)
}

func (u *uniqueness) append(b []byte) []byte {
	if u.Unique == "" {
		return b
	}
	for _, t := range []string{string(u.Unique), u.ReplyTo, u.CorrelationID} {
		b = table.AppendText(b, t)
	}
	for _, n := range []int64{int64(u.For), int64(u.Wait), int64(u.Max), u.PutOffSince} {
		b = binary.AppendVarint(b, n)
	}
	return b
}

func (u *uniqueness) decode(d *table.Decoder) {
	u.Unique, u.ReplyTo, u.CorrelationID = wire.UniqueID(d.Text()), d.Text(), d.Text()
	u.For, u.Wait, u.Max, u.PutOffSince = time.Duration(d.Int()), time.Duration(d.Int()), time.Duration(d.Int()), d.Int()
}
