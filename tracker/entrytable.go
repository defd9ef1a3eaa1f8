package tracker

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// entryTable has the entries with their marks, and the lists and counts of those that are pending.
type entryTable struct {
	maxOffsets maxOffsets
	doubts     doubts
	heads      *listHeads
	counts     *countFold
	arrivals   *arrivals
	recent     recent
	keys       *uniqueKeys
	rules      ruler
}

func newEntryTable(heads *listHeads, counts *Counts, shown *Shown, rules ruler) *entryTable {
	return &entryTable{heads: heads, counts: &countFold{Counts: counts}, arrivals: &arrivals{shown: shown, counts: counts},
		recent: recent{map[code][]recentEntry{}}, keys: &uniqueKeys{shown: &shown.shownUnique}, rules: rules}
}

func (t *entryTable) load(r view.Reader) (err error) {
	if t.maxOffsets, err = loadMaxOffsets(r); err != nil {
		return err
	}
	if t.doubts, err = loadDoubts(r); err != nil {
		return err
	}
	t.heads.forget()
	t.recent.forget()
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
	t.recent.add(s)
	t.keys.count(tx, s, 1)
	id, listed := s.id(), s.listed()
	row := keyList(listed, s.At)
	t.heads.add(tx, listed.stream, row)
	t.counts.add(tx, s, 1)
	err := cmp.Or(tx.Set(row, summary(s)), tx.Set(keyJID(id, s.tag()), nil))
	if s.Leased != "" {
		err = cmp.Or(err, tx.Set(keyJID(listed, wire.JIDTag(s.Leased)), nil))
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
	return cmp.Or(err, tx.Set(keyDue(s), nil))
}

// removePending takes an entry out of the lists. It stays stored.
func (t *entryTable) removePending(tx *view.Tx, s *Stored) error {
	id, listed := s.id(), s.listed()
	t.recent.remove(id)
	t.keys.count(tx, s, -1)
	t.counts.add(tx, s, -1)
	err := cmp.Or(tx.Delete(keyList(listed, s.At)), tx.Delete(keyJID(id, s.tag())))
	if s.Leased != "" {
		err = cmp.Or(err, tx.Delete(keyJID(listed, wire.JIDTag(s.Leased))))
	}
	switch {
	case s.Stream == wire.DeadJobs:
		return cmp.Or(err, tx.Delete(keyDead(s)))
	case fires(s):
		return cmp.Or(err, tx.Delete(keyDue(s)))
	}
	return err
}

// fired returns the entry of a fire, nil if there is none. It may lack its record.
func (t *entryTable) fired(tx *view.Tx, id entryID) (*Stored, error) {
	if s := t.recent.get(id); s != nil {
		return s, nil
	}
	return t.stored(tx, id)
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
	if from.stream == codes[wire.Gated] {
		return t.keys.forgetBelow(tx, to.offset)
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

// maxOffsets are the highest offsets of the streams at which a table has a row, or had one. The
// fold does not look above them. Streams are read in order, so mostly nothing is known of what
// comes next, and to ask the store for it takes longer than all other work.
type maxOffsets map[byte]map[code]int64

func loadMaxOffsets(r view.Reader) (maxOffsets, error) {
	all := maxOffsets{}
	for _, one := range []byte{tableEntry, tableMark} {
		all[one] = map[code]int64{}
		for stream := range code(len(names) + 1) { // 0 too: fires that have no entry
			all[one][stream] = minOffset
			prefix := []byte{one, byte(stream)}
			err := r.Scan(prefix, table.After(prefix), true, func(key, _ []byte) bool {
				all.note(one, entryIDOf(key[1:]))
				return false
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

func (t maxOffsets) note(table byte, id entryID) {
	t[table][id.stream] = max(t[table][id.stream], id.offset)
}

// below reports whether a table may have a row of an entry.
func (t maxOffsets) below(table byte, id entryID) bool { return id.offset <= t[table][id.stream] }

// stored returns an entry, nil if there is none.
func (t *entryTable) stored(tx *view.Tx, id entryID) (*Stored, error) {
	if !t.maxOffsets.below(tableEntry, id) {
		return nil, nil
	}
	s, err := storedAt(tx, id)
	return t.gate(tx, s), err
}

func (t *entryTable) setStored(tx *view.Tx, s *Stored) error {
	t.maxOffsets.note(tableEntry, s.id())
	if err := t.keys.entered(tx, s); err != nil {
		return err
	}
	if s.IsCopy() {
		if err := tx.Set(keyCopy(s.Offset), nil); err != nil {
			return err
		}
	}
	return tx.Set(keyEntry(s.id()), s.encode())
}

// deleteStored deletes an entry that is not in the lists any more.
func (t *entryTable) deleteStored(tx *view.Tx, id entryID) error {
	if err := t.keys.left(tx, id); err != nil {
		return err
	}
	if id.stream == codes[wire.Gated] {
		if err := tx.Delete(keyCopy(id.offset)); err != nil {
			return err
		}
	}
	return tx.Delete(keyEntry(id))
}

// mark returns the mark of an entry, nil if there is none.
func (t *entryTable) mark(tx *view.Tx, id entryID) (*mark, error) {
	if !t.maxOffsets.below(tableMark, id) {
		return nil, nil
	}
	return markAt(tx, id)
}

func (t *entryTable) setMark(tx *view.Tx, id entryID, m *mark) error {
	t.maxOffsets.note(tableMark, id)
	if m.state == inDoubt {
		if err := t.doubts.add(tx, id, m); err != nil {
			return err
		}
	}
	return tx.Set(keyMark(id), m.encode())
}

// unmark deletes a mark, if there is one.
func (t *entryTable) unmark(tx *view.Tx, id entryID, m *mark) error {
	if m == nil {
		return nil
	}
	if m.state == inDoubt {
		if err := t.doubts.remove(tx, dispatchID{m.epoch, m.seq}); err != nil {
			return err
		}
	}
	return tx.Delete(keyMark(id))
}

// scanIDs returns the ids of the rows between two keys for which is holds.
func scanIDs(r view.Reader, lower, upper []byte, is func(value []byte) (bool, error)) (all []entryID, err error) {
	err = table.Scan(r, lower, upper, false, func(key, value []byte) (bool, error) {
		holds, err := is(value)
		if holds {
			all = append(all, entryIDOf(key[1:]))
		}
		return true, err
	})
	return all, err
}

// keyDue is the key of an entry that may fire: of its queue, or if it is gated, of its group. An
// undecided one may not.
func keyDue(s *Stored) []byte {
	if s.Undecided {
		return keyUndecided(s.Offset)
	}
	if s.Gated {
		return s.id().append(table.AppendInt(keyGroup(s.Group()), s.At.UnixMicro()))
	}
	return keyFire(s.Queue, s.At, s.id())
}

// gate gates an entry if its queue is governed.
func (t *entryTable) gate(tx *view.Tx, s *Stored) *Stored {
	if s == nil {
		return nil
	}
	return s.gate(t.rules.ruleOf(tx, s.Queue))
}

// regate moves the entries of a queue that may fire to where they belong, after its rule has
// changed.
func (t *entryTable) regate(tx *view.Tx, queue string) error {
	var rows [][]byte
	for _, prefix := range [][]byte{keyFireQueue(queue), keyGroupsOf(queue)} {
		err := table.Scan(tx, prefix, table.After(prefix), false, func(key, _ []byte) (bool, error) {
			rows = append(rows, slices.Clone(key))
			return true, nil
		})
		if err != nil {
			return err
		}
	}
	for _, row := range rows {
		s, err := t.stored(tx, entryIDOf(row[len(row)-entryIDLen:]))
		if err != nil {
			return err
		}
		if s == nil {
			continue
		}
		if due := keyDue(s); !bytes.Equal(due, row) {
			if err := cmp.Or(tx.Delete(row), tx.Set(due, nil)); err != nil {
				return err
			}
		}
	}
	t.recent.forget()
	t.arrivals.readyQueue(queue)
	return nil
}
