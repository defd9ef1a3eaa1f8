package tracker

import (
	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// rows are the entries and the marks as the fold has them.
type rows struct {
	tops   tops
	doubts doubts
}

func (t *rows) load(r view.Reader) (err error) {
	if t.tops, err = loadTops(r); err != nil {
		return err
	}
	t.doubts, err = loadDoubts(r)
	return err
}

// tops are the highest offsets of the streams at which a table has a row, or had one. The fold does
// not look above them. Streams are read in order, so mostly nothing is known of what comes next,
// and to ask the store for it takes longer than all other work.
type tops map[byte]map[code]int64

func loadTops(r view.Reader) (tops, error) {
	all := tops{}
	for _, one := range []byte{tableEntry, tableMark} {
		all[one] = map[code]int64{}
		for stream := range code(len(names) + 1) { // 0 too: fires that have no entry
			all[one][stream] = minOffset
			prefix := []byte{one, byte(stream)}
			err := r.Scan(prefix, table.After(prefix), true, func(key, _ []byte) bool {
				all.note(one, placeOf(key[1:]))
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

// below reports whether a table may have a row at a place.
func (t tops) below(table byte, p place) bool { return p.offset <= t[table][p.stream] }

// stored returns the entry at a place, nil if there is none.
func (t *rows) stored(tx *view.Tx, p place) (*Stored, error) {
	if !t.tops.below(tableEntry, p) {
		return nil, nil
	}
	return storedAt(tx, p)
}

func (t *rows) setStored(tx *view.Tx, s *Stored) error {
	t.tops.note(tableEntry, s.place())
	if s.IsCopy() {
		if err := tx.Set(keyCopy(s.Offset), nil); err != nil {
			return err
		}
	}
	return tx.Set(keyEntry(s.place()), s.encode())
}

// deleteStored deletes an entry that is not in the lists any more.
func (t *rows) deleteStored(tx *view.Tx, p place) error {
	if p.stream == codes[wire.Gated] {
		if err := tx.Delete(keyCopy(p.offset)); err != nil {
			return err
		}
	}
	return tx.Delete(keyEntry(p))
}

// mark returns the mark at a place, nil if there is none.
func (t *rows) mark(tx *view.Tx, p place) (*mark, error) {
	if !t.tops.below(tableMark, p) {
		return nil, nil
	}
	return markAt(tx, p)
}

func (t *rows) setMark(tx *view.Tx, p place, m *mark) error {
	t.tops.note(tableMark, p)
	if m.state == doubtful {
		if err := t.doubts.add(tx, p, m); err != nil {
			return err
		}
	}
	return tx.Set(keyMark(p), m.encode())
}

// unmark deletes a mark, if there is one.
func (t *rows) unmark(tx *view.Tx, p place, m *mark) error {
	if m == nil {
		return nil
	}
	if m.state == doubtful {
		if err := t.doubts.remove(tx, fired{m.epoch, m.seq}); err != nil {
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

// scanPlaces returns the places of the rows between two keys for which is holds.
func scanPlaces(r view.Reader, lower, upper []byte, is func(value []byte) bool) (all []place, err error) {
	err = r.Scan(lower, upper, false, func(key, value []byte) bool {
		if is(value) {
			all = append(all, placeOf(key[1:]))
		}
		return true
	})
	return all, err
}
