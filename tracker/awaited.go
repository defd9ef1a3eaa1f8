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
func (a awaited) sweep(tx *view.Tx, at place) error {
	lowest, ok := a[at.stream]
	if !ok || lowest >= at.offset {
		return nil
	}
	var stale []place
	next := int64(noOffset)
	err := scanSettled(tx, at.stream, lowest, func(p place) bool {
		if p.offset >= at.offset {
			next = p.offset
			return false
		}
		stale = append(stale, p)
		return true
	})
	if err != nil {
		return err
	}
	a[at.stream] = next
	for _, p := range stale {
		if err := tx.Delete(keyMark(p)); err != nil {
			return err
		}
	}
	return nil
}

// wait notes that a settled mark waits for its entry.
func (a awaited) wait(p place) {
	if lowest, ok := a[p.stream]; !ok || p.offset < lowest {
		a[p.stream] = p.offset
	}
}

// met notes that a settled mark no longer waits. They end one after the other when a view is built.
func (a awaited) met(p place) {
	if a[p.stream] == p.offset {
		a[p.stream]++
	}
}

func firstSettled(r view.Reader, stream code, from int64) (int64, error) {
	first := int64(noOffset)
	err := scanSettled(r, stream, from, func(p place) bool {
		first = p.offset
		return false
	})
	return first, err
}

func scanSettled(r view.Reader, stream code, from int64, fn func(place) bool) error {
	lower := keyMark(place{stream, from})
	return r.Scan(lower, table.After([]byte{tableMark, byte(stream)}), false, func(key, value []byte) bool {
		if markState(value[0]) != settled {
			return true
		}
		return fn(placeOf(key[1:]))
	})
}
