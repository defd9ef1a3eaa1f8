package tracker

import (
	"errors"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// confirm settles the fires and burials of an epoch that are confirmed.
func (t *Entries) confirm(tx *view.Tx, k wire.Confirmed) error {
	t.numbers.confirmed(k)
	for _, r := range k.Above {
		if err := t.settleDoubts(tx, fired{k.Epoch, r.First}, fired{k.Epoch, r.Last + 1}); err != nil {
			return err
		}
	}
	from := int64(0)
	if current := t.peek(); k.Epoch == current.Epoch {
		if k.Through <= current.Confirmed {
			return nil
		}
		from = current.Confirmed + 1
		t.update(func(s *State) { s.Confirmed = k.Through })
	}
	return t.settleDoubts(tx, fired{k.Epoch, from}, fired{k.Epoch, k.Through + 1})
}

// settleDoubts settles the doubtful fires and burials from one up to but not another, except those that are known to have come back: they
// wait for their entries.
func (t *Entries) settleDoubts(tx *view.Tx, from, to fired) error {
	for _, d := range t.doubts.between(from, to) {
		if d.returned {
			continue
		}
		if err := t.settleDoubt(tx, d); err != nil {
			return err
		}
	}
	return nil
}

// settleDoubt forgets an entry whose fire or burial is known to have reached its target.
func (t *Entries) settleDoubt(tx *view.Tx, d doubt) error {
	if err := t.undoubted(tx, d.fired); err != nil {
		return err
	}
	if !d.lone { // the entry is stored, and was taken off the lists when it was fired
		return errors.Join(t.deleteStored(tx, d.at), tx.Delete(keyMark(d.at)))
	}
	if gone, err := t.gone(tx, d.at); err != nil || gone {
		return errors.Join(err, tx.Delete(keyMark(d.at)))
	}
	return t.settleUnread(tx, d.at, d.tag)
}

// delivered settles a doubtful fire or burial of an earlier epoch.
func (t *Entries) delivered(tx *view.Tx, j *wire.JournalRecord) error {
	d, found := t.doubts.find(fired{j.FiredEpoch, j.Seq})
	if !found {
		return nil
	}
	return t.settleDoubt(tx, d)
}

// settle handles the records after which an entry is no longer pending.
func (t *Entries) settle(tx *view.Tx, r *wire.Record, j *wire.JournalRecord) error {
	p := place{codes[j.Stream], j.Offset}
	t.part(j.InOperation, 1)
	if j.Type == wire.TypeDuplicate {
		t.update(func(s *State) { s.Duplicates++ })
	} else if err := t.remember(tx, r.Offset, p.stream, j.JID, wire.Happened{What: j.Type, At: j.At, Offset: j.Offset, Actor: j.Actor}); err != nil {
		return err
	}
	return t.settleAt(tx, p, j.JID)
}

// about tells whether a record's jid is that of the entry that the view knows at a place, or whether it knows none. What was replaced is
// beyond all records.
func (t *Entries) about(tx *view.Tx, p place, tag string) (bool, error) {
	s, err := t.stored(tx, p)
	if err != nil {
		return false, err
	}
	if s != nil {
		return wire.JIDTag(s.JID) == tag, nil
	}
	m, err := t.markAbout(tx, p, tag, s)
	return err == nil && (m == nil || m.tag == tag && m.state != replaced), err
}

// markAbout gives the mark at a place for a record about some jid. What was said of another entry there, before the view has read the one
// that stands there now, is dropped: the stream lost its end in between, and the offset was given out again.
func (t *Entries) markAbout(tx *view.Tx, p place, tag string, s *Stored) (*mark, error) {
	m, err := t.mark(tx, p)
	if err != nil || m == nil || m.tag == tag || m.state == replaced || s != nil {
		return m, err
	}
	if gone, err := t.gone(tx, p); err != nil || gone {
		return m, err
	}
	return nil, t.unmark(tx, p, m)
}

// settleUnread leaves a mark for an entry that the view has not read yet.
func (t *Entries) settleUnread(tx *view.Tx, p place, tag string) error {
	if gone, err := t.gone(tx, p); err != nil || gone {
		return err
	}
	t.wait(p)
	return t.setMark(tx, p, &mark{state: settled, tag: tag})
}

// takeBack makes the entry of a doubtful fire or burial pending again: it did not reach its queue.
func (t *Entries) takeBack(tx *view.Tx, epoch int64, j *wire.JournalRecord) error {
	if err := t.forgetDeed(tx, j); err != nil {
		return err
	}
	d, found := t.doubts.find(fired{epoch, j.Seq})
	if !found {
		return nil
	}
	return t.doubtReturned(tx, d.at)
}

func (t *Entries) doubtReturned(tx *view.Tx, p place) error {
	m, err := t.mark(tx, p)
	if err != nil || m == nil {
		return err
	}
	s, err := t.stored(tx, p)
	if err != nil {
		return err
	}
	if s == nil { // only the journal has this job, as far as is known: a confirm must not settle it, the next leader fires it again
		m.returned = true
		return t.setMark(tx, p, m)
	}
	if err := t.unmark(tx, p, m); err != nil {
		return err
	}
	return t.addPending(tx, s)
}

// forgetDeed forgets that something was done to an entry: it was not.
func (t *Entries) forgetDeed(tx *view.Tx, j *wire.JournalRecord) error {
	if j.TookBack != "" {
		if err := t.rings.forget(tx, tableCommands, keyCommand(j.TookBack)); err != nil {
			return err
		}
	}
	return t.rings.forget(tx, tableHistory, keyHappened(codes[j.Stream], j.JID))
}

// gone tells whether the view is past a place, so that an entry that is not there will not come.
func (t *Entries) gone(tx *view.Tx, p place) (bool, error) {
	if p.stream == 0 {
		return true, nil
	}
	read, err := tx.Position(p.name())
	return p.offset <= read, err
}

// park keeps an entry that the broker cannot take, with the reason, and never fires it by itself.
func (t *Entries) park(tx *view.Tx, j *wire.JournalRecord) error {
	p := place{codes[j.Stream], j.Offset}
	if matches, err := t.about(tx, p, j.JID); err != nil || !matches {
		return err
	}
	s, err := t.stored(tx, p)
	if err != nil {
		return err
	}
	if s == nil {
		return t.parkUnread(tx, p, j)
	}
	m, err := t.mark(tx, p)
	if err != nil {
		return err
	}
	if m == nil {
		if err := t.removePending(tx, s); err != nil {
			return err
		}
	}
	if err := t.unmark(tx, p, m); err != nil {
		return err
	}
	s.Parked = j.Error
	return t.addPending(tx, s)
}

func (t *Entries) parkUnread(tx *view.Tx, p place, j *wire.JournalRecord) error {
	m, err := t.mark(tx, p)
	if err != nil {
		return err
	}
	if err := t.unmark(tx, p, m); err != nil {
		return err
	}
	if gone, err := t.gone(tx, p); err != nil || gone {
		return err
	}
	return t.setMark(tx, p, &mark{state: parked, tag: j.JID, reason: j.Error})
}
