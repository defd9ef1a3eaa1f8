package tracker

import (
	"bytes"
	"slices"
	"sync"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// fronts are where lists begin. What leaves a list stood at its beginning mostly, and the store steps over the tombstone of each such row until
// it has tidied up: after 200,000 fires a look at the first entry took 8 ms, and now it takes none.
type fronts struct {
	mu sync.Mutex
	at [leases + 1]front

	// The fold's own: the first row of each list among those that its batch adds.
	batch  batch
	coming map[code][]byte
}

// front is a key before which a list has nothing.
type front struct {
	key     []byte // nil: not known
	coming  []byte // the first row that a batch adds which is being written
	looking int    // how many look for the first row
	came    []byte // the first of the rows that came meanwhile, which they may not see
}

// newestFirst tells which end of a list is its beginning.
func newestFirst(list code) bool { return list == codes[wire.DeadJobs] }

// first gives whichever of two keys comes first in a list; nil is no key.
func first(list code, a, b []byte) []byte {
	if a == nil || b != nil && (bytes.Compare(b, a) < 0) != newestFirst(list) {
		return b
	}
	return a
}

// add notes a row that a batch adds to a list.
func (f *fronts) add(tx *view.Tx, list code, key []byte) {
	if f.batch.begins(tx) {
		f.coming = map[code][]byte{}
		tx.AfterCommit(f.show)
	}
	f.coming[list] = first(list, f.coming[list], key)
}

// announce has nobody look behind what a batch adds, from before it can be seen.
func (f *fronts) announce() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for list, key := range f.coming {
		f.at[list].coming = key
	}
}

// show has lists begin with what a batch added before their first row.
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
	f.batch, f.coming = batch{}, nil
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

// look is behind for somebody who looks for the first row, and calls found then.
func (f *fronts) look(list code, lower, upper []byte) (from, to []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at[list].looking++
	return f.at[list].bounds(list, lower, upper)
}

// behind gives bounds within a list without what it has nothing in.
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

// found notes the first row that somebody found, or the end of a list that is empty; nil if that is not known.
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
