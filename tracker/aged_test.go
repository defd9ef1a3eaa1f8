package tracker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Marks from a lost journal, for entries that were not read yet, are kept until low water moves. A
// leader that moves it has read all entries.
func TestMarksOfLostJournalEndAtLowWater(t *testing.T) {
	h := newHistory()
	h.open()
	h.record(wire.JournalRecord{Type: wire.TypeDeleted, Stream: sched, Offset: 50, JID: "a"})
	o := newOne(t).inOrder(h)
	require.Equal(t, 1, o.table(tableMark))
	require.NoError(t, o.store.Update(func(tx *view.Tx) error {
		if _, err := o.Forget(tx, wire.Journal); err != nil {
			return err
		}
		return o.Commit(tx)
	}))
	require.Equal(t, 1, o.table(tableMark))
	record := func(offset int64, r wire.JournalRecord) wire.Record {
		m := r.Append(wire.Journal, 0, 0)
		return wire.Record{Stream: wire.Journal, Offset: offset, UserID: millrace, Headers: m.Headers, Body: m.Body}
	}
	o.fold(record(1000, wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format, Identity: "next"}))
	require.Equal(t, 1, o.table(tableMark), "a leader that has just begun may not have read the entry")
	o.fold(record(1001, wire.JournalRecord{Type: wire.TypeLowWater, Epoch: 1000, LowWater: map[string]int64{sched: 1}, Needs: 1000}))
	require.Zero(t, o.table(tableMark))
}
