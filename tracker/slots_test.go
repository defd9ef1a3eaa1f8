package tracker

import "github.com/millrace-jobs/millrace/wire"

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
