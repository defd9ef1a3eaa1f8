package tracker

import (
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// A leader may write for a moment after its successor has begun. What it decided then is void, because the successor did not know of it
// and may have decided otherwise. What it did is not: a job that it fired is in its queue, and what it says was confirmed was.

// foldLate takes in a JSON record of a leader that had been followed already.
func (t *Entries) foldLate(tx *view.Tx, r *wire.Record, j *wire.JournalRecord) error {
	switch j.Type {
	case wire.TypeConfirmed:
		return t.confirm(tx, wire.Confirmed{Epoch: j.Epoch, Through: j.Through, Above: j.Above})
	case wire.TypeReturned:
		if _, found := t.doubts.find(fired{j.Epoch, j.Seq}); found {
			t.part(j.InOperation, -1)
			return t.takeBack(tx, j.Epoch, j)
		}
	}
	t.void(r)
	return nil
}

// void counts a record that has no effect.
func (t *Entries) void(r *wire.Record) { t.update(func(s *State) { s.Void[r.Stream]++ }) }

// lateFireIsOpen reports whether a fire of a leader that had been followed puts its entry in doubt: not if the journal already has
// something newer about the entry.
func (t *Entries) lateFireIsOpen(tx *view.Tx, d wire.Dispatch) (bool, error) {
	p := place{codes[d.Stream], d.Offset}
	if p.stream == 0 {
		return false, nil
	}
	s, err := t.stored(tx, p)
	if err != nil {
		return false, err
	}
	m, err := t.markAbout(tx, p, d.JIDTag, s)
	switch {
	case err != nil:
		return false, err
	case m != nil && m.state == doubtful && !m.returned:
		return m.tag == d.JIDTag && m.epoch <= d.Epoch, nil
	case m != nil:
		return m.tag == d.JIDTag && m.state != settled && m.state != replaced, nil
	case s != nil:
		return wire.JIDTag(s.JID) == d.JIDTag, nil
	}
	gone, err := t.gone(tx, p) // it was settled, or nobody knows it any more
	return !gone, err
}

// Late counts the fires of leaders that had been followed already, as far as they put an entry in doubt, since this process started.
func (t *Entries) Late() int64 { return t.late.Load() }
