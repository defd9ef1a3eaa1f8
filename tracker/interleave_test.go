package tracker

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

const (
	sched = wire.ScheduledJobs
	retry = wire.Retries
	dead  = wire.DeadJobs
	gated = wire.Gated
)

// outcome is the content of a view after a story.
type outcome struct {
	sched, retry, dead, due, doubts []string

	slots []string // that are held
}

// stories are short histories with the outcome that every view must have, in each order of reading
// the streams.
var stories = map[string]story{
	"duplicate, then the first is fired": {func(h *history) {
		a, b := h.entry(sched, "a", 1), h.entry(sched, "a", 1)
		h.open()
		h.record(wire.JournalRecord{Type: wire.TypeDuplicate, Stream: sched, Offset: b, JID: "a"})
		h.confirmed(h.fire(sched, a, "a"))
	}, outcome{}},
	"duplicate, then the first is deleted": {func(h *history) {
		a, b := h.entry(sched, "a", 1), h.entry(sched, "a", 1)
		h.open()
		h.record(wire.JournalRecord{Type: wire.TypeDuplicate, Stream: sched, Offset: b, JID: "a"})
		h.record(wire.JournalRecord{Type: wire.TypeDeleted, Stream: sched, Offset: a, JID: "a"})
	}, outcome{}},
	"the second of two alike is deleted": {func(h *history) {
		h.entry(sched, "a", 1)
		b := h.entry(sched, "a", 1)
		h.open()
		h.record(wire.JournalRecord{Type: wire.TypeDeleted, Stream: sched, Offset: b, JID: "a"})
	}, outcome{sched: []string{"0:a"}, due: []string{"a/scheduled_jobs:0"}}},
	"replaced": {func(h *history) {
		a := h.entry(sched, "a", 1)
		h.open()
		h.replace(sched, a, "a", 9)
	}, outcome{sched: []string{"2:a"}, due: []string{"a/scheduled_jobs:2"}}},
	"carried over, then fired": {func(h *history) {
		a := h.entry(sched, "a", 1)
		h.open()
		b := h.replace(sched, a, "a", 1)
		h.confirmed(h.fire(sched, b, "a"))
	}, outcome{}},
	"returned, carried over, fired": {func(h *history) {
		a := h.entry(sched, "a", 1)
		h.open()
		seq := h.fire(sched, a, "a")
		h.takeBack(seq, sched, a, "a")
		h.confirmed(h.fire(sched, h.replace(sched, a, "a", 1), "a"))
	}, outcome{}},
	"parked, carried over": {func(h *history) {
		a := h.entry(sched, "a", 1)
		h.open()
		h.record(wire.JournalRecord{Type: wire.TypeRefused, Stream: sched, Offset: a, JID: "a", Error: "odd"})
		h.replace(sched, a, "a", 1)
		h.all[len(h.all)-1].Headers[wire.HeaderParked] = "odd"
	}, outcome{sched: []string{"2:a"}}},
	"changed and journaled": {func(h *history) {
		a := h.entry(sched, "a", 1)
		h.open()
		h.journal(h.change(sched, a, "a", 9))
	}, outcome{sched: []string{"2:a"}, due: []string{"a/scheduled_jobs:2"}}},
	"changed and not journaled": {func(h *history) {
		a := h.entry(sched, "a", 1)
		h.open()
		h.change(sched, a, "a", 9)
	}, outcome{sched: []string{"2:a"}, due: []string{"a/scheduled_jobs:2"}}},
	"changed, journaled, below low water": {func(h *history) {
		a := h.entry(sched, "a", 1)
		h.open()
		c := h.change(sched, a, "a", 9)
		h.journal(c)
		h.replace(sched, c.Offset, "a", 9)
		h.record(wire.JournalRecord{Type: wire.TypeLowWater, LowWater: map[string]int64{sched: c.Offset + 1}})
	}, outcome{sched: []string{"3:a"}, due: []string{"a/scheduled_jobs:3"}}},
	"killed, then undone": {func(h *history) {
		a := h.entry(sched, "a", 1)
		h.open()
		h.confirmed(h.dispatch(wire.OpBuried, sched, a, "a"))
		d := h.streams[dead] - 1
		u := h.change(sched, a, "a", 1)
		u.What, u.Dead = wire.TypeUndone, &d
		h.journal(u)
	}, outcome{sched: []string{"2:a"}, due: []string{"a/scheduled_jobs:2"}}},
	"carried over twice, then deleted": {func(h *history) {
		a := h.entry(sched, "a", 1)
		h.open()
		c := h.replace(sched, h.replace(sched, a, "a", 1), "a", 1)
		h.record(wire.JournalRecord{Type: wire.TypeDeleted, Stream: sched, Offset: c, JID: "a"})
	}, outcome{}},
	"tick that is journaled": {func(h *history) {
		h.open()
		h.record(wire.JournalRecord{Type: wire.TypeDefined, Defined: []wire.Defined{{Kind: wire.KindPeriodic, Name: "p", Layer: wire.LayerCode, Value: []byte(`{"every":60}`)}}})
		by := h.tick(1)
		h.record(wire.JournalRecord{Type: wire.TypeTicked, Ticks: []wire.Tick{{Periodic: "p", Tick: 60, Outcome: wire.TickMade, JID: "t1", By: &by}}})
	}, outcome{sched: []string{"1:t1"}, due: []string{"t/scheduled_jobs:1"}}},
	"tick of a leader that had been followed": {func(h *history) {
		h.open()
		epoch := h.epoch
		h.open()
		h.epoch, epoch = epoch, h.epoch
		h.tick(1)
		h.epoch = epoch
	}, outcome{}},
	"fired by a leader that dies": {func(h *history) {
		a := h.entry(sched, "a", 1)
		h.open()
		h.fire(sched, a, "a")
		h.open()
	}, outcome{doubts: []string{"0/1 fired scheduled_jobs:0"}}},
	"fired, confirmed with the next": {func(h *history) {
		a, b := h.entry(sched, "a", 1), h.entry(retry, "b", 1)
		h.open()
		h.through = h.fire(sched, a, "a")
		h.fire(retry, b, "b")
	}, outcome{doubts: []string{"0/2 fired retries:0"}}},
	"fired, known to be confirmed by the next epoch": {func(h *history) {
		a, b := h.entry(sched, "a", 1), h.entry(sched, "b", 1)
		h.open()
		through := h.fire(sched, a, "a")
		h.fire(sched, b, "b")
		h.open(func(r *wire.JournalRecord) { r.KnownConfirmed = &wire.Confirmed{Epoch: 0, Through: through} })
	}, outcome{doubts: []string{"0/2 fired scheduled_jobs:1"}}},
	"fired, unknown to the epoch after the next": {func(h *history) {
		a := h.entry(sched, "a", 1)
		h.open()
		h.fire(sched, a, "a")
		h.open()
		h.confirmed(7)
	}, outcome{doubts: []string{"0/1 fired scheduled_jobs:0"}}},
	"returned": {func(h *history) {
		a := h.entry(sched, "a", 1)
		h.open()
		seq := h.fire(sched, a, "a")
		h.takeBack(seq, sched, a, "a")
		h.confirmed(2)
	}, outcome{sched: []string{"0:a"}, due: []string{"a/scheduled_jobs:0"}}},
	"returned, its command repeated": {func(h *history) {
		a := h.entry(sched, "a", 1)
		h.open()
		by := func(d *wire.Dispatch) { d.Command = "c" }
		seq := h.dispatch(wire.OpTriggered, sched, a, "a", by)
		h.takeBack(seq, sched, a, "a", "c")
		h.confirmed(h.dispatch(wire.OpTriggered, sched, a, "a", by))
	}, outcome{}},
	"returned, then fired": {func(h *history) {
		a := h.entry(sched, "a", 1)
		h.open()
		seq := h.fire(sched, a, "a")
		h.takeBack(seq, sched, a, "a")
		h.confirmed(h.fire(sched, a, "a"))
	}, outcome{}},
	"delivered": {func(h *history) {
		a := h.entry(sched, "a", 1)
		h.open()
		seq := h.fire(sched, a, "a")
		h.open()
		h.record(wire.JournalRecord{Type: wire.TypeDelivered, FiredEpoch: 0, Seq: seq, Stream: sched, Offset: a, JID: "a"})
	}, outcome{}},
	"refired": {func(h *history) {
		a := h.entry(sched, "a", 1)
		h.open()
		h.fire(sched, a, "a")
		h.open()
		h.confirmed(h.dispatch(wire.OpRefired, sched, a, "a"))
	}, outcome{}},
	"refired, and again in doubt": {func(h *history) {
		a := h.entry(sched, "a", 1)
		h.open()
		h.fire(sched, a, "a")
		h.open()
		h.dispatch(wire.OpRefired, sched, a, "a")
		h.open()
	}, outcome{doubts: []string{"2/1 refired scheduled_jobs:0"}}},
	"refired, returned": {func(h *history) {
		a := h.entry(sched, "a", 1)
		h.open()
		h.fire(sched, a, "a")
		h.open()
		seq := h.dispatch(wire.OpRefired, sched, a, "a")
		h.takeBack(seq, sched, a, "a")
	}, outcome{sched: []string{"0:a"}, due: []string{"a/scheduled_jobs:0"}}},
	"killed": {func(h *history) {
		a := h.entry(retry, "a", 1)
		h.open()
		h.through = h.dispatch(wire.OpBuried, retry, a, "a")
		h.record(wire.JournalRecord{Type: wire.TypeKilled, Stream: retry, Offset: a, JID: "a"})
	}, outcome{dead: []string{"1:a"}}},
	"buried, unburied": {func(h *history) {
		a := h.entry(retry, "a", 1)
		h.open()
		seq := h.dispatch(wire.OpBuried, retry, a, "a")
		h.all, h.gens = slices.Delete(h.all, len(h.all)-2, len(h.all)-1), h.gens[1:] // the dead job was lost
		h.streams[dead]--
		h.open()
		h.record(wire.JournalRecord{Type: wire.TypeUnburied, FiredEpoch: 0, Seq: seq, Stream: retry, Offset: a, JID: "a"})
	}, outcome{retry: []string{"0:a"}, due: []string{"a/retries:0"}}},
	"expired, to the dead": {func(h *history) {
		a := h.entry(sched, "a", 1)
		h.open()
		h.confirmed(h.dispatch(wire.OpExpired, sched, a, "a"))
	}, outcome{dead: []string{"1:a"}}},
	"expired, not buried": {func(h *history) {
		a := h.entry(sched, "a", 1)
		h.open()
		h.record(wire.JournalRecord{Type: wire.TypeExpired, Stream: sched, Offset: a, JID: "a"})
	}, outcome{}},
	"buried by a fenced leader": {func(h *history) {
		a := h.entry(retry, "a", 1)
		first := h.open()
		h.open()
		h.dispatch(wire.OpBuried, retry, a, "a", func(d *wire.Dispatch) { d.Epoch = first })
		h.replace(retry, a, "a", 7)
		h.all[len(h.all)-1].Headers[wire.HeaderEpoch] = first
	}, outcome{retry: []string{"0:a"}, due: []string{"a/retries:0"}}},
	"fired by a fenced leader": {func(h *history) {
		a := h.entry(retry, "a", 1)
		first := h.open()
		h.open()
		h.dispatch(wire.OpFired, retry, a, "a", of(first, 1))
	}, outcome{doubts: []string{"0/1 fired retries:0"}}},
	"fired and confirmed by a fenced leader": {func(h *history) {
		a := h.entry(retry, "a", 1)
		first := h.open()
		second := h.open()
		h.dispatch(wire.OpFired, retry, a, "a", of(first, 1))
		h.epoch = first
		h.confirmed(1)
		h.epoch = second
	}, outcome{}},
	"fired by a fenced leader, and returned": {func(h *history) {
		a := h.entry(retry, "a", 1)
		first := h.open()
		second := h.open()
		h.dispatch(wire.OpFired, retry, a, "a", of(first, 1))
		h.epoch = first
		h.takeBack(1, retry, a, "a", "")
		h.epoch = second
	}, outcome{retry: []string{"0:a"}, due: []string{"a/retries:0"}}},
	"fired by a leader, then by the one before": {func(h *history) {
		a := h.entry(retry, "a", 1)
		first := h.open()
		h.open()
		h.fire(retry, a, "a")
		h.dispatch(wire.OpFired, retry, a, "a", of(first, 1))
	}, outcome{doubts: []string{"1/1 fired retries:0"}}},
	"fired and confirmed by a leader, then fired by the one before": {func(h *history) {
		a := h.entry(retry, "a", 1)
		first := h.open()
		h.open()
		h.confirmed(h.fire(retry, a, "a"))
		h.dispatch(wire.OpFired, retry, a, "a", of(first, 1))
	}, outcome{}},
	"deleted by a leader, then fired by the one before": {func(h *history) {
		a := h.entry(retry, "a", 1)
		first := h.open()
		h.open()
		h.record(wire.JournalRecord{Type: wire.TypeDeleted, Stream: retry, Offset: a, JID: "a"})
		h.dispatch(wire.OpFired, retry, a, "a", of(first, 1))
	}, outcome{}},
	"changed by a leader, then fired by the one before": {func(h *history) {
		a := h.entry(retry, "a", 1)
		first := h.open()
		h.open()
		h.replace(retry, a, "a", 7)
		h.dispatch(wire.OpFired, retry, a, "a", of(first, 1))
	}, outcome{retry: []string{"3:a"}, due: []string{"a/retries:3"}}},
	"refused by a leader, then fired by the one before": {func(h *history) {
		a := h.entry(retry, "a", 1)
		first := h.open()
		h.open()
		h.takeBack(h.fire(retry, a, "a"), retry, a, "a", "")
		h.dispatch(wire.OpFired, retry, a, "a", of(first, 1))
	}, outcome{doubts: []string{"0/1 fired retries:0"}}},
	"fired by the leader before, then by the leader": {func(h *history) {
		a := h.entry(retry, "a", 1)
		first := h.open()
		h.open()
		h.dispatch(wire.OpFired, retry, a, "a", of(first, 1))
		h.fire(retry, a, "a")
	}, outcome{doubts: []string{"1/2 fired retries:0"}}},
	"fired by the leader before, and settled": {func(h *history) {
		a := h.entry(retry, "a", 1)
		first := h.open()
		h.open()
		h.dispatch(wire.OpFired, retry, a, "a", of(first, 1))
		h.record(wire.JournalRecord{Type: wire.TypeDelivered, Stream: retry, Offset: a, JID: "a", FiredEpoch: first, Seq: 1})
	}, outcome{}},
	"fired by the leader before, unread by the leader that moves low water": {func(h *history) {
		a := h.entry(retry, "a", 1)
		first := h.open()
		h.open()
		h.dispatch(wire.OpFired, retry, a, "a", of(first, 1))
		h.record(wire.JournalRecord{Type: wire.TypeLowWater, ReadTo: 2})
	}, outcome{doubts: []string{"0/1 fired retries:0"}}},
	"fired by the leader before, read by the leader that moves low water": {func(h *history) {
		a := h.entry(retry, "a", 1)
		first := h.open()
		h.open()
		h.dispatch(wire.OpFired, retry, a, "a", of(first, 1))
		h.record(wire.JournalRecord{Type: wire.TypeLowWater, ReadTo: 3})
	}, outcome{}},
	"a dead job is retried": {func(h *history) {
		a := h.entry(dead, "a", 1)
		h.open()
		h.confirmed(h.dispatch(wire.OpRetried, dead, a, "a"))
	}, outcome{}},
	"parked": {func(h *history) {
		a := h.entry(sched, "a", 1)
		h.open()
		h.record(wire.JournalRecord{Type: wire.TypeRefused, Stream: sched, Offset: a, JID: "a", Error: "too odd"})
	}, outcome{sched: []string{"0:a"}}},
	"in doubt, then parked": {func(h *history) {
		a := h.entry(sched, "a", 1)
		h.open()
		h.fire(sched, a, "a")
		h.open()
		h.record(wire.JournalRecord{Type: wire.TypeRefused, Stream: sched, Offset: a, JID: "a", Error: "too odd"})
	}, outcome{sched: []string{"0:a"}}},
	"parked, triggered": {func(h *history) {
		a := h.entry(sched, "a", 1)
		h.open()
		h.record(wire.JournalRecord{Type: wire.TypeRefused, Stream: sched, Offset: a, JID: "a", Error: "too odd"})
		h.dispatch(wire.OpTriggered, sched, a, "a")
	}, outcome{doubts: []string{"0/2 triggered scheduled_jobs:0"}}},
	"parked, triggered, returned": {func(h *history) {
		a := h.entry(sched, "a", 1)
		h.open()
		h.record(wire.JournalRecord{Type: wire.TypeRefused, Stream: sched, Offset: a, JID: "a", Error: "too odd"})
		seq := h.dispatch(wire.OpTriggered, sched, a, "a")
		h.takeBack(seq, sched, a, "a")
	}, outcome{sched: []string{"0:a"}, due: []string{"a/scheduled_jobs:0"}}},
	"parked, deleted": {func(h *history) {
		a := h.entry(sched, "a", 1)
		h.open()
		h.record(wire.JournalRecord{Type: wire.TypeRefused, Stream: sched, Offset: a, JID: "a", Error: "too odd"})
		h.record(wire.JournalRecord{Type: wire.TypeDeleted, Stream: sched, Offset: a, JID: "a"})
	}, outcome{}},
	"low water": {func(h *history) {
		a := h.entry(sched, "a", 1)
		h.append(sched, client, nil, "garbage")
		h.open()
		h.replace(sched, a, "a", 1)
		h.record(wire.JournalRecord{Type: wire.TypeLowWater, LowWater: map[string]int64{sched: 3}, Needs: 1})
	}, outcome{sched: []string{"3:a"}, due: []string{"a/scheduled_jobs:3"}}},
	"low water, over what is settled": {func(h *history) {
		a, b := h.entry(sched, "a", 1), h.entry(sched, "b", 1)
		h.open()
		h.confirmed(h.fire(sched, a, "a"))
		h.record(wire.JournalRecord{Type: wire.TypeDeleted, Stream: sched, Offset: b, JID: "b"})
		h.record(wire.JournalRecord{Type: wire.TypeLowWater, LowWater: map[string]int64{sched: 3}, Needs: 1})
		h.entry(sched, "c", 1)
	}, outcome{sched: []string{"3:c"}, due: []string{"c/scheduled_jobs:3"}}},
	"low water, repeated by the next epoch": {func(h *history) {
		h.entry(sched, "a", 1)
		h.open(func(r *wire.JournalRecord) { r.LowWater = map[string]int64{sched: 1} })
		h.entry(sched, "b", 1)
		h.open(func(r *wire.JournalRecord) { r.LowWater = map[string]int64{sched: 1} })
	}, outcome{sched: []string{"2:b"}, due: []string{"b/scheduled_jobs:2"}}},
	"trimmed": {func(h *history) {
		h.entry(dead, "a", 1)
		h.entry(dead, "b", 2)
		h.open()
		h.record(wire.JournalRecord{Type: wire.TypeTrimmed, Stream: dead, Entries: []wire.Trimmed{{Offset: 0, JID: "a"}}, Count: 1})
	}, outcome{dead: []string{"1:b"}}},
	"recreated": {func(h *history) {
		a, b := h.entry(sched, "a", 1), h.entry(sched, "b", 1)
		h.open()
		h.confirmed(h.fire(sched, a, "a"))
		h.record(wire.JournalRecord{Type: wire.TypeDeleted, Stream: sched, Offset: b, JID: "b"})
		h.recreate(sched)
		h.entry(sched, "b", 1) // where b stood before
		h.entry(sched, "c", 1)
	}, outcome{sched: []string{"1:b", "2:c"}, due: []string{"b/scheduled_jobs:1", "c/scheduled_jobs:2"}}},
	"recreated, with low water far above": {func(h *history) {
		h.entry(sched, "a", 1)
		h.open(func(r *wire.JournalRecord) { r.LowWater = map[string]int64{sched: 1000} })
		h.recreate(sched)
		a := h.entry(sched, "a", 1)
		h.entry(sched, "b", 1)
		h.confirmed(h.fire(sched, a, "a"))
	}, outcome{sched: []string{"2:b"}, due: []string{"b/scheduled_jobs:2"}}},
	"recreated twice": {func(h *history) {
		h.entry(dead, "a", 1)
		h.open()
		h.recreate(dead)
		h.record(wire.JournalRecord{Type: wire.TypeDeleted, Stream: dead, Offset: h.entry(dead, "b", 1), JID: "b"})
		h.recreate(dead)
		h.entry(dead, "b", 1)
	}, outcome{dead: []string{"1:b"}}},
	"forged": {func(h *history) {
		a := h.entry(sched, "a", 1)
		h.open()
		for _, r := range []wire.JournalRecord{
			{Type: wire.TypeLowWater, LowWater: map[string]int64{sched: 1 << 62}},
			{Type: wire.TypeDeleted, Stream: sched, Offset: a, JID: "a"},
			{Type: wire.TypeOpened, Format: 99},
			{Type: wire.TypeReleased},
		} {
			h.message(r.Append(wire.Journal, 1, 9))
			h.all[len(h.all)-1].UserID = ""
		}
		h.fire(sched, a, "a")
		h.all[len(h.all)-1].UserID = client
		h.replace(sched, a, "a", 9)
		h.all[len(h.all)-1].UserID = client
		h.barrier(sched, 9)
		h.all[len(h.all)-1].UserID = client
	}, outcome{sched: []string{"0:a"}, due: []string{"a/scheduled_jobs:0"}}},
	"marks for offsets without entries": {func(h *history) {
		bad := h.append(sched, client, nil, "garbage")
		h.open()
		hole := h.streams[sched]
		h.hole(sched, 3)
		h.record(wire.JournalRecord{Type: wire.TypeDeleted, Stream: sched, Offset: bad, JID: "x"})
		h.record(wire.JournalRecord{Type: wire.TypeDeleted, Stream: sched, Offset: hole, JID: "x"})
		h.record(wire.JournalRecord{Type: wire.TypeDeleted, Stream: sched, Offset: hole + 1, JID: "x"})
		h.entry(sched, "a", 1)
	}, outcome{sched: []string{"5:a"}, due: []string{"a/scheduled_jobs:5"}}},
	"an offset that is used again": {func(h *history) { // the stream had lost its end
		h.open()
		next := h.streams[sched]
		for _, what := range []string{wire.TypeDeleted, wire.TypeRefused, "fired"} {
			if what == "fired" {
				h.fire(sched, next, "gone")
			} else {
				h.record(wire.JournalRecord{Type: what, Stream: sched, Offset: next, JID: "gone", Error: "x"})
			}
			next++
		}
		h.open()
		for i := range int64(3) {
			h.record(wire.JournalRecord{Type: wire.TypeDeleted, Stream: sched, Offset: h.entry(sched, "a", 1), JID: "a"})
			h.fire(sched, h.entry(sched, "b", 1), "b")
			h.confirmed(2*i + 2)
		}
	}, outcome{}},
	"records about another jid": {func(h *history) {
		a := h.entry(sched, "a", 1)
		h.open()
		h.record(wire.JournalRecord{Type: wire.TypeDeleted, Stream: sched, Offset: a, JID: "other"})
		h.record(wire.JournalRecord{Type: wire.TypeRefused, Stream: sched, Offset: a, JID: "other", Error: "x"})
		h.dispatch(wire.OpFired, sched, a, "other")
		h.confirmed(3)
	}, outcome{sched: []string{"0:a"}, due: []string{"a/scheduled_jobs:0"}}},
	"rejected, dismissed": {func(h *history) {
		h.append(sched, client, nil, "garbage")
		bad := h.append(sched, client, nil, "worse")
		h.append(wire.Heartbeats, client, nil, "no beat")
		h.open()
		h.record(wire.JournalRecord{Type: wire.TypeDismissed, Stream: sched, Offset: bad})
		h.record(wire.JournalRecord{Type: wire.TypeDismissed, Stream: wire.Heartbeats, Offset: 0})
	}, outcome{}},
	"held, released": {func(h *history) {
		a := h.entry(sched, "a", 1)
		h.open(func(r *wire.JournalRecord) { r.Held = map[string]int64{sched: 5} })
		h.record(wire.JournalRecord{Type: wire.TypeReleased})
		h.confirmed(h.fire(sched, a, "a"))
	}, outcome{}},
	"an entry too large for the view": {func(h *history) {
		a := h.append(sched, client, nil, strings.Replace(body(sched, "a", 1), "[]", `"`+strings.Repeat("x", maxInline)+`"`, 1))
		h.open()
		seq := h.fire(sched, a, "a")
		h.takeBack(seq, sched, a, "a")
	}, outcome{sched: []string{"0:a"}, due: []string{"a/scheduled_jobs:0"}}},
}

// merges calls fn with every order in which streams can be read, given how many records each has,
// or with some of them if there are many.
func merges(counts map[string]int, names []string, order []string, fn func([]string)) {
	done := true
	for _, name := range names {
		if counts[name] == 0 {
			continue
		}
		done = false
		counts[name]--
		merges(counts, names, append(order, name), fn)
		counts[name]++
	}
	if done {
		fn(order)
	}
}

func TestReadOrderChangesNothing(t *testing.T) {
	maps.Copy(stories, slotStories)
	maps.Copy(stories, uniqueStories)
	maps.Copy(stories, gatingStories)
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			story.write(h)
			reference := newOne(t).inOrder(h)
			requireOutcome(t, reference, story.want)
			requireSound(t, reference)
			requireBytes(t, h, reference)
			want := reference.dump()
			played := 0
			for _, beginning := range []bool{true, false} {
				if !beginning && !h.recreated() {
					continue // both kinds of views would read the same
				}
				everyOrder(h, beginning, func(order []string) {
					played++
					r := newOne(t).read(h, beginning)
					for _, stream := range order {
						r.next(stream, 1)
					}
					r.finish()
					require.Empty(t, cmp.Diff(want, r.dump()), "%v, from the beginning: %v", order, beginning)
					requireSound(t, r.one)
					r.close()
				})
			}
			require.Positive(t, played)
		})
	}
}

// everyOrder calls fn with the orders in which a view may read. If there are too many, it calls fn
// only with those in which the streams are read in runs.
func everyOrder(h *history, beginning bool, fn func([]string)) {
	many := 150
	if slow {
		many = 40
	}
	counts, total := map[string]int{}, 1
	names := slices.DeleteFunc(h.names(), h.onlyBarriers) // these streams are read last
	for _, name := range names {
		gen := h.gen[name]
		if beginning {
			gen = 0
		}
		counts[name] = len(h.of(name, gen))
	}
	n := 0
	for _, name := range names {
		for i := range counts[name] {
			n++
			total = total * n / (i + 1)
		}
	}
	if total <= many {
		merges(counts, names, nil, fn)
		return
	}
	runs := map[string]int{} // the first records of a stream, then the others
	for _, name := range names {
		runs[name] = min(2, counts[name])
	}
	for cut := range 3 {
		merges(runs, names, nil, func(order []string) {
			var all []string
			seen := map[string]bool{}
			for _, name := range order {
				n := min(cut+1, counts[name])
				if seen[name] {
					n = counts[name] - n
				}
				seen[name] = true
				all = append(all, slices.Repeat([]string{name}, n)...)
			}
			fn(all)
		})
	}
}

// of makes a dispatch that of another leader.
func of(epoch, seq int64) func(*wire.Dispatch) {
	return func(d *wire.Dispatch) { d.Epoch, d.Seq, d.Confirmed = epoch, seq, 0 }
}

func requireOutcome(t *testing.T, o *one, want outcome) {
	t.Helper()
	list := func(l []string) []string { return append([]string{}, l...) }
	require.Equal(t, list(want.sched), o.pending(sched), "scheduled")
	require.Equal(t, list(want.retry), o.pending(retry), "retries")
	require.Equal(t, list(want.dead), o.pending(dead), "dead")
	require.Equal(t, list(want.due), o.due(), "due")
	require.Equal(t, list(want.doubts), o.listDoubts(), "in doubt")
	require.Equal(t, list(want.slots), o.held(), "slots")
}
