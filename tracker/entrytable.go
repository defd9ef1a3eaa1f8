package tracker

import (
	"cmp"
	"slices"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// entryTable has the entries with their marks, and the lists and counts of those that are pending.
type entryTable struct {
	rows
	heads    *listHeads
	counts   *countFold
	arrivals *arrivals
}

func newEntryTable(r *Reader) *entryTable {
	return &entryTable{heads: r.heads, counts: &countFold{Counts: r.Counts}, arrivals: &arrivals{shown: r.Shown, counts: r.Counts}}
}

func (t *entryTable) load(r view.Reader) error {
	if err := t.rows.load(r); err != nil {
		return err
	}
	t.heads.forget()
	t.arrivals.reset()
	return t.counts.load(r)
}

// announce is called before a batch is written. The added rows can be found from then on, and are
// shown when the batch is written.
func (t *entryTable) announce(tx *view.Tx) {
	t.heads.announce()
	t.arrivals.announce(tx)
}

// addPending stores an entry and lists it.
func (t *entryTable) addPending(tx *view.Tx, s *Stored) error {
	if err := t.setStored(tx, s); err != nil {
		return err
	}
	id, listed := s.id(), s.listed()
	row := keyList(listed, s.At)
	t.heads.add(tx, listed.stream, row)
	t.counts.add(tx, s, 1)
	err := cmp.Or(tx.Set(row, summary(s)), tx.Set(keyJID(id, s.JID), nil))
	if s.Leased != "" {
		err = cmp.Or(err, tx.Set(keyJID(listed, s.Leased), nil))
	}
	if s.Stream == wire.DeadJobs {
		return cmp.Or(err, tx.Set(keyDead(s), nil))
	}
	if s.IsCopy() {
		t.arrivals.noteCopy(s)
	}
	if !fires(s) {
		return err
	}
	t.arrivals.noteReady(s)
	return cmp.Or(err, tx.Set(keyFire(s.Queue, s.At, id), nil))
}

// removePending takes an entry out of the lists. It stays stored.
func (t *entryTable) removePending(tx *view.Tx, s *Stored) error {
	id, listed := s.id(), s.listed()
	t.counts.add(tx, s, -1)
	err := cmp.Or(tx.Delete(keyList(listed, s.At)), tx.Delete(keyJID(id, s.JID)))
	if s.Leased != "" {
		err = cmp.Or(err, tx.Delete(keyJID(listed, s.Leased)))
	}
	switch {
	case s.Stream == wire.DeadJobs:
		return cmp.Or(err, tx.Delete(keyDead(s)))
	case fires(s):
		return cmp.Or(err, tx.Delete(keyFire(s.Queue, s.At, id)))
	}
	return err
}

// drop removes an entry and its mark: it was settled or replaced.
func (t *entryTable) drop(tx *view.Tx, id entryID) error {
	s, err := t.stored(tx, id)
	if err != nil {
		return err
	}
	m, err := t.mark(tx, id)
	if err != nil {
		return err
	}
	if s != nil {
		if m == nil || m.state != inDoubt {
			if err := t.removePending(tx, s); err != nil {
				return err
			}
		}
		if err := t.deleteStored(tx, id); err != nil {
			return err
		}
	}
	return t.unmark(tx, id, m)
}

// dropBetween drops all entries and marks from one id up to, but not including, another of the
// same stream.
func (t *entryTable) dropBetween(tx *view.Tx, from, to entryID) error {
	for _, key := range []func(entryID) []byte{keyEntry, keyMark} {
		ids, err := scanIDs(tx, key(from), key(to), func([]byte) (bool, error) { return true, nil })
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := t.drop(tx, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// eachUnread calls fn for each mark that the journal left for an entry that the view has not read.
func (t *entryTable) eachUnread(tx *view.Tx, fn func(id entryID, m *mark) error) error {
	ids, err := scanIDs(tx, []byte{tableMark}, table.After([]byte{tableMark}), func(value []byte) (bool, error) {
		s, err := stateOf(value)
		return s == settled || s == parked, err
	})
	if err != nil {
		return err
	}
	for _, id := range ids {
		m, err := t.mark(tx, id)
		if err != nil {
			return err
		}
		if err := fn(id, m); err != nil {
			return err
		}
	}
	return nil
}

// ageUnread notes that the marks of unread entries are from a lost journal.
func (t *entryTable) ageUnread(tx *view.Tx) error {
	return t.eachUnread(tx, func(id entryID, m *mark) error {
		m.epoch = -age
		return t.setMark(tx, id, m)
	})
}

// ageDoubts keeps the doubts, under epochs that no leader of the new journal has.
func (t *entryTable) ageDoubts(tx *view.Tx) error {
	for _, d := range slices.Clone(t.doubts) {
		m, err := t.mark(tx, d.at)
		if err != nil {
			return err
		}
		if err := t.doubts.remove(tx, d.dispatchID); err != nil {
			return err
		}
		m.epoch -= age
		if err := t.setMark(tx, d.at, m); err != nil {
			return err
		}
	}
	return nil
}

func summary(s *Stored) []byte {
	return table.AppendText(table.AppendText(table.AppendText(nil, s.Queue), s.Class), s.JID)
}

func keyCopy(offset int64) []byte { return table.AppendInt([]byte{tableCopy}, offset) }

// Dead jobs are of two kinds, each with a bound of its own. A queue may drop any number of jobs in
// an instant, and they must not push out those that failed or that a user killed.

func keyDead(s *Stored) []byte {
	return table.AppendInt(table.AppendInt(keyDeads(s.Dropped), s.At.UnixMicro()), s.Offset)
}

func keyDeads(dropped bool) []byte {
	if dropped {
		return []byte{tableDead, 1}
	}
	return []byte{tableDead, 0}
}
