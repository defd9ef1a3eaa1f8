package tracker

import (
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// tops are the highest offsets of the streams at which a table has a row, or had one. Nobody looks above them: streams are read in order, so
// mostly nothing is known of what comes next, and to ask the store for it takes longer than all the rest.
type tops map[byte]map[code]int64

func loadTops(r view.Reader) (tops, error) {
	all := tops{}
	for _, table := range []byte{tableEntry, tableMark} {
		all[table] = map[code]int64{}
		for stream := range code(len(names) + 1) { // 0 too: fires that have no entry
			all[table][stream] = minOffset
			prefix := []byte{table, byte(stream)}
			err := r.Scan(prefix, after(prefix), true, func(key, _ []byte) bool {
				all.note(table, placeOf(key[1:]))
				return false
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

func (t tops) note(table byte, p place) { t[table][p.stream] = max(t[table][p.stream], p.offset) }

// below tells whether a table may have a row at a place.
func (t tops) below(table byte, p place) bool { return p.offset <= t[table][p.stream] }

// stored gives the entry at a place as the fold has it; nil if there is none.
func (t *Entries) stored(tx *view.Tx, p place) (*Stored, error) {
	if !t.tops.below(tableEntry, p) {
		return nil, nil
	}
	return storedAt(tx, p)
}

func (t *Entries) setStored(tx *view.Tx, s *Stored) error {
	t.tops.note(tableEntry, s.place())
	if s.IsCopy() {
		if err := tx.Set(keyCopy(s.Offset), nil); err != nil {
			return err
		}
	}
	return tx.Set(keyEntry(s.place()), s.encode())
}

// deleteStored deletes an entry. It was taken off the lists before.
func (t *Entries) deleteStored(tx *view.Tx, p place) error {
	if p.stream == codes[wire.Gated] {
		if err := tx.Delete(keyCopy(p.offset)); err != nil {
			return err
		}
	}
	return tx.Delete(keyEntry(p))
}

// mark gives what is known of a place beside its entry, as the fold has it; nil if that is nothing.
func (t *Entries) mark(tx *view.Tx, p place) (*mark, error) {
	if !t.tops.below(tableMark, p) {
		return nil, nil
	}
	return markAt(tx, p)
}

func (t *Entries) setMark(tx *view.Tx, p place, m *mark) error {
	t.tops.note(tableMark, p)
	if m.state == doubtful {
		if err := t.doubted(tx, p, m); err != nil {
			return err
		}
	}
	return tx.Set(keyMark(p), m.encode())
}

// unmark forgets it.
func (t *Entries) unmark(tx *view.Tx, p place, m *mark) error {
	if m == nil {
		return nil
	}
	if m.state == doubtful {
		if err := t.undoubted(tx, fired{m.epoch, m.seq}); err != nil {
			return err
		}
	}
	return tx.Delete(keyMark(p))
}

func storedAt(r view.Reader, p place) (*Stored, error) {
	raw, ok, err := r.Get(keyEntry(p))
	if err != nil || !ok {
		return nil, err
	}
	return decodeStored(p, raw)
}

func markAt(r view.Reader, p place) (*mark, error) {
	raw, ok, err := r.Get(keyMark(p))
	if err != nil || !ok {
		return nil, err
	}
	return decodeMark(raw)
}
