package tracker

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
)

// TestListsAreCompleteFromTheirHeads adds and removes rows, also while a reader looks for the first
// one, and compares each list with its table.
func TestListsAreCompleteFromTheirHeads(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		store, err := view.Open(view.Config{Schema: Schema, Identity: "heads", Log: slog.New(slog.DiscardHandler)})
		require.NoError(rt, err)
		defer func() { require.NoError(rt, store.Close()) }()
		w := &listing{T: rt, store: store, list: code(rapid.IntRange(1, 3).Draw(rt, "list"))}
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			w.step(2)
			w.requireComplete()
		}
	})
}

// listing is one list with its head.
type listing struct {
	*rapid.T
	store *view.Store
	heads listHeads
	list  code
}

func (w *listing) requireComplete() {
	all := w.read(w.store.Scan)
	lower, upper := w.heads.bounds(w.list, []byte{tableList, byte(w.list)}, table.After([]byte{tableList, byte(w.list)}))
	require.Equal(w.T, all, w.read(func(_, _ []byte, reverse bool, fn func(key, value []byte) bool) error {
		return w.store.Scan(lower, upper, reverse, fn)
	}))
	require.Equal(w.T, all, w.read(func(_, _ []byte, _ bool, fn func(key, value []byte) bool) error {
		return w.heads.scan(w.store, w.list, fn)
	}))
}

func (w *listing) step(depth int) {
	switch rapid.IntRange(0, 3).Draw(w.T, "step") {
	case 0:
		w.add()
	case 1:
		w.remove()
	default:
		if depth > 0 {
			require.NoError(w.T, w.heads.scan(delayed{w.store, func() { w.step(depth - 1) }}, w.list, func(_, _ []byte) bool { return false }))
		}
	}
}

func (w *listing) add() {
	require.NoError(w.T, w.store.Update(func(tx *view.Tx) error {
		if rapid.Bool().Draw(w.T, "read meanwhile") {
			tx.AfterCommit(w.requireComplete) // a reader may run before the heads are updated
		}
		for range rapid.IntRange(1, 3).Draw(w.T, "rows") {
			key := keyList(entryID{w.list, int64(rapid.IntRange(0, 20).Draw(w.T, "row"))}, time.Unix(0, 0))
			w.heads.add(tx, w.list, key)
			if err := tx.Set(key, nil); err != nil {
				return err
			}
		}
		w.heads.announce()
		return nil
	}))
}

func (w *listing) remove() {
	all := w.read(w.store.Scan)
	if len(all) == 0 {
		return
	}
	n := rapid.IntRange(1, len(all)).Draw(w.T, "first rows to remove")
	require.NoError(w.T, w.store.Update(func(tx *view.Tx) error {
		for _, key := range all[:n] {
			if err := tx.Delete([]byte(key)); err != nil {
				return err
			}
		}
		return nil
	}))
}

func (w *listing) read(scan func(lower, upper []byte, reverse bool, fn func(key, value []byte) bool) error) (all []string) {
	lower, upper := listBounds(w.list, Cursor{})
	require.NoError(w.T, scan(lower, upper, newestFirst(w.list), func(key, _ []byte) bool {
		all = append(all, string(key))
		return true
	}))
	return all
}

// delayed reads the store as it was before the call of meanwhile.
type delayed struct {
	*view.Store
	meanwhile func()
}

func (d delayed) Scan(lower, upper []byte, reverse bool, fn func(key, value []byte) bool) error {
	before := d.Snapshot()
	d.meanwhile()
	if err := before.Scan(lower, upper, reverse, fn); err != nil {
		return err
	}
	return before.Close()
}
