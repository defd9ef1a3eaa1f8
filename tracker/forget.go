package tracker

import (
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
	return false, nil
}

// forgetJournal keeps what the old journal said of entries, and forgets its offsets: epochs are offsets too, and those of the new journal
// begin again where the old ones did.
func (t *Entries) forgetJournal(tx *view.Tx) error {
	for _, stream := range []string{wire.Journal, wire.Unrouted, wire.DeadLetters} { // all are named by offsets of the journal
		if err := t.forgetRejected(tx, stream); err != nil {
			return err
		}
	}
	for _, table := range []byte{tableHappened, tableHistory, tableCommand, tableCommands} {
		if err := tx.DeleteRange([]byte{table}, after([]byte{table})); err != nil {
			return err
		}
	}
	for _, table := range []byte{tableHistory, tableCommands} {
		if err := tx.Delete([]byte{tableMeta, table}); err != nil {
			return err
		}
	}
	if err := t.ageDoubtful(tx); err != nil {
		return err
	}
	t.update(func(s *State) { *s = s.withoutJournal() })
	return nil
}

func (t *Entries) forgetRejected(tx *view.Tx, stream string) error {
	t.update(func(s *State) { delete(s.Rejected, stream) })
	return forgetRejects(tx, stream)
}

// age is what is taken from the epochs of a journal that is gone: they end up below all that a journal can have, in their old order.
const age = 1 << 40

// ageDoubtful keeps doubtful what was, under names that no leader of the new journal has.
func (t *Entries) ageDoubtful(tx *view.Tx) error {
	var places []place
	err := tx.Scan([]byte{tableDoubtful}, after([]byte{tableDoubtful}), false, func(_, value []byte) bool {
		places = append(places, placeOf(value))
		return true
	})
	if err != nil {
		return err
	}
	for _, p := range places {
		m, err := t.mark(tx, p)
		if err != nil || m == nil {
			return err
		}
		if err := tx.Delete(keyDoubtful(m.epoch, m.seq)); err != nil {
			return err
		}
		m.epoch -= age
		if err := tx.Set(keyMark(p), m.encode()); err != nil {
			return err
		}
		if err := tx.Set(keyDoubtful(m.epoch, m.seq), p.append(nil)); err != nil {
			return err
		}
	}
	return nil
}

// withoutJournal is the state of a view that has read nothing of the journal. What is held stays held, low water says what it said, and
// the witness is as good as it was. Barriers prove that there was a leader, under epochs that none will have.
func (s State) withoutJournal() State {
	next := newState()
	next.Journals = s.Journals + 1
	next.LowWater, next.Held, next.Witness, next.First = s.LowWater, s.Held, s.Witness, s.First
	next.Rejected, next.Void, next.Duplicates, next.Fired, next.Buried = s.Rejected, s.Void, s.Duplicates, s.Fired, s.Buried
	next.Barriers = maps.Clone(s.Barriers)
	for stream, b := range next.Barriers {
		b.Epoch -= age
		b.Earlier = slices.Clone(b.Earlier)
		for i := range b.Earlier {
			b.Earlier[i] -= age
		}
		next.Barriers[stream] = b
	}
	return next
}
