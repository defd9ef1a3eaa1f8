package tracker

import (
	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
)

// awaited are the offsets below which no settled mark waits for its entry, by stream.
type awaited map[code]int64

func (a awaited) load(r view.Reader) (err error) {
	for s := range names {
		if a[s], err = firstSettled(r, s, minOffset); err != nil {
			return err
		}
	}
	return nil
}

// sweep deletes the settled marks of offsets at which a stream turned out to have no entry: the
// reader is past them.
func (a awaited) sweep(tx *view.Tx, at entryID) error {
	lowest, ok := a[at.stream]
	if !ok || lowest >= at.offset {
		return nil
	}
	var stale []entryID
	next := int64(noOffset)
	err := scanSettled(tx, at.stream, lowest, func(id entryID) bool {
		if id.offset >= at.offset {
			next = id.offset
			return false
		}
		stale = append(stale, id)
		return true
	})
	if err != nil {
		return err
	}
	a[at.stream] = next
	for _, id := range stale {
		if err := tx.Delete(keyMark(id)); err != nil {
			return err
		}
	}
	return nil
}

// expect notes that a settled mark waits for its entry.
func (a awaited) expect(id entryID) {
	if lowest, ok := a[id.stream]; !ok || id.offset < lowest {
		a[id.stream] = id.offset
	}
}

// arrived notes that a settled mark no longer waits. Their entries come in order when a view is
// built.
func (a awaited) arrived(id entryID) {
	if a[id.stream] == id.offset {
		a[id.stream]++
	}
}

func firstSettled(r view.Reader, stream code, from int64) (int64, error) {
	first := int64(noOffset)
	err := scanSettled(r, stream, from, func(id entryID) bool {
		first = id.offset
		return false
	})
	return first, err
}

func scanSettled(r view.Reader, stream code, from int64, fn func(entryID) bool) error {
	lower := keyMark(entryID{stream, from})
	return table.Scan(r, lower, table.After([]byte{tableMark, byte(stream)}), false, func(key, value []byte) (bool, error) {
		if is, err := stateOf(value); err != nil || is != settled {
			return true, err
		}
		return fn(entryIDOf(key[1:])), nil
	})
}
