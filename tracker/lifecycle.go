package tracker

import (
	"slices"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// lifecycle changes what entries are: pending, in doubt, parked or gone. The journal may say so
// before the view has read the entry. Then a mark waits for it.
type lifecycle struct {
	state   *leadership
	entries *entryTable
	awaited awaited
}

// reconcile takes in an entry. The view may have read records of the journal about it before.
func (t *lifecycle) reconcile(tx *view.Tx, s *Stored) error {
	id := s.id()
	m, err := t.entries.mark(tx, id)
	if err != nil {
		return err
	}
	if m != nil && m.tag != wire.JIDTag(s.JID) { // said of another entry, in a stream that is gone
		if err := t.entries.unmark(tx, id, m); err != nil {
			return err
		}
		m = nil
	}
	switch {
	case m == nil:
		return t.entries.addPending(tx, s)
	case m.state == replaced:
		return nil
	case m.state == settled:
		t.awaited.arrived(id)
		return tx.Delete(keyMark(id))
	case m.state == parked:
		s.Parked = m.reason
		if err := tx.Delete(keyMark(id)); err != nil {
			return err
		}
		return t.entries.addPending(tx, s)
	}
	if m.returned {
		if err := t.entries.unmark(tx, id, m); err != nil {
			return err
		}
		return t.entries.addPending(tx, s)
	}
	m.body = nil // the entry has it
	if err := t.entries.setMark(tx, id, m); err != nil {
		return err
	}
	return t.entries.setStored(tx, s)
}

// replace drops the earlier entry that an entry replaces. If the earlier entry has another job, the
// stream was created again while the replacement was on its way. A mark stays: the view may read
// only now that a fire of the earlier entry came back, and such a fire must not count as one whose
// entry is lost.
func (t *lifecycle) replace(tx *view.Tx, by *Stored, offset int64) error {
	id, tag := entryID{codes[by.Stream], offset}, wire.JIDTag(by.JID)
	old, err := t.entries.stored(tx, id)
	if err != nil || offset >= by.Offset || old != nil && old.JID != by.JID {
		return err
	}
	m, err := t.entries.mark(tx, id)
	if err != nil || m != nil && m.tag != tag {
		return err
	}
	if err := t.entries.drop(tx, id); err != nil {
		return err
	}
	if t.state.settled(by.Stream, offset) {
		return nil
	}
	return t.entries.setMark(tx, id, &mark{state: replaced, tag: tag, seq: by.Offset})
}

// markInDoubt puts an entry in doubt. late is where the journal has a fire of a leader that had
// been followed, else 0.
func (t *lifecycle) markInDoubt(tx *view.Tx, r *wire.Record, d *wire.Dispatch, late int64) error {
	id := entryID{codes[d.Stream], d.Offset}
	if id.stream == 0 {
		id.offset = r.Offset // a fire without an entry has the name of where the journal has it
	}
	if t.state.settled(d.Stream, id.offset) {
		return nil
	}
	s, err := t.entries.stored(tx, id)
	if err != nil {
		return err
	}
	old, err := t.markAbout(tx, id, d.JIDTag, s)
	if err != nil {
		return err
	}
	m := &mark{state: inDoubt, tag: d.JIDTag, epoch: d.Epoch, seq: d.Seq, op: d.Op, command: d.Command, actor: d.Actor, bulk: d.Operation, late: late}
	switch {
	case s != nil && wire.JIDTag(s.JID) != d.JIDTag, old != nil && (old.tag != d.JIDTag || old.state == settled || old.state == replaced):
		return nil // said of another entry, in a stream that is gone; or it came back, and another entry replaced this one
	case s == nil:
		m.body = r.Body // the entry may never come: its stream may have forgotten it
	case old == nil || old.state != inDoubt:
		if err := t.entries.removePending(tx, s); err != nil {
			return err
		}
		if s.Parked != "" {
			s.Parked = ""
			if err := t.entries.setStored(tx, s); err != nil {
				return err
			}
		}
	}
	if err := t.entries.unmark(tx, id, old); err != nil {
		return err
	}
	return t.entries.setMark(tx, id, m)
}

// isInDoubt reports whether a fire or burial is in doubt.
func (t *lifecycle) isInDoubt(f dispatchID) bool {
	_, found := t.entries.doubts.find(f)
	return found
}

// isOpen reports whether a fire of a leader that had been followed puts its entry in doubt. It does
// not if the journal already has something newer about the entry.
func (t *lifecycle) isOpen(tx *view.Tx, d *wire.Dispatch) (bool, error) {
	id := entryID{codes[d.Stream], d.Offset}
	if id.stream == 0 {
		return false, nil
	}
	s, err := t.entries.stored(tx, id)
	if err != nil {
		return false, err
	}
	m, err := t.markAbout(tx, id, d.JIDTag, s)
	switch {
	case err != nil:
		return false, err
	case m != nil && m.state == inDoubt && !m.returned:
		return m.tag == d.JIDTag && m.epoch <= d.Epoch, nil
	case m != nil:
		return m.tag == d.JIDTag && m.state != settled && m.state != replaced, nil
	case s != nil:
		return wire.JIDTag(s.JID) == d.JIDTag, nil
	}
	passed, err := passed(tx, id) // it was settled, or is not known any more
	return !passed, err
}

// takeBack makes the entry of a fire or burial in doubt pending again: it did not reach its queue.
func (t *lifecycle) takeBack(tx *view.Tx, f dispatchID) error {
	d, found := t.entries.doubts.find(f)
	if !found {
		return nil
	}
	return t.returnEntry(tx, d.at)
}

// returnAll does that for all entries in doubt.
func (t *lifecycle) returnAll(tx *view.Tx) error {
	for _, d := range slices.Clone(t.entries.doubts) {
		if err := t.returnEntry(tx, d.at); err != nil {
			return err
		}
	}
	return nil
}

func (t *lifecycle) returnEntry(tx *view.Tx, id entryID) error {
	m, err := t.entries.mark(tx, id)
	if err != nil || m == nil {
		return err
	}
	s, err := t.entries.stored(tx, id)
	if err != nil {
		return err
	}
	if s == nil { // only the journal is known to have this job: a confirm must not settle it, the next leader fires it again
		m.returned = true
		return t.entries.setMark(tx, id, m)
	}
	if err := t.entries.unmark(tx, id, m); err != nil {
		return err
	}
	return t.entries.addPending(tx, s)
}

// park keeps an entry that the broker cannot take, with the reason. It is not fired unless a user
// asks for it.
func (t *lifecycle) park(tx *view.Tx, j *wire.JournalRecord) error {
	id := entryID{codes[j.Stream], j.Offset}
	if matches, err := t.about(tx, id, j.JID); err != nil || !matches {
		return err
	}
	s, err := t.entries.stored(tx, id)
	if err != nil {
		return err
	}
	m, err := t.entries.mark(tx, id)
	if err != nil {
		return err
	}
	if s != nil && m == nil {
		if err := t.entries.removePending(tx, s); err != nil {
			return err
		}
	}
	if err := t.entries.unmark(tx, id, m); err != nil {
		return err
	}
	if s != nil {
		s.Parked = j.Error
		return t.entries.addPending(tx, s)
	}
	if passed, err := passed(tx, id); err != nil || passed {
		return err
	}
	return t.entries.setMark(tx, id, &mark{state: parked, tag: j.JID, reason: j.Error})
}
