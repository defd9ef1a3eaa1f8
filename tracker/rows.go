package tracker

import (
	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// rows are the entries and the marks as the fold has them.
type rows struct {
	maxOffsets maxOffsets
	doubts     doubts
}

func (t *rows) load(r view.Reader) (err error) {
	if t.maxOffsets, err = loadMaxOffsets(r); err != nil {
		return err
	}
	t.doubts, err = loadDoubts(r)
	return err
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
func (t *rows) stored(tx *view.Tx, id entryID) (*Stored, error) {
	if !t.maxOffsets.below(tableEntry, id) {
		return nil, nil
	}
	return storedAt(tx, id)
}

func (t *rows) setStored(tx *view.Tx, s *Stored) error {
	t.maxOffsets.note(tableEntry, s.id())
	if s.IsCopy() {
		if err := tx.Set(keyCopy(s.Offset), nil); err != nil {
			return err
		}
	}
	return tx.Set(keyEntry(s.id()), s.encode())
}

// deleteStored deletes an entry that is not in the lists any more.
func (t *rows) deleteStored(tx *view.Tx, id entryID) error {
	if id.stream == codes[wire.Gated] {
		if err := tx.Delete(keyCopy(id.offset)); err != nil {
			return err
		}
	}
	return tx.Delete(keyEntry(id))
}

// mark returns the mark of an entry, nil if there is none.
func (t *rows) mark(tx *view.Tx, id entryID) (*mark, error) {
	if !t.maxOffsets.below(tableMark, id) {
		return nil, nil
	}
	return markAt(tx, id)
}

func (t *rows) setMark(tx *view.Tx, id entryID, m *mark) error {
	t.maxOffsets.note(tableMark, id)
	if m.state == inDoubt {
		if err := t.doubts.add(tx, id, m); err != nil {
			return err
		}
	}
	return tx.Set(keyMark(id), m.encode())
}

// unmark deletes a mark, if there is one.
func (t *rows) unmark(tx *view.Tx, id entryID, m *mark) error {
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

func storedAt(r view.Reader, id entryID) (*Stored, error) {
	raw, ok, err := r.Get(keyEntry(id))
	if err != nil || !ok {
		return nil, err
	}
	return decodeStored(id, raw)
}

func markAt(r view.Reader, id entryID) (*mark, error) {
	raw, ok, err := r.Get(keyMark(id))
	if err != nil || !ok {
		return nil, err
	}
	return decodeMark(raw)
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
