package tracker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// A replacement is announced until it is journaled. The order in which entry and record are read
// makes no difference.
func TestAnnouncements(t *testing.T) {
	h := newHistory()
	a := h.entry(sched, "a", 1)
	h.open()
	change := h.change(sched, a, "a", 9)
	o := newOne(t).inOrder(h)
	all, err := o.Announced()
	require.NoError(t, err)
	require.Equal(t, []wire.Announcement{change}, all)
	by, replaced, err := o.Successor(sched, a)
	require.NoError(t, err)
	require.True(t, replaced)
	require.Equal(t, change.Offset, by)
	_, replaced, err = o.Successor(sched, change.Offset)
	require.NoError(t, err)
	require.False(t, replaced)

	o.scribble(tableAnnounced)
	_, err = o.Announced()
	require.ErrorContains(t, err, "damaged")

	h.journal(change)
	for name, o := range map[string]*one{"in order": newOne(t).inOrder(h), "the journal first": newOne(t)} {
		if name != "in order" {
			r := o.read(h, true)
			for r.next(wire.Journal, 1) {
				all, err := o.Announced()
				require.NoError(t, err)
				require.Empty(t, all, "a journaled replacement that was not read needs no announcement")
			}
			r.finish()
		}
		all, err := o.Announced()
		require.NoError(t, err)
		require.Empty(t, all, name)
		require.Zero(t, o.table(tableAnnounced), name)
		require.Equal(t, []string{"2:a"}, o.pending(sched), name)
	}
}

// The undo of a kill deletes the dead job.
func TestUndoneKills(t *testing.T) {
	h := newHistory()
	a := h.entry(sched, "a", 1)
	at := h.entry(dead, "a", 1)
	h.open()
	h.record(wire.JournalRecord{Type: wire.TypeKilled, Stream: sched, Offset: a, JID: "a"})
	require.Empty(t, newOne(t).inOrder(h).pending(sched))
	undo := wire.Announcement{What: wire.TypeUndone, Stream: sched, Replaces: a, JIDTag: "a", Undoes: 3, Dead: &at}
	undo.Offset = h.append(sched, millrace, undo.Headers(h.epoch), body(sched, "a", 1))
	o := newOne(t).inOrder(h)
	all, err := o.Announced()
	require.NoError(t, err)
	require.Equal(t, []wire.Announcement{undo}, all)
	require.EqualValues(t, 1, o.Total(dead))
	h.journal(undo)
	o = newOne(t).inOrder(h)
	require.Equal(t, []string{"2:a"}, o.pending(sched))
	require.Zero(t, o.Total(dead))
	happened, err := o.LastOutcome(sched, "a")
	require.NoError(t, err)
	require.Equal(t, wire.TypeUndone, happened.What)
}
