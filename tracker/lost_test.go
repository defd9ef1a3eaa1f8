package tracker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// lose tells the view that a stream was deleted and made anew.
func (o *one) lose(stream string) {
	require.NoError(o.t, o.store.Update(func(tx *view.Tx) error {
		if _, err := o.Forget(tx, stream); err != nil {
			return err
		}
		return o.Commit(tx)
	}))
}

// However many journals are lost, what was doubtful stays so, in the order in which it was fired,
// and under epochs that no leader has.
func TestDoubtsOutliveTheirJournals(t *testing.T) {
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

// What a journal that is gone said of entries that are yet to be read holds when they come.
func TestWhatALostJournalSaidOfEntriesToCome(t *testing.T) {
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

// Once the journal was lost, an entry stream that is lost too has nobody who could say what became
// of it: the view is built anew.
func TestAnEntryStreamThatIsLostAfterTheJournal(t *testing.T) {
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

// Damaged marks are not taken for none when the journal is lost: what they say is said nowhere else
// any more.
func TestLosingTheJournalOfADamagedStore(t *testing.T) {
	for name, write := range map[string]func(h *history){
		"doubtful": func(h *history) { h.fire(sched, 9, "a") },
		"not read": func(h *history) {
			h.record(wire.JournalRecord{Type: wire.TypeDeleted, Stream: sched, Offset: 9, JID: "a"})
		},
		"not for now": func(h *history) {
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
