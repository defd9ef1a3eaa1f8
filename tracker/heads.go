package tracker

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// listHeads are the beginnings of lists. Most rows that leave a list were at its beginning, and the
// store steps over the tombstone of each such row until it has compacted them. Without this, a read
// of the first entry took 8 ms after 200,000 fires.
type listHeads struct {
	mu sync.Mutex
	at [leases + 1]listHead

	// The fold's own: the first row of each list among those that its batch adds.
	batch   table.Batch
	pending map[code][]byte
}

// listHead is a key before which a list has nothing.
type listHead struct {
	key      []byte // nil: not known
	pending  []byte // the first row that a batch adds which is being written
	scanning int    // how many scans look for the first row
	arrived  []byte // the first of the rows that came meanwhile, which these scans may not see
}

// Cursor is a position in a list. The zero value is the beginning of the list.
type Cursor struct {
	At     time.Time
	Offset int64
	Set    bool
}

// newestFirst reports whether a list begins with its newest entry.
func newestFirst(list code) bool { return list == codes[wire.DeadJobs] }

// first returns the key that comes first in a list; nil is no key.
func first(list code, a, b []byte) []byte {
	if a == nil || b != nil && (bytes.Compare(b, a) < 0) != newestFirst(list) {
		return b
	}
	return a
}

// add notes a row that a batch adds to a list.
func (f *listHeads) add(tx *view.Tx, list code, key []byte) {
	if f.batch.Begins(tx) {
		f.pending = map[code][]byte{}
		tx.AfterCommit(f.show)
	}
	f.pending[list] = first(list, f.pending[list], key)
}

// announce makes each scan begin at or before what a batch adds, from before the batch can be seen.
func (f *listHeads) announce() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for list, key := range f.pending {
		f.at[list].pending = key
	}
}

// show makes lists begin with what a batch added before their first row.
func (f *listHeads) show() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for list, key := range f.pending {
		a := &f.at[list]
		if a.key != nil {
			a.key = first(list, a.key, key)
		}
		if a.scanning > 0 {
			a.arrived = first(list, a.arrived, key)
		}
		a.pending = nil
	}
	f.batch, f.pending = table.Batch{}, nil
}

// scan reads a list from its first row on.
func (f *listHeads) scan(r view.Reader, list code, fn func(key, value []byte) bool) error {
	lower, upper := listBounds(list, Cursor{})
	lower, upper = f.beginScan(list, lower, upper)
	found := false
	err := r.Scan(lower, upper, newestFirst(list), func(key, value []byte) bool {
		if !found {
			found = true
			f.endScan(list, key)
		}
		return fn(key, value)
	})
	switch {
	case found:
	case err != nil:
		f.endScan(list, nil)
	case newestFirst(list):
		f.endScan(list, lower)
	default:
		f.endScan(list, upper)
	}
	return err
}

// beginScan returns the bounds of a scan for the first row. endScan is to follow.
func (f *listHeads) beginScan(list code, lower, upper []byte) (from, to []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at[list].scanning++
	return f.at[list].bounds(list, lower, upper)
}

// bounds returns bounds in a list without the part in which it has nothing.
func (f *listHeads) bounds(list code, lower, upper []byte) (from, to []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at[list].bounds(list, lower, upper)
}

func (a *listHead) bounds(list code, lower, upper []byte) (from, to []byte) {
	if a.key == nil {
		return lower, upper
	}
	key := first(list, a.key, a.pending)
	if newestFirst(list) {
		return lower, slices.MinFunc([][]byte{upper, append(slices.Clone(key), 0)}, bytes.Compare)
	}
	return slices.MaxFunc([][]byte{lower, key}, bytes.Compare), upper
}

// endScan notes the first row, or the end of the list if the list is empty; nil if that is not
// known.
func (f *listHeads) endScan(list code, key []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := &f.at[list]
	if key != nil {
		a.key = slices.Clone(first(list, key, a.arrived))
	}
	if a.scanning--; a.scanning == 0 {
		a.arrived = nil
	}
}

// forget makes every list be read from its very beginning again.
func (f *listHeads) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.batch, f.pending = table.Batch{}, nil
	for list := range f.at {
		a := &f.at[list]
		a.key, a.pending, a.arrived = nil, nil, nil
		if a.scanning > 0 { // what these scans find may not be the first row any more
			lower, upper := listBounds(code(list), Cursor{})
			a.arrived = lower
			if newestFirst(code(list)) {
				a.arrived = upper
			}
		}
	}
}

// listBounds returns the keys of the entries that a list shows behind a cursor.
func listBounds(list code, behind Cursor) (lower, upper []byte) {
	prefix := []byte{tableList, byte(list)}
	lower, upper = prefix, table.After(prefix)
	if !behind.Set {
		return lower, upper
	}
	key := keyList(entryID{list, behind.Offset}, behind.At)
	if newestFirst(list) {
		return lower, key
	}
	return append(key, 0), upper
}
