package tracker

import (
	"slices"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Lookup finds single entries, in the store or in a snapshot of it.
type Lookup struct {
	r     view.Reader
	rules *gateRules
}

// Get returns an entry that is pending or in doubt, nil if there is none.
func (l Lookup) Get(stream string, offset int64) (*Stored, error) {
	s, err := storedAt(l.r, entryID{codes[stream], offset})
	return l.rules.apply(s), err
}

// Pending reports whether an entry is pending.
func (l Lookup) Pending(s *Stored) (bool, error) {
	_, ok, err := l.r.Get(keyList(s.listed(), s.At))
	return ok, err
}

// Due calls fn for the entries of a queue that may fire and are not gated, in due order, behind a
// key, until fn returns false.
func (l Lookup) Due(queue string, behind DueKey, fn func(DueKey) bool) error {
	return l.dueBehind(keyFireQueue(queue), behind, fn)
}

func (l Lookup) dueBehind(prefix []byte, behind DueKey, fn func(DueKey) bool) error {
	lower := slices.Concat(prefix, behind.bytes())
	if behind.Stream != "" {
		lower = append(lower, 0)
	}
	return l.r.Scan(lower, table.After(prefix), false, func(key, _ []byte) bool { return fn(dueKeyOf(key[len(prefix):])) })
}

// Kept returns up to limit entries that the view keeps, pending or not, from one offset of a stream
// up to another, both included.
func (l Lookup) Kept(stream string, from, to int64, limit int) ([]*Stored, error) {
	c := codes[stream]
	var found []*Stored
	err := table.Scan(l.r, keyEntry(entryID{c, from}), keyEntry(entryID{c, to + 1}), false, func(key, value []byte) (bool, error) {
		s, err := decodeStored(entryIDOf(key[1:]), append([]byte(nil), value...))
		if err != nil {
			return false, err
		}
		found = append(found, l.rules.apply(s))
		return len(found) < limit, nil
	})
	return found, err
}

// maxFound is how many entries with one jid are looked at.
const maxFound = 1000

// Find returns the pending entries of a stream that have a jid, in the order of their offsets.
func (l Lookup) Find(stream, jid string) ([]*Stored, error) {
	offsets, err := l.offsets(codes[stream], jid, maxFound)
	if err != nil {
		return nil, err
	}
	return l.withJID(stream, jid, offsets)
}

func (l Lookup) withJID(stream, jid string, offsets []int64) ([]*Stored, error) {
	var found []*Stored
	for _, o := range offsets {
		s, err := l.Get(stream, o)
		if err != nil {
			return nil, err
		}
		if s != nil && s.JID == jid {
			found = append(found, s)
		}
	}
	return found, nil
}

// Near returns the pending entries with a jid that are nearest to an offset, at most limit on each
// side.
func (l Lookup) Near(stream, jid string, offset int64, limit int) ([]*Stored, error) {
	prefix := keyJIDs(codes[stream], wire.JIDTag(jid))
	here := table.AppendInt(slices.Clone(prefix), offset)
	var offsets []int64
	for _, side := range []struct {
		lower, upper []byte
		reverse      bool
	}{{prefix, here, true}, {here, table.After(prefix), false}} {
		n := 0
		err := l.r.Scan(side.lower, side.upper, side.reverse, func(key, _ []byte) bool {
			offsets = append(offsets, table.Int(key[len(prefix):]))
			n++
			return n <= limit
		})
		if err != nil {
			return nil, err
		}
	}
	return l.withJID(stream, jid, offsets)
}

// Repeated reports whether several pending entries of a stream seem to have a jid. It reads none of
// them.
func (l Lookup) Repeated(stream, jid string) (bool, error) {
	offsets, err := l.offsets(codes[stream], jid, 2)
	return len(offsets) > 1, err
}

// offsets returns the offsets of the pending entries of a stream whose jid has the same hash.
func (l Lookup) offsets(stream code, jid string, most int) (all []int64, err error) {
	prefix := keyJIDs(stream, wire.JIDTag(jid))
	err = l.r.Scan(prefix, table.After(prefix), false, func(key, _ []byte) bool {
		all = append(all, table.Int(key[len(prefix):]))
		return len(all) < most
	})
	return all, err
}

// Leases returns the leases that are held of the job with a jid.
func (l Lookup) Leases(jid string) (held []*Stored, err error) {
	offsets, err := l.offsets(leases, jid, maxFound)
	for _, o := range offsets {
		s, fault := l.Get(wire.ScheduledJobs, o)
		if fault != nil {
			return nil, fault
		}
		if s != nil && s.Leased == jid {
			held = append(held, s)
		}
	}
	return held, err
}

// Successor returns the offset of the entry that replaced another. ok is false if none is known.
func (l Lookup) Successor(stream string, offset int64) (by int64, ok bool, err error) {
	m, err := markAt(l.r, entryID{codes[stream], offset})
	if err != nil || m == nil || m.state != replaced {
		return 0, false, err
	}
	return m.seq, true, nil
}

// A fire for which no queue was bound comes back as a record of jobs.gated: a copy. It proves that
// the fire arrived there. Either the entry that was fired remains or its copy. Only the leader
// decides which, because the journal may say later what became of the fire.

// Copies returns the offsets of all copies that are not settled, including those whose own fire is
// in doubt.
func (l Lookup) Copies() (offsets []int64, err error) {
	err = l.r.Scan([]byte{tableCopy}, table.After([]byte{tableCopy}), false, func(key, _ []byte) bool {
		offsets = append(offsets, table.Int(key[1:]))
		return true
	})
	return offsets, err
}

// InDoubt reports whether it is not known of a fire whether it arrived.
func (l Lookup) InDoubt(epoch, seq int64) (bool, error) {
	_, open, err := l.r.Get(keyDoubt(epoch, seq))
	return open, err
}

// HasReturned reports whether a fire that is in doubt is known to have come back.
func (l Lookup) HasReturned(epoch, seq int64) (bool, error) {
	at, open, err := l.r.Get(keyDoubt(epoch, seq))
	if err != nil || !open {
		return false, err
	}
	m, err := markAt(l.r, entryIDOf(at))
	return m != nil && m.returned, err
}
