package tracker

import (
	"bytes"
	"slices"
	"sync"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// fronts are where lists begin. What leaves a list was mostly at its beginning, and the store steps
// over the tombstone of each such row until it has compacted them. After 200,000 fires a look at
// the first entry took 8 ms without this.
type fronts struct {
	mu sync.Mutex
	at [leases + 1]front

	// The fold's own: the first row of each list among those that its batch adds.
	batch  table.Batch
	coming map[code][]byte
}

// front is a key before which a list has nothing.
type front struct {
	key     []byte // nil: not known
	coming  []byte // the first row that a batch adds which is being written
	looking int    // how many look for the first row
	came    []byte // the first of the rows that came meanwhile; those who look may not see it
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
func (f *fronts) add(tx *view.Tx, list code, key []byte) {
	if f.batch.Begins(tx) {
		f.coming = map[code][]byte{}
		tx.AfterCommit(f.show)
	}
	f.coming[list] = first(list, f.coming[list], key)
}

// announce makes each look for the first row begin at or before what a batch adds, from before the
// batch can be seen.
func (f *fronts) announce() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for list, key := range f.coming {
		f.at[list].coming = key
	}
}

// show makes lists begin with what a batch added before their first row.
func (f *fronts) show() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for list, key := range f.coming {
		a := &f.at[list]
		if a.key != nil {
			a.key = first(list, a.key, key)
		}
		if a.looking > 0 {
			a.came = first(list, a.came, key)
		}
		a.coming = nil
	}
	f.batch, f.coming = table.Batch{}, nil
}

// scan reads a list from its first row on.
func (f *fronts) scan(r view.Reader, list code, fn func(key, value []byte) bool) error {
	lower, upper := listBounds(list, Cursor{})
	lower, upper = f.look(list, lower, upper)
	found := false
	err := r.Scan(lower, upper, newestFirst(list), func(key, value []byte) bool {
		if !found {
			found = true
			f.found(list, key)
		}
		return fn(key, value)
	})
	switch {
	case found:
	case err != nil:
		f.found(list, nil)
	case newestFirst(list):
		f.found(list, lower)
	default:
		f.found(list, upper)
	}
	return err
}

// look is behind for a look for the first row. The caller calls found afterwards.
func (f *fronts) look(list code, lower, upper []byte) (from, to []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at[list].looking++
	return f.at[list].bounds(list, lower, upper)
}

// behind returns bounds in a list without the part in which it has nothing.
func (f *fronts) behind(list code, lower, upper []byte) (from, to []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at[list].bounds(list, lower, upper)
}

func (a *front) bounds(list code, lower, upper []byte) (from, to []byte) {
	if a.key == nil {
		return lower, upper
	}
	key := first(list, a.key, a.coming)
	if newestFirst(list) {
		return lower, slices.MinFunc([][]byte{upper, append(slices.Clone(key), 0)}, bytes.Compare)
	}
	return slices.MaxFunc([][]byte{lower, key}, bytes.Compare), upper
}

// found ends a look. It notes the first row, or the end of the list if the list is empty; nil if
// that is not known.
func (f *fronts) found(list code, key []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := &f.at[list]
	if key != nil {
		a.key = slices.Clone(first(list, key, a.came))
	}
	if a.looking--; a.looking == 0 {
		a.came = nil
	}
}

// forget makes every list be looked through from its beginning again.
func (f *fronts) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.batch, f.coming = table.Batch{}, nil
	for list := range f.at {
		a := &f.at[list]
		a.key, a.coming, a.came = nil, nil, nil
		if a.looking > 0 { // what they find may not be the first any more
			lower, upper := listBounds(code(list), Cursor{})
			a.came = lower
			if newestFirst(code(list)) {
				a.came = upper
			}
		}
	}
}
