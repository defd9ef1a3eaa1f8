package tracker

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// oldest lists the dead jobs of a kind as "died@offset".
func (o *one) oldest(dropped bool) []string {
	list := []string{}
	require.NoError(o.t, o.OldestDead(dropped, func(at time.Time, offset int64) bool {
		list = append(list, fmt.Sprintf("%d@%d", at.Unix(), offset))
		return true
	}))
	return list
}

// drops is a dead job that a queue dropped.
func (h *history) drops(user, jid string, at int) int64 {
	return h.append(dead, user, map[string]any{wire.HeaderDropped: "maxlen"}, body(dead, jid, at))
}

// Dead jobs that a queue dropped count separately. Each kind is listed by the time of death, not by
// offset. Only Millrace's own user can mark a job as dropped.
func TestDroppedDeadJobsCountSeparately(t *testing.T) {
	h := newHistory()
	h.entry(dead, "a", 30)
	h.entry(dead, "b", 10)
	h.drops(millrace, "c", 25)
	h.drops(millrace, "d", 5)
	h.drops(client, "e", 20)
	failed := h.entry(dead, "f", 10)
	h.open()
	o := newOne(t).inOrder(h)
	for range 2 {
		require.Equal(t, []string{"10@1", "10@5", "20@4", "30@0"}, o.oldest(false))
		require.Equal(t, []string{"5@3", "25@2"}, o.oldest(true))
		require.Equal(t, []int64{4, 2, 6}, []int64{o.Dead(false), o.Dead(true), o.Total(dead)})
		o.restart()
	}
	stopped := 0
	require.NoError(t, o.OldestDead(false, func(_ time.Time, offset int64) bool {
		stopped++
		return offset == 1
	}))
	require.Equal(t, 2, stopped)

	h.record(wire.JournalRecord{Type: wire.TypeDeleted, Stream: dead, Offset: failed, JID: "f"})
	h.dispatch(wire.OpRetried, dead, 2, "c")
	o = newOne(t).inOrder(h)
	require.Equal(t, []string{"10@1", "20@4", "30@0"}, o.oldest(false))
	require.Equal(t, []string{"5@3"}, o.oldest(true), "a job that is fired again is not in the list")
	require.Equal(t, []int64{3, 1}, []int64{o.Dead(false), o.Dead(true)})
	dropped, err := o.Get(dead, 3)
	require.NoError(t, err)
	require.True(t, dropped.Dropped)
}

// Trimmed dead jobs leave the list of their kind and are counted, even if the view reads them after
// that. An entry with another jid stays.
func TestTrimmedDeadJobs(t *testing.T) {
	h := newHistory()
	a, b, c := h.drops(millrace, "a", 1), h.entry(dead, "b", 2), h.drops(millrace, "c", 3)
	h.open()
	h.record(wire.JournalRecord{Type: wire.TypeTrimmed, Stream: dead, Count: 3, Entries: []wire.Trimmed{{Offset: a, JID: "a"}, {Offset: b, JID: "b"}, {Offset: c, JID: "x"}}})
	for _, first := range []string{dead, wire.Journal} {
		o := newOne(t)
		r := o.read(h, true)
		r.next(first, 100)
		r.finish()
		require.EqualValues(t, 3, o.State().Trimmed, first)
		require.Empty(t, o.oldest(false), first)
		require.Equal(t, []string{"3@2"}, o.oldest(true), first)
		require.Equal(t, []int64{0, 1}, []int64{o.Dead(false), o.Dead(true)}, first)
		require.Equal(t, []string{"2:c"}, o.pending(dead), first)
	}
}
