package tracker

import (
	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Slots reads the slots that are held.
type Slots struct{ r view.Reader }

// Held calls fn for each slot that is held, until fn returns false.
func (s Slots) Held(fn func(*wire.HeldSlot) bool) error {
	return table.Scan(s.r, []byte{tableSlot}, table.After([]byte{tableSlot}), false, func(key, raw []byte) (bool, error) {
		h, err := decodeSlot(entryIDOf(key[1:]), raw)
		if err != nil {
			return false, err
		}
		return fn(h), nil
	})
}

// HeldSlot returns the slot that an entry holds, nil if the entry with this jid holds none.
func (s Slots) HeldSlot(stream string, offset int64, jid string) (*wire.HeldSlot, error) {
	return slotOf(s.r, entryID{codes[stream], offset}, jid)
}

// LeasedSlots returns the slots that leases hold, without their fires.
func (l Lookup) LeasedSlots() (map[wire.Slot]bool, error) {
	all := map[wire.Slot]bool{}
	prefix := []byte{tableList, byte(leases)}
	err := table.Scan(l.r, prefix, table.After(prefix), false, func(key, _ []byte) (bool, error) {
		_, offset := listKeyParts(key)
		lease, err := l.Get(wire.ScheduledJobs, offset)
		if err != nil || lease == nil || lease.Slot == "" {
			return err == nil, err
		}
		if s, err := wire.ParseSlot(lease.Slot); err == nil {
			all[wire.Slot{Stream: s.Stream, Offset: s.Offset, JIDTag: s.JIDTag}] = true
		}
		return true, nil
	})
	return all, err
}
