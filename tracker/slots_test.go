package tracker

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// story is a short history, with the outcome that it must have.
type story struct {
	write func(h *history)
	want  outcome
}

// slotStories are stories of jobs that limits count.
var slotStories = map[string]story{
	"gated, fired": {func(h *history) {
		c, c2 := h.entry(gated, "c", 1), h.entry(sched, "c2", 1)
		h.open()
		h.confirmed(h.fire(gated, c, "c"))
		h.end(wire.TypeClaimed, h.slots[0])
		_ = c2
	}, outcome{sched: []string{"0:c2"}, due: []string{"c/scheduled_jobs:0"}, slots: []string{"jobs.gated:0 c [{0 1}]"}}},
	"gated, fired, ended": {func(h *history) {
		c := h.entry(gated, "c", 1)
		h.open()
		h.confirmed(h.fire(gated, c, "c"))
		h.end(wire.TypeEnded, h.slots[0])
		h.end(wire.TypeEnded, h.slots[0])
	}, outcome{}},
	"gated, fired, ended together": {func(h *history) {
		a, b, c := h.entry(gated, "c", 1), h.entry(gated, "c2", 1), h.entry(gated, "c3", 1)
		h.open()
		h.fire(gated, a, "c")
		h.fire(gated, b, "c2")
		h.confirmed(h.fire(gated, c, "c3"))
		h.end(wire.TypeEnded, h.slots[2], h.slots[0], h.slots[2])
	}, outcome{slots: []string{"jobs.gated:1 c2 [{0 2}]"}}},
	"gated, fired, ended beside a slot that is none": {func(h *history) {
		a := h.entry(gated, "c", 1)
		h.open()
		h.confirmed(h.fire(gated, a, "c"))
		h.end(wire.TypeEnded, "no slot", h.slots[0])
	}, outcome{}},
	"gated, fired, returned": {func(h *history) {
		c := h.entry(gated, "c", 1)
		h.open()
		h.takeBack(h.fire(gated, c, "c"), gated, c, "c")
	}, outcome{due: []string{"c/jobs.gated:0"}}},
	"gated, fired, refired, the first ended": {func(h *history) {
		c := h.entry(gated, "c", 1)
		h.open()
		h.fire(gated, c, "c")
		h.end(wire.TypeEnded, h.slots[0])
		h.open()
		h.confirmed(h.dispatch(wire.OpRefired, gated, c, "c"))
	}, outcome{}},
	"gated, refired, the second returned": {func(h *history) {
		c := h.entry(gated, "c", 1)
		h.open()
		h.fire(gated, c, "c")
		h.open()
		h.takeBack(h.dispatch(wire.OpRefired, gated, c, "c"), gated, c, "c")
	}, outcome{due: []string{"c/jobs.gated:0"}, slots: []string{"jobs.gated:0 c [{0 1}]"}}},
	"gated, fired, freed by the leader": {func(h *history) {
		c := h.entry(gated, "c", 1)
		h.open()
		h.confirmed(h.fire(gated, c, "c"))
		h.record(wire.JournalRecord{Type: wire.TypeFreed, Slots: []wire.HeldSlot{{Stream: gated, Offset: c, JID: "c", Why: "asked"}}})
	}, outcome{}},
	"slots written again at low water": {func(h *history) {
		c, c2 := h.entry(gated, "c", 1), h.entry(gated, "c2", 1)
		h.open()
		h.fire(gated, c, "c")
		h.confirmed(h.fire(gated, c2, "c2"))
		h.end(wire.TypeEnded, h.slots[0])
		h.record(wire.JournalRecord{Type: wire.TypeState, Slots: []wire.HeldSlot{
			{Stream: gated, Offset: c, JID: "c", Fires: []wire.Through{{Epoch: h.epoch, Through: 1}}, Group: wire.Group{Queue: "c", Class: "C", Key: "c"}},
			{Stream: gated, Offset: c2, JID: "c2", Fires: []wire.Through{{Epoch: h.epoch, Through: 2}}, Group: wire.Group{Queue: "c", Class: "C2", Key: "c2"}},
		}})
	}, outcome{slots: []string{"jobs.gated:1 c2 [{0 2}]"}}},
}

// Ends of one record are kept and forgotten each by itself: the oldest records first, and of a
// record the first slots first.
func TestEndsOfARecordAreForgottenOneByOne(t *testing.T) {
	t.Parallel()
	o := newOne(t)
	slot := func(n int) wire.Slot {
		return wire.Slot{Stream: gated, Offset: int64(n), Epoch: 1, Seq: int64(n), JIDTag: fmt.Sprint("c", n)}
	}
	has := func(n int) bool {
		has, err := o.Slots.HasEnded(gated, int64(n), slot(n).JIDTag)
		require.NoError(t, err)
		return has
	}
	h := newHistory()
	for n := 0; n < mostEnds; n += wire.MaxEnds {
		var texts []string
		for i := range wire.MaxEnds {
			texts = append(texts, slot(n+i).String())
		}
		h.end(wire.TypeEnded, texts...)
	}
	o.fold(h.all...)
	require.True(t, has(0))
	requireMemory(t, o)

	h.end(wire.TypeEnded, slot(0).String(), slot(mostEnds).String()) // the first is as new as its newest record
	o.fold(h.all[len(h.all)-1])
	gone := mostEnds/64 + 1
	for n, want := range map[int]bool{0: true, 1: false, gone: false, gone + 1: true, mostEnds - 1: true, mostEnds: true} {
		require.Equal(t, want, has(n), "%d of %d", n, mostEnds)
	}
	require.Equal(t, mostEnds-gone+1, o.table(tableEnds))
	require.Equal(t, mostEnds-gone+1, o.table(indexEnds))
	requireMemory(t, o)
}
