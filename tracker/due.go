package tracker

import (
	"bytes"
	"time"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/wire"
)

// DueKey orders the entries of a queue by when they are due. The zero value is before all.
type DueKey struct {
	At     time.Time
	Stream string
	Offset int64
}

// Before reports whether k is due before o.
func (k DueKey) Before(o DueKey) bool {
	return bytes.Compare(k.bytes(), o.bytes()) < 0
}

func (k DueKey) bytes() []byte {
	if k.Stream == "" {
		return nil
	}
	return entryID{codes[k.Stream], k.Offset}.append(table.AppendInt(nil, k.At.UnixMicro()))
}

// Ready describes the entries of a queue that became pending.
type Ready struct {
	First    DueKey // the earliest entry that may fire
	Unbound  bool   // the queue was not bound for one of them when it was published
	Returned bool   // one of them is a copy: a fire found no queue
}

func dueKeyOf(b []byte) DueKey {
	id := entryIDOf(b[table.IntLen:])
	return DueKey{time.UnixMicro(table.Int(b)).UTC(), id.name(), id.offset}
}

// SlotChange says that an entry has taken or freed a slot.
type SlotChange struct {
	Stream string
	Offset int64
	JIDTag string
	wire.Group
	Held bool
	At   float64 // of the newest fire, seconds since 1970
}
