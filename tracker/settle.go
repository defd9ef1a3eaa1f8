package tracker

import (
	"errors"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

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

// passed reports whether the view has read past an entry. Then one that is not there will not come.
func passed(tx *view.Tx, id entryID) (bool, error) {
	if id.stream == 0 {
		return true, nil
	}
	read, err := tx.Position(id.name())
	return id.offset <= read, err
}

// about reports whether a record's jid is that of the entry that the view has, or whether it has
// none. No record is about an entry that was replaced.
func (t *lifecycle) about(tx *view.Tx, id entryID, tag string) (bool, error) {
	s, err := t.entries.stored(tx, id)
	if err != nil {
		return false, err
	}
	if s != nil {
		return wire.JIDTag(s.JID) == tag, nil
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
