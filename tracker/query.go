package tracker

import (
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// Skip moves a cursor on by n pending entries of a stream, in the order of List, without reading them. Where fewer are left it stands
// at the last, so that a List from there is empty.
func (t *Entries) Skip(stream string, behind Cursor, n int64) (Cursor, error) {
	if n <= 0 {
		return behind, nil
	}
	last := make([]byte, 0, listKeyLen)
	err := t.scanList(stream, behind, func(key, _ []byte) bool {
		last = append(last[:0], key...)
		n--
		return n > 0
	})
	if err != nil || len(last) == 0 {
		return behind, err
	}
	at, offset := listKeyParts(last)
	return Cursor{At: at, Offset: offset, Set: true}, nil
}

// listKeyLen is the length of a key in tableList.
const listKeyLen = 2 + 2*intLen

// scanList reads the rows of a list, from behind a cursor.
func (t *Entries) scanList(stream string, behind Cursor, fn func(key, value []byte) bool) error {
	list := codes[stream]
	if !behind.Set {
		return t.fronts.scan(t.store, list, fn)
	}
	lower, upper := listBounds(list, behind)
	lower, upper = t.fronts.behind(list, lower, upper)
	return t.store.Scan(lower, upper, newestFirst(list), fn)
}

// listBounds are the keys of the entries that a list shows behind a cursor.
func listBounds(list code, behind Cursor) (lower, upper []byte) {
	prefix := []byte{tableList, byte(list)}
	lower, upper = prefix, after(prefix)
	if !behind.Set {
		return lower, upper
	}
	key := keyList(place{list, behind.Offset}, behind.At)
	if newestFirst(list) {
		return lower, key
	}
	return append(key, 0), upper
}

// maxParked bounds how many parked entries Overdue looks past.
const maxParked = 1000

// Overdue is how long the oldest entry that may fire is past its time; 0 if none is. Parked entries wait for a person and do not count.
func (t *Entries) Overdue(now time.Time) (time.Duration, error) {
	var most time.Duration
	for _, stream := range []string{wire.ScheduledJobs, wire.Retries} {
		late, err := t.overdue(stream, now)
		if err != nil {
			return 0, err
		}
		most = max(most, late)
	}
	return most, nil
}

func (t *Entries) overdue(stream string, now time.Time) (late time.Duration, err error) {
	looked := 0
	scanned := t.List(stream, Cursor{}, func(r Row) bool {
		if r.At.After(now) {
			return false
		}
		looked++
		var fires bool
		_, fires, err = t.store.Get(keyFire(r.Queue, r.At, place{codes[stream], r.Offset}))
		if err != nil {
			return false
		}
		if !fires && looked <= maxParked {
			return true
		}
		late = now.Sub(r.At)
		return false
	})
	if scanned != nil {
		err = scanned
	}
	if err != nil {
		return 0, fmt.Errorf("tracker: oldest due of %s: %w", stream, err)
	}
	return late, nil
}
