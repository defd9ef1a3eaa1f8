package tracker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/view"
)

// A damaged store may have a mark without a value. It ends the view with an error.
func TestEmptyMarkIsDamage(t *testing.T) {
	set := func(o *one, offset int64, value []byte) {
		require.NoError(t, o.store.Update(func(tx *view.Tx) error { return tx.Set(keyMark(entryID{codes[sched], offset}), value) }))
	}
	o := newOne(t)
	set(o, 5, (&mark{state: settled}).encode())
	set(o, 7, nil)
	o.restart() // it looks for the first settled mark only
	require.ErrorIs(t, o.store.Update(o.Entries.fold.entries.ageUnread), errEmptyMark)
	set(o, 3, nil)
	_, err := NewEntries(o.store, millrace)
	require.ErrorIs(t, err, errEmptyMark)
}
