package tracker

import (
	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// entryTable has the entries with their marks, and the lists and counts of those that are pending.
type entryTable struct {
	rows
	fronts   *fronts
	counts   *countFold
	arrivals *arrivals
}

func newEntryTable(r *Reader) *entryTable {
	return &entryTable{fronts: r.fronts, counts: &countFold{Counts: r.Counts}, arrivals: &arrivals{shown: r.Shown, counts: r.Counts}}
}

func (t *entryTable) load(r view.Reader) error {
	if err := t.rows.load(r); err != nil {
		return err
	}
	t.fronts.forget()
	t.arrivals.reset()
	return t.counts.load(r)
}

// announce is called before a batch is written: what it adds can be found from then on, and is
// shown once it is written.
func (t *entryTable) announce(tx *view.Tx) {
	t.fronts.announce()
	t.arrivals.announce(tx)
}

// addPending stores an entry and lists it.
func (t *entryTable) addPending(tx *view.Tx, s *Stored) error {
	p := s.place()
	if err := t.setStored(tx, s); err != nil {
		return err
	}
	listed := keyList(s.listed(), s.At)
	t.fronts.add(tx, s.listed().stream, listed)
	if err := tx.Set(listed, summary(s)); err != nil {
		return err
	}
	if err := tx.Set(keyJID(p, s.JID), nil); err != nil {
		return err
	}
	if s.Leased != "" {
		if err := tx.Set(keyJID(s.listed(), s.Leased), nil); err != nil {
			return err
		}
	}
	t.counts.add(tx, s, 1)
	if s.Stream == wire.DeadJobs {
		return tx.Set(keyDead(s), nil)
	}
	if s.IsCopy() {
		t.arrivals.noteCopy(s)
	}
	if !fires(s) {
		return nil
	}
	t.arrivals.noteReady(s)
	return tx.Set(keyFire(s.Queue, s.At, p), nil)
}

// removePending takes an entry out of the lists. It stays stored.
func (t *entryTable) removePending(tx *view.Tx, s *Stored) error {
	p := s.place()
	if err := tx.Delete(keyList(s.listed(), s.At)); err != nil {
		return err
	}
	if err := tx.Delete(keyJID(p, s.JID)); err != nil {
		return err
	}
	if s.Leased != "" {
		if err := tx.Delete(keyJID(s.listed(), s.Leased)); err != nil {
			return err
		}
	}
	t.counts.add(tx, s, -1)
	if s.Stream == wire.DeadJobs {
		return tx.Delete(keyDead(s))
	}
	if !fires(s) {
		return nil
	}
	return tx.Delete(keyFire(s.Queue, s.At, p))
}

// drop removes an entry and its mark: it was settled or replaced.
func (t *entryTable) drop(tx *view.Tx, p place) error {
	s, err := t.stored(tx, p)
	if err != nil {
		return err
	}
	m, err := t.mark(tx, p)
	if err != nil {
		return err
	}
	if s != nil {
		if m == nil || m.state != doubtful {
			if err := t.removePending(tx, s); err != nil {
				return err
			}
		}
		if err := t.deleteStored(tx, p); err != nil {
			return err
		}
	}
	return t.unmark(tx, p, m)
}

// dropBetween drops all entries and marks from one place up to, but not including, another of the
// same stream.
func (t *entryTable) dropBetween(tx *view.Tx, from, to place) error {
	for _, key := range []func(place) []byte{keyEntry, keyMark} {
		places, err := scanPlaces(tx, key(from), key(to), func([]byte) bool { return true })
		if err != nil {
			return err
		}
		for _, p := range places {
			if err := t.drop(tx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// eachUnread calls fn for what a journal said of entries that the view has not read.
func (t *entryTable) eachUnread(tx *view.Tx, fn func(p place, m *mark) error) error {
	places, err := scanPlaces(tx, []byte{tableMark}, table.After([]byte{tableMark}), func(value []byte) bool {
		s := markState(value[0])
		return s == settled || s == parked
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

// ageUnread notes that what was said of unread entries is of a journal that is gone.
func (t *entryTable) ageUnread(tx *view.Tx) error {
	return t.eachUnread(tx, func(p place, m *mark) error {
		m.epoch = -age
		return t.setMark(tx, p, m)
	})
}

// dropAged removes what a journal that is gone said of entries that were not read. The leader that
// moves low water has left barriers behind them, so if there were such entries, they are settled
// now.
func (t *entryTable) dropAged(tx *view.Tx) error {
	return t.eachUnread(tx, func(p place, m *mark) error {
		if m.epoch >= 0 {
			return nil
		}
		return tx.Delete(keyMark(p))
	})
}

// ageDoubtful keeps doubtful what was, under names that no leader of the new journal has.
func (t *entryTable) ageDoubtful(tx *view.Tx) error {
	for _, d := range append(doubts(nil), t.doubts...) {
		m, err := t.mark(tx, d.at)
		if err != nil {
			return err
		}
		if err := t.doubts.remove(tx, d.fired); err != nil {
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
