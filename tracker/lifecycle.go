package tracker

import (
	"errors"
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
	slots   *slots
}

// reconcile takes in an entry. The view may have read records of the journal about it before.
func (t *lifecycle) reconcile(tx *view.Tx, s *Stored) error {
	id := s.id()
	if err := t.entries.keys.arrived(tx, s); err != nil {
		return err
	}
	m, err := t.entries.mark(tx, id)
	if err != nil {
		return err
	}
	if m != nil && m.tag != s.tag() { // said of another entry, in a stream that is gone
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
	id, tag := entryID{codes[by.Stream], offset}, by.tag()
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
	s, err := t.entries.fired(tx, id)
	if err != nil {
		return err
	}
	old, err := t.markAbout(tx, id, d.JIDTag, s)
	if err != nil {
		return err
	}
	m := &mark{state: inDoubt, tag: d.JIDTag, epoch: d.Epoch, seq: d.Seq, op: d.Op, command: d.Command, actor: d.Actor, bulk: d.Operation, late: late}
	switch {
	case s != nil && s.tag() != d.JIDTag, old != nil && (old.tag != d.JIDTag || old.state == settled || old.state == replaced):
		return nil // said of another entry, in a stream that is gone; or it came back, and another entry replaced this one
	case s == nil:
		if settled, err := t.wasSettled(tx, id); err != nil || settled && old == nil {
			return err // a late record had said so, which the leader that fired it again had not read
		}
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

// wasSettled reports of an entry that the view does not have whether it had it.
func (t *lifecycle) wasSettled(tx *view.Tx, id entryID) (bool, error) {
	first, begun := t.state.peek().First[id.name()]
	if !begun || id.offset < first {
		return false, nil
	}
	return passed(tx, id)
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
		return s.tag() == d.JIDTag, nil
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
	if err := t.slots.takeBack(tx, id, wire.Through{Epoch: m.epoch, Through: m.seq}); err != nil {
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

// settleBetween settles the fires and burials in doubt from one up to, but not including, another.
// Those that are known to have come back wait for their entries.
func (t *lifecycle) settleBetween(tx *view.Tx, from, to dispatchID) error {
	for _, d := range t.entries.doubts.between(from, to) {
		if d.returned {
			continue
		}
		if err := t.settleDoubt(tx, d); err != nil {
			return err
		}
	}
	return nil
}

// settleEarlier settles the doubts of earlier epochs. The leader that moves low water has settled
// all of them. A view that still has some was overtaken by retention, and has not read it. A leader
// can settle no late fire that it had not read: readTo is how far it had read the journal, 0 if it
// does not say.
func (t *lifecycle) settleEarlier(tx *view.Tx, epoch, readTo int64) error {
	for _, d := range t.entries.doubts.between(dispatchID{minOffset, minOffset}, dispatchID{epoch, 0}) {
		if d.returned || readTo > 0 && d.late >= readTo {
			continue
		}
		if err := t.settleDoubt(tx, d); err != nil {
			return err
		}
	}
	return nil
}

// settleDelivered settles a fire or burial in doubt of an earlier epoch.
func (t *lifecycle) settleDelivered(tx *view.Tx, f dispatchID) error {
	d, found := t.entries.doubts.find(f)
	if !found {
		return nil
	}
	return t.settleDoubt(tx, d)
}

// settleDoubt removes an entry whose fire or burial is known to have reached its target.
func (t *lifecycle) settleDoubt(tx *view.Tx, d doubt) error {
	if err := t.entries.doubts.remove(tx, d.dispatchID); err != nil {
		return err
	}
	if !d.onlyJournaled { // the entry is stored, and was taken off the lists when it was fired
		return errors.Join(t.entries.deleteStored(tx, d.at), tx.Delete(keyMark(d.at)))
	}
	if passed, err := passed(tx, d.at); err != nil || passed {
		return errors.Join(err, tx.Delete(keyMark(d.at)))
	}
	return t.settleUnread(tx, d.at, d.tag)
}

// settle settles an entry, if the jid is its own.
func (t *lifecycle) settle(tx *view.Tx, id entryID, tag string) error {
	if matches, err := t.about(tx, id, tag); err != nil || !matches {
		return err
	}
	if err := t.entries.drop(tx, id); err != nil {
		return err
	}
	return t.settleUnread(tx, id, tag)
}

// settleUnread leaves a mark for an entry that the view has not read yet.
func (t *lifecycle) settleUnread(tx *view.Tx, id entryID, tag string) error {
	if passed, err := passed(tx, id); err != nil || passed {
		return err
	}
	t.awaited.expect(id)
	return t.entries.setMark(tx, id, &mark{state: settled, tag: tag})
}

// about reports whether a record's jid is that of the entry that the view has, or whether it has
// none. No record is about an entry that was replaced.
func (t *lifecycle) about(tx *view.Tx, id entryID, tag string) (bool, error) {
	s, err := t.entries.stored(tx, id)
	if err != nil {
		return false, err
	}
	if s != nil {
		return s.tag() == tag, nil
	}
	m, err := t.markAbout(tx, id, tag, s)
	return err == nil && (m == nil || m.tag == tag && m.state != replaced), err
}

// markAbout returns the mark of an entry for a record about a jid. What was said of another entry
// there, before the view has read the one that is there now, is dropped: the stream lost its end in
// between, and the broker used the offset again.
func (t *lifecycle) markAbout(tx *view.Tx, id entryID, tag string, s *Stored) (*mark, error) {
	m, err := t.entries.mark(tx, id)
	if err != nil || m == nil || m.tag == tag || m.state == replaced || s != nil {
		return m, err
	}
	if passed, err := passed(tx, id); err != nil || passed {
		return m, err
	}
	return nil, t.entries.unmark(tx, id, m)
}
