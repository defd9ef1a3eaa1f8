package tracker

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Forget is told that a stream was deleted and made anew, and tells whether it may be read anew at once. An entry stream waits: what was
// in it is void only when the leader has journaled that.
func (t *Entries) Forget(tx *view.Tx, stream string) (bool, error) {
	if p := t.partOf(stream); p != nil {
		if err := p.Forget(tx, stream); err != nil {
			return true, err
		}
		return true, t.forgetRejected(tx, stream)
	}
	switch stream {
	case wire.Journal:
		return true, t.forgetJournal(tx)
	case wire.Heartbeats, wire.JobMetrics:
		return true, t.forgetRejected(tx, stream)
	}
	if t.peek().Journals > 0 { // who has led since the journal was lost may never have known the old stream, and was right about this one
		return false, fmt.Errorf("%w: the journal was lost, and so was %s", view.ErrRebuild, stream)
	}
	return false, nil
}

// forgetJournal keeps what the old journal said of entries, and forgets its offsets: epochs are offsets too, and those of the new journal
// begin again where the old ones did.
func (t *Entries) forgetJournal(tx *view.Tx) error {
	for _, stream := range []string{wire.Journal, wire.Unrouted, wire.DeadLetters, wire.OldDeadLetters} { // all are named by offsets of the journal
		if err := t.forgetRejected(tx, stream); err != nil {
			return err
		}
	}
	for _, table := range []byte{tableHappened, tableHistory, tableCommand, tableCommands, tableEnqueued} {
		if err := tx.DeleteRange([]byte{table}, after([]byte{table})); err != nil {
			return err
		}
	}
	for _, table := range []byte{tableHistory, tableCommands} {
		t.rings.reset(table)
	}
	if err := errors.Join(t.forgetOperations(tx), t.forgetActs(tx)); err != nil {
		return err
	}
	if err := t.ageDoubtful(tx); err != nil {
		return err
	}
	if err := t.ageUnread(tx); err != nil {
		return err
	}
	t.update(func(s *State) { *s = s.withoutJournal() })
	return nil
}

// unread calls fn for what a journal said of entries that the view has not read.
func (t *Entries) unread(tx *view.Tx, fn func(p place, m *mark) error) error {
	var places []place
	err := tx.Scan([]byte{tableMark}, after([]byte{tableMark}), false, func(key, value []byte) bool {
		if s := markState(value[0]); s == settled || s == parked {
			places = append(places, placeOf(key[1:]))
		}
		return true
	})
	if err != nil {
		return err
	}
	for _, p := range places {
		m, err := t.mark(tx, p)
		if err != nil {
			return err
		}
		if err := fn(p, m); err != nil {
			return err
		}
	}
	return nil
}

func (t *Entries) ageUnread(tx *view.Tx) error {
	return t.unread(tx, func(p place, m *mark) error {
		m.epoch = -age
		return t.setMark(tx, p, m)
	})
}

// dropAged forgets what a journal that is gone said of entries that were not read. Whoever moves low water has left barriers behind them:
// if there were such entries, they are settled now.
func (t *Entries) dropAged(tx *view.Tx) error {
	if t.peek().Journals == 0 {
		return nil
	}
	return t.unread(tx, func(p place, m *mark) error {
		if m.epoch >= 0 {
			return nil
		}
		return tx.Delete(keyMark(p))
	})
}

// Overtaken is told that retention took records before they were read. What the journal says begins anew behind the hole; what was
// doubtful may have come back in it.
func (t *Entries) Overtaken(tx *view.Tx, stream string) error {
	t.update(func(s *State) { delete(s.First, stream) })
	if stream != wire.Journal {
		return nil
	}
	t.update(func(s *State) { s.JournalFirst, s.HeldAll = -1, false })
	for _, d := range slices.Clone(t.doubts) {
		if err := t.doubtReturned(tx, d.at); err != nil {
			return err
		}
	}
	return nil
}

// LostEnd notes, in a view that is built anew, what the journal cannot tell: that it had records behind an offset.
func (t *Entries) LostEnd(end int64) error {
	err := t.store.Update(func(tx *view.Tx) error {
		t.update(func(s *State) { s.Lost, s.LostAt = true, max(s.LostAt, end) })
		return t.Commit(tx)
	})
	if err != nil {
		return err
	}
	return t.store.Flush()
}

func (t *Entries) forgetRejected(tx *view.Tx, stream string) error {
	t.update(func(s *State) { delete(s.Rejected, stream) })
	return forgetRejects(tx, stream)
}

// age is what is taken from the epochs of a journal that is gone: they end up below all that a journal can have, in their old order.
const age = 1 << 40

// ageDoubtful keeps doubtful what was, under names that no leader of the new journal has.
func (t *Entries) ageDoubtful(tx *view.Tx) error {
	for _, d := range slices.Clone(t.doubts) {
		m, err := t.mark(tx, d.at)
		if err != nil {
			return err
		}
		if err := t.undoubted(tx, d.fired); err != nil {
			return err
		}
		m.epoch -= age
		if err := t.setMark(tx, d.at, m); err != nil {
			return err
		}
	}
	return nil
}

// withoutJournal is the state of a view that has read nothing of the journal. What is held stays held, and the witness is as good
// as it was. Low water may be that of a stream which is gone too. Barriers prove that there was a leader, under epochs that none will have.
func (s State) withoutJournal() State {
	next := newState()
	next.Journals, next.Lost = s.Journals+1, s.Lost || s.Epoch >= 0
	next.Held, next.Why, next.Witness, next.First = s.Held, s.Why, s.Witness, s.First
	next.Rejected, next.Void, next.Duplicates, next.Fired, next.Buried = s.Rejected, s.Void, s.Duplicates, s.Fired, s.Buried
	next.WitnessFrom = wire.Through{Epoch: s.WitnessFrom.Epoch - age, Through: s.WitnessFrom.Through}
	next.JournaledTo = wire.Through{Epoch: s.JournaledTo.Epoch - age, Through: s.JournaledTo.Through}
	next.Barriers, next.FirstBarrier = maps.Clone(s.Barriers), s.FirstBarrier
	for stream, b := range next.Barriers {
		b.Epoch -= age
		b.Before.Epoch -= age
		b.Earlier = slices.Clone(b.Earlier)
		for i := range b.Earlier {
			b.Earlier[i] -= age
		}
		next.Barriers[stream] = b
	}
	return next
}
