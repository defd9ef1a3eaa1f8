package tracker

import (
	"math"

	"github.com/millrace-jobs/millrace/view"
)

const (
	minOffset = math.MinInt64
	noOffset  = math.MaxInt64
)

// sweep forgets the settled marks of offsets at which a stream turned out to have no entry: the reader is past them.
func (t *Entries) sweep(tx *view.Tx, at place) error {
	lowest, ok := t.waiting[at.stream]
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
	t.waiting[at.stream] = next
	for _, p := range stale {
		if err := tx.Delete(keyMark(p)); err != nil {
			return err
		}
	}
	return nil
}

// wait notes that a settled mark waits for its entry.
func (t *Entries) wait(p place) {
	if lowest, ok := t.waiting[p.stream]; !ok || p.offset < lowest {
		t.waiting[p.stream] = p.offset
	}
}

// met notes that a settled mark waits no longer: one after the other where a view is made anew.
func (t *Entries) met(p place) {
	if t.waiting[p.stream] == p.offset {
		t.waiting[p.stream]++
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
	return r.Scan(lower, after([]byte{tableMark, byte(stream)}), false, func(key, value []byte) bool {
		if markState(value[0]) != settled {
			return true
		}
		return fn(placeOf(key[1:]))
	})
}
