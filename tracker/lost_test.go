package tracker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// lose makes the view forget a stream that was deleted and created again.
func (o *one) lose(stream string) {
	require.NoError(o.t, o.store.Update(func(tx *view.Tx) error {
		if _, err := o.Forget(tx, stream); err != nil {
			return err
		}
		return o.Commit(tx)
	}))
}

// Doubts stay if the journal is lost, even several times. They keep the order of their fires, and
// get epochs that no leader has.
func TestDoubtsSurviveLostJournals(t *testing.T) {
	h := newHistory()
	a, b := h.entry(sched, "a", 1), h.entry(sched, "b", 1)
	h.open()
	h.fire(sched, b, "b")
	h.open()
	h.fire(sched, a, "a")
	h.fire(sched, 90, "unread")
	o := newOne(t).inOrder(h)
	for range 3 {
		o.lose(wire.Journal)
		all, err := o.Doubts()
		require.NoError(t, err)
		var jids []string
		for _, d := range all {
			require.Negative(t, d.Epoch)
			jids = append(jids, d.JID)
		}
		require.Equal(t, []string{"b", "a", "unread"}, jids)
		require.Empty(t, o.pending(sched))
		requireSound(t, o)
		o.restart()
	}
	require.Equal(t, 3, o.State().Journals)
}

// Records of a lost journal apply to entries that are read later.
func TestMarksOfLostJournalApplyToUnreadEntries(t *testing.T) {
	h := newHistory()
	h.open()
	h.record(wire.JournalRecord{Type: wire.TypeRefused, Stream: sched, Offset: 1, JID: "a", Error: "too large"})
	h.record(wire.JournalRecord{Type: wire.TypeDeleted, Stream: sched, Offset: 2, JID: "b"})
	for _, jid := range []string{"a", "b", "c"} {
		h.entry(sched, jid, 1)
	}
	o := newOne(t)
	r := o.read(h, true)
	for r.next(wire.Journal, 1) {
	}
	o.lose(wire.Journal)
	for r.next(sched, 1) {
	}
	require.Equal(t, []string{"1:a", "3:c"}, o.pending(sched))
	parked, err := o.Get(sched, 1)
	require.NoError(t, err)
	require.Equal(t, "too large", parked.Parked)
	require.Equal(t, []string{"c/scheduled_jobs:3"}, o.due())
	require.Zero(t, o.table(tableMark))
}

// If an entry stream is lost after the journal, no leader knows what became of its entries, and the
// view is rebuilt.
func TestEntryStreamLostAfterJournalRebuildsView(t *testing.T) {
	h := newHistory()
	h.open()
	o := newOne(t).inOrder(h)
	o.lose(sched)
	o.lose(wire.Journal)
	for _, stream := range wire.EntryStreams {
		require.ErrorIs(t, o.store.Update(func(tx *view.Tx) error {
			at, err := o.Forget(tx, stream)
			require.False(t, at)
			return err
		}), view.ErrRebuild, stream)
	}
}

// When the journal is lost, damaged marks cause an error, because their content is not anywhere
// else.
func TestLostJournalReportsDamagedMarks(t *testing.T) {
	for name, write := range map[string]func(h *history){
		"in doubt": func(h *history) { h.fire(sched, 9, "a") },
		"unread": func(h *history) {
			h.record(wire.JournalRecord{Type: wire.TypeDeleted, Stream: sched, Offset: 9, JID: "a"})
		},
		"parked": func(h *history) {
			h.record(wire.JournalRecord{Type: wire.TypeRefused, Stream: sched, Offset: 9, JID: "a"})
		},
	} {
		h := newHistory()
		h.open()
		write(h)
		o := newOne(t).inOrder(h)
		require.NoError(t, o.store.Update(func(tx *view.Tx) error {
			key := keyMark(entryID{codes[sched], 9})
			raw, ok, err := tx.Get(key)
			require.True(t, ok, name)
			require.NoError(t, err)
			return tx.Set(key, raw[:1])
		}))
		require.ErrorContains(t, o.store.Update(func(tx *view.Tx) error {
			_, err := o.Forget(tx, wire.Journal)
			return err
		}), "mark is damaged", name)
	}
}
