package tracker

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// If retention deleted an entry before the view read it, only its fire has the job. If the fire is
// returned, the doubt stays until a leader fires the job again, or finds that the first fire had
// arrived.
func TestFireWithoutReadEntry(t *testing.T) {
	h := newHistory()
	h.hole(sched, 5)
	h.open()
	seq := h.fire(sched, 2, "a")
	o := newOne(t)
	o.inOrder(h)
	all, err := o.Doubts()
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Nil(t, all[0].Entry)
	require.False(t, all[0].Returned)
	require.JSONEq(t, jobOf("a"), string(all[0].Body))

	h.takeBack(seq, sched, 2, "a")
	h.confirmed(2)
	o = newOne(t)
	o.inOrder(h)
	all, err = o.Doubts()
	require.NoError(t, err)
	require.Len(t, all, 1, "the confirm of a refused fire does not confirm the job")
	require.True(t, all[0].Returned)
	require.NotEmpty(t, all[0].Body)
	require.Empty(t, o.due())

	h.open()
	again := h.dispatch(wire.OpRefired, sched, 2, "a")
	o = newOne(t)
	o.inOrder(h)
	all, err = o.Doubts()
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.False(t, all[0].Returned)
	h.confirmed(again)
	o = newOne(t)
	o.inOrder(h)
	require.Empty(t, o.listDoubts())
}

// The leader lists the doubts while its readers settle them.
func TestDoubtsAreListedDuringFold(t *testing.T) {
	o, h := newOne(t), newHistory()
	h.open()
	for i := range 300 {
		jid := fmt.Sprint("j", i)
		h.confirmed(h.fire(sched, h.entry(sched, jid, 1), jid))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, r := range slices.Concat(h.of(sched, 0), h.of(wire.Journal, 0)) {
			o.fold(r)
		}
	}()
	for folding := true; folding; {
		_, err := o.Doubts()
		require.NoError(t, err)
		select {
		case <-done:
			folding = false
		default:
		}
	}
	require.Empty(t, o.listDoubts())
}

// A leader may die before it journals a change. The next leader journals it. If the new entry was
// deleted before that, the deletion is still the last outcome.
func TestLateJournaledChangeKeepsNewerOutcome(t *testing.T) {
	h := newHistory()
	a := h.entry(sched, "a", 1)
	h.open()
	c := h.change(sched, a, "a", 9)
	h.record(wire.JournalRecord{Type: wire.TypeDeleted, Stream: sched, Offset: c.Offset, JID: "a"})
	h.journal(c)
	o := newOne(t)
	o.inOrder(h)
	what, err := o.LastOutcome(sched, "a")
	require.NoError(t, err)
	require.Equal(t, wire.TypeDeleted, what.What)
	all, err := o.Announced()
	require.NoError(t, err)
	require.Empty(t, all)
}

// The same holds if the new entry was carried over before.
func TestLateJournaledChangeOfCarriedOverEntry(t *testing.T) {
	h := newHistory()
	a := h.entry(sched, "a", 1)
	h.open()
	c := h.change(sched, a, "a", 9)
	carried := h.replace(sched, c.Offset, "a", 9)
	h.record(wire.JournalRecord{Type: wire.TypeDeleted, Stream: sched, Offset: carried, JID: "a"})
	h.journal(c)
	what, err := newOne(t).inOrder(h).LastOutcome(sched, "a")
	require.NoError(t, err)
	require.Equal(t, wire.TypeDeleted, what.What)
}

// A job that is enqueued through the leader has no entry.
func TestEnqueuedFireHasNoEntry(t *testing.T) {
	h := newHistory()
	h.open()
	first := h.dispatch(wire.OpEnqueued, "", 0, "a")
	h.dispatch(wire.OpEnqueued, "", 0, "b")
	o := newOne(t).inOrder(h)
	require.Equal(t, []string{"0/1 enqueued :1", "0/2 enqueued :2"}, o.listDoubts(), "each fire has an ID of its own")
	h.confirmed(first)
	require.Equal(t, []string{"0/2 enqueued :2"}, newOne(t).inOrder(h).listDoubts())
}

func TestRecordsOfFencedLeaderAreVoid(t *testing.T) {
	h := newHistory()
	a := h.entry(sched, "a", 1)
	first := h.open()
	h.open()
	h.epoch = first
	h.record(wire.JournalRecord{Type: wire.TypeDeleted, Stream: sched, Offset: a, JID: "a", Command: "c"})
	h.dispatch(wire.OpBuried, sched, a, "a")
	h.replace(sched, a, "a", 9)
	o := newOne(t).inOrder(h)
	require.Equal(t, []string{"0:a"}, o.pending(sched))
	require.Equal(t, map[string]int64{wire.Journal: 2, sched: 1, dead: 1}, o.State().Void)
	require.Zero(t, o.Late())
	done, err := o.CarriedOut("c")
	require.NoError(t, err)
	require.False(t, done)
	happened, err := o.LastOutcome(sched, "a")
	require.NoError(t, err)
	require.Nil(t, happened)
}

func TestCarriedOutCommandsAreRemembered(t *testing.T) {
	h := newHistory()
	a, b := h.entry(sched, "a", 1), h.entry(retry, "b", 1)
	h.open()
	fired := h.dispatch(wire.OpTriggered, sched, a, "a", func(d *wire.Dispatch) { d.Command = "fire" })
	h.record(wire.JournalRecord{Type: wire.TypeDeleted, Stream: retry, Offset: b, JID: "b", Command: "delete"})
	o := newOne(t).inOrder(h)
	done := func(id string) bool {
		ok, err := o.CarriedOut(id)
		require.NoError(t, err)
		return ok
	}
	require.True(t, done("fire"))
	require.True(t, done("delete"))
	require.False(t, done("other"))
	h.takeBack(fired, sched, a, "a", "fire")
	h.dispatch(wire.OpTriggered, sched, a, "a")
	o = newOne(t).inOrder(h)
	require.False(t, done("fire"), "the fire was returned, so the command may be repeated")
	require.True(t, done("delete"))
	requireSound(t, o)
}

func TestLastOutcome(t *testing.T) {
	h := newHistory()
	a, b := h.entry(sched, "a", 1), h.entry(sched, "a", 2)
	h.open()
	h.dispatch(wire.OpTriggered, sched, a, "a", func(d *wire.Dispatch) { d.Actor = "ann" })
	h.all[len(h.all)-1].Time = time.Unix(7, 500e6)
	o := newOne(t).inOrder(h)
	got, err := o.LastOutcome(sched, "a")
	require.NoError(t, err)
	require.Equal(t, &wire.Happened{What: "triggered", At: 7.5, Offset: a, Record: 1, Actor: "ann"}, got)
	h.record(wire.JournalRecord{Type: wire.TypeDeleted, At: 9, Stream: sched, Offset: b, JID: "a", Actor: "bob"})
	o = newOne(t).inOrder(h)
	got, err = o.LastOutcome(sched, "a")
	require.NoError(t, err)
	require.Equal(t, &wire.Happened{What: "deleted", At: 9, Offset: b, Record: 2, Actor: "bob"}, got)
	got, err = o.LastOutcome(retry, "a")
	require.NoError(t, err)
	require.Nil(t, got)
}

// A bounded table drops its oldest rows first. A key that is written again is as new as its newest
// record.
func TestBoundedTableDropsOldest(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := newOne(t)
		defer o.close()
		limit := rapid.SampledFrom([]int{3, 63, 64, 130}).Draw(rt, "limit")
		var order []string // the keys, the oldest first
		for age := range int64(rapid.IntRange(1, 10*limit).Draw(rt, "records")) {
			key := fmt.Sprint(rapid.IntRange(0, 2*limit).Draw(rt, "key"))
			require.NoError(rt, o.store.Update(func(tx *view.Tx) error {
				return o.Entries.fold.outcomes.commands.Keep(tx, uint64(age), keyCommand(key), fmt.Append(nil, age), uint64(limit))
			}))
			known := slices.Contains(order, key)
			order = slices.DeleteFunc(order, func(k string) bool { return k == key })
			if len(order) == limit && !known { // the table is full: it drops a sixty-fourth
				order = order[limit/64+1:]
			}
			order = append(order, key)
			require.Equal(rt, []int{len(order), len(order)}, []int{o.table(tableCommand), o.table(tableCommands)})
		}
		for _, k := range order {
			done, err := o.CarriedOut(k)
			require.NoError(rt, err)
			require.True(rt, done, "%s of %v", k, order)
		}
	})
}

// The view does not keep large records.
func TestLargeBodiesStayInStream(t *testing.T) {
	for size, kept := range map[int]bool{maxInline: true, maxInline + 1: false} {
		raw := []byte(body(sched, "a", 1))
		raw = []byte(strings.Replace(string(raw), "[]", `"`+strings.Repeat("x", size-len(raw))+`"`, 1))
		require.Len(t, raw, size)
		o := newOne(t)
		o.fold(wire.Record{Stream: sched, Offset: 3, Headers: map[string]any{wire.HeaderTraceparent: "00-x"}, Body: raw})
		s, err := o.Get(sched, 3)
		require.NoError(t, err)
		require.Equal(t, kept, s.Raw != nil)
		require.Equal(t, []any{"a", "a", "A", "00-x", time.Unix(1, 0).UTC()}, []any{s.JID, s.Queue, s.Class, s.Trace, s.At})
		e, err := s.Entry(raw)
		require.NoError(t, err)
		require.Equal(t, "a", e.JID)
		require.Equal(t, raw, e.Raw)
		found, err := o.Find(sched, "a")
		require.NoError(t, err)
		require.Len(t, found, 1)
	}
}

func TestNewerFormatsHalt(t *testing.T) {
	for name, r := range map[string]wire.Record{
		"in a header": {Stream: wire.Journal, UserID: millrace, Headers: map[string]any{wire.HeaderFormat: int64(wire.Format + 1)}, Body: []byte(`?`)},
		"in opened":   {Stream: wire.Journal, UserID: millrace, Body: []byte(`{"type":"opened","format":5}`)},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newOne(t).try(r)
			require.ErrorIs(t, err, view.ErrHalt)
			require.ErrorContains(t, err, "the journal has format 5, this build knows 4: upgrade this sidecar")
			r.UserID = client
			_, err = newOne(t).try(r)
			require.NoError(t, err, "a client must not be able to stop all sidecars")
		})
	}
}

func TestUnknownStreamIsAnError(t *testing.T) {
	_, err := newOne(t).try(wire.Record{Stream: wire.Rollups})
	require.ErrorContains(t, err, "tracker: no fold for stream job_metrics_rollups")
}

func TestStoredFormsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, n, burial := rapid.String(), rapid.Int64(), wire.Dispatch{}
		if rapid.Bool().Draw(t, "buried") {
			burial = wire.Dispatch{Op: wire.OpBuried, Stream: sched, Offset: n.Draw(t, "of"), Epoch: n.Draw(t, "epoch"), Seq: n.Draw(t, "seq"),
				JIDTag: text.Draw(t, "tag"), Actor: text.Draw(t, "actor"), Command: text.Draw(t, "command"), Operation: text.Draw(t, "operation")}
		}
		s := Stored{Stream: retry, Offset: n.Draw(t, "offset"), First: n.Draw(t, "first"), At: time.UnixMicro(rapid.Int64Range(-1e15, 1e15).Draw(t, "at")).UTC(),
			Attempt: rapid.IntRange(0, 1<<31).Draw(t, "attempt"), JID: text.Draw(t, "jid"), Queue: text.Draw(t, "queue"), Class: text.Draw(t, "class"),
			Burial: burial, Parked: text.Draw(t, "parked"), content: drawContent(t),
			Provenance: wire.Provenance{Trace: text.Draw(t, "trace"), Sender: text.Draw(t, "sender")}}
		got, err := decodeStored(s.id(), s.encode())
		require.NoError(t, err)
		require.Equal(t, &s, got)
		if s.Raw == nil {
			whole := s.encode()
			_, err = decodeStored(s.id(), whole[:rapid.IntRange(0, len(whole)-1).Draw(t, "cut")])
			require.Error(t, err)
		}
		m := mark{state: markState(rapid.IntRange(1, 4).Draw(t, "state")), tag: text.Draw(t, "tag"), epoch: n.Draw(t, "epoch"), seq: n.Draw(t, "seq"),
			op: text.Draw(t, "op"), reason: text.Draw(t, "reason"), body: []byte{}, returned: rapid.Bool().Draw(t, "returned")}
		again, err := decodeMark(m.encode())
		require.NoError(t, err)
		require.Equal(t, &m, again)
		_, err = decodeMark(m.encode()[:rapid.IntRange(0, len(m.encode())-1).Draw(t, "cut")])
		require.Error(t, err)
	})
}

// Damaged rows cause errors, and are not skipped.
func TestDamageIsReported(t *testing.T) {
	scribble := func(key []byte) *one {
		h := newHistory()
		a := h.entry(sched, "a", 1)
		h.append(retry, client, nil, "garbage")
		h.open()
		h.fire(sched, a, "a")
		o := newOne(t).inOrder(h)
		require.NoError(t, o.store.Update(func(tx *view.Tx) error {
			return tx.Set(key, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
		}))
		return o
	}
	o := scribble(keyState)
	_, err := NewEntries(o.store, millrace)
	require.ErrorContains(t, err, "tracker: state is damaged")
	o = scribble(keyEntry(entryID{codes[sched], 0}))
	_, err = o.Get(sched, 0)
	require.ErrorContains(t, err, "tracker: stored entry scheduled_jobs@0 is damaged")
	_, err = o.Kept(sched, 0, 9, 9)
	require.Error(t, err)
	o = scribble(keyMark(entryID{codes[sched], 0}))
	_, err = o.Doubts()
	require.ErrorContains(t, err, "tracker: mark is damaged")
	o = scribble(keyReject(retry, 0))
	require.Error(t, o.Rejects(retry, func(Reject) bool { return true }))
	_, _, err = o.Rejected(retry, 0)
	require.ErrorContains(t, err, "tracker: rejected record is damaged")
	o = scribble(keyOutcome(codes[sched], "a"))
	_, err = o.LastOutcome(sched, "a")
	require.ErrorContains(t, err, "tracker: history is damaged")
	o = scribble([]byte("x"))
	require.NoError(t, o.store.Update(func(tx *view.Tx) error { return tx.Delete(keyMark(entryID{codes[sched], 0})) }))
	_, err = o.Doubts()
	require.ErrorContains(t, err, "tracker: entry scheduled_jobs@0 is in doubt and has no mark")
}

func TestUnknownRecordsChangeNothing(t *testing.T) {
	h := newHistory()
	h.entry(sched, "a", 1)
	h.open()
	before := newOne(t).inOrder(h)
	for _, r := range []wire.JournalRecord{
		{Type: wire.TypeState}, {Type: wire.TypeOperation, Operation: &wire.Operation{ID: "x", State: "done"}}, {Type: "of the future"},
		{Type: wire.TypeReturned, Seq: 77}, {Type: wire.TypeUnburied, Seq: 77}, {Type: wire.TypeDelivered, Seq: 77},
		{Type: wire.TypeRecreated, Stream: "unknown"}, {Type: wire.TypeDeleted, Stream: "unknown"}, {Type: wire.TypeRefused, Stream: "unknown"},
		{Type: wire.TypeTrimmed, Stream: "unknown", Entries: []wire.Trimmed{{Offset: 5, JID: "a"}}}, {Type: wire.TypeDismissed, Stream: "unknown"},
	} {
		h.plain(r)
	}
	after := newOne(t).inOrder(h)
	require.Equal(t, before.pending(sched), after.pending(sched))
	require.Equal(t, before.due(), after.due())
	require.Empty(t, after.listDoubts())
}

// If entries or marks of a store are damaged, the next record that needs them ends the view.
func TestFoldIntoDamagedStoreFails(t *testing.T) {
	failed := 0
	for name, story := range stories {
		h := newHistory()
		story.write(h)
		for _, damaged := range []byte{tableEntry, tableMark} {
			for at := range h.all {
				o := newOne(t)
				r := o.read(h, true)
				for i := range at {
					r.next(h.all[i].Stream, 1)
				}
				if o.scribble(damaged) == 0 {
					o.close()
					continue
				}
				for _, record := range h.all[at:] {
					if _, err := o.try(record); err != nil {
						require.ErrorContains(t, err, "damaged", name)
						failed++
						break
					}
				}
				o.close()
			}
		}
	}
	require.Greater(t, failed, 30)
}

func TestCounting(t *testing.T) {
	h := newHistory()
	a := h.entry(sched, "a1", 1)
	h.entry(sched, "a1", 2)
	h.entry(sched, "b1", 1)
	h.entry(dead, "a1", 1)
	h.open()
	o := newOne(t).inOrder(h)
	require.EqualValues(t, []int64{3, 2, 2, 0}, []int64{o.Total(sched), o.InQueue(sched, "a"), o.OfClass(sched, "A1"), o.InQueue(sched, "c")})
	require.Equal(t, map[string]int64{"a": 2, "b": 1}, o.ByQueue(sched))
	require.Equal(t, map[string]int64{"A1": 2, "B1": 1}, o.Counts.all(codes[sched], countClass))
	require.Equal(t, []string{"a", "b"}, o.Queues(), "dead jobs do not fire")
	position, err := o.Position(sched)
	require.NoError(t, err)
	require.EqualValues(t, 3, position)
	require.Positive(t, o.Written(sched))
	repeated, err := o.Repeated(sched, "a1")
	require.NoError(t, err)
	require.True(t, repeated)
	h.confirmed(h.fire(sched, a, "a1"))
	o = newOne(t).inOrder(h)
	require.EqualValues(t, []int64{2, 1, 1}, []int64{o.Total(sched), o.InQueue(sched, "a"), o.OfClass(sched, "A1")})
	o.restart()
	require.Equal(t, map[string]int64{"a": 1, "b": 1}, o.ByQueue(sched), "a new process has the same counts")
	repeated, err = o.Repeated(sched, "a1")
	require.NoError(t, err)
	require.False(t, repeated)
}

func TestLowWaterAt(t *testing.T) {
	h := newHistory()
	h.open(func(r *wire.JournalRecord) { r.At = 5 })
	h.entry(sched, "a", 1)
	require.Equal(t, time.Unix(5, 0), newOne(t).inOrder(h).LowWaterAt(), "before that, the time of the first epoch")
	h.record(wire.JournalRecord{Type: wire.TypeLowWater, At: 9, LowWater: map[string]int64{sched: 1}})
	o := newOne(t).inOrder(h)
	require.Equal(t, time.Unix(9, 0), o.LowWaterAt())
	require.Zero(t, o.Written(wire.DeadJobs))
	require.Equal(t, []string{"1:a"}, o.pending(sched))
}

// A stream that has the barrier of the newest leader, but none of the earlier leader that did
// something, is another stream.
func TestRecreatedStreamIsForeign(t *testing.T) {
	h := newHistory()
	h.open()
	require.False(t, newOne(t).inOrder(h).State().Foreign(sched, 0), "no earlier leader did anything")
	h.fire(retry, 9, "a")
	h.open()
	require.False(t, newOne(t).inOrder(h).State().Foreign(sched, 0), "the earlier leader's barrier is there")
	h.confirmed(1)
	h.gen[sched]++
	h.streams[sched] = 0
	h.open()
	fresh := newOne(t).read(h, false).finish()
	require.True(t, fresh.State().Foreign(sched, 0))
	require.False(t, fresh.State().Foreign(retry, 0))
	h.record(wire.JournalRecord{Type: wire.TypeRecreated, Stream: sched})
	require.False(t, newOne(t).read(h, false).finish().State().Foreign(sched, 0), "the journal has the recreation")
}

// shorten deletes the newest records of a stream, even if a view has read them.
func (h *history) shorten(stream string, from int64) {
	for i := len(h.all) - 1; i >= 0; i-- {
		if r := h.all[i]; r.Stream == stream && r.Offset >= from {
			h.all, h.gens = slices.Delete(h.all, i, i+1), slices.Delete(h.gens, i, i+1)
		}
	}
	h.streams[stream] = from
}

// A stream that lost its end lacks the newest leader's barrier, but has those of earlier ones.
func TestTruncatedStreamIsNotForeign(t *testing.T) {
	h := newHistory()
	a := h.entry(sched, "a", 1)
	h.open()
	h.fire(sched, a, "a")
	h.confirmed(1)
	b := h.entry(sched, "b", 1)
	h.open()
	h.fire(sched, b, "b")
	h.confirmed(1)
	c := h.entry(sched, "c", 1)
	h.shorten(sched, b+1)
	h.open()
	o := newOne(t).read(h, false).finish()
	require.False(t, o.State().Foreign(sched, 0))
	require.True(t, o.State().Shortened(sched, 0))
	require.Empty(t, o.pending(sched), "no settled entry is pending again")
	require.Equal(t, c, h.entry(sched, "c", 1))
	require.Equal(t, []string{"4:c"}, newOne(t).read(h, false).finish().pending(sched))

	h.shorten(sched, a+1)
	h.open()
	o = newOne(t).read(h, false).finish()
	require.True(t, o.State().Foreign(sched, 0), "no barrier shows that a leader knew this stream")
	require.False(t, o.State().Shortened(sched, 0))
	require.True(t, o.State().Shortened(sched, -1), "retention has deleted the stream's beginning")
}

// Entries below low water stay settled if the stream loses its end. Entries that are written after
// that, at the same offsets, are pending.
func TestStreamTruncatedBelowLowWater(t *testing.T) {
	h := newHistory()
	h.open()
	h.entry(sched, "a", 1)
	h.entry(sched, "b", 1)
	h.record(wire.JournalRecord{Type: wire.TypeLowWater, LowWater: map[string]int64{sched: 100}})
	h.entry(sched, "lost", 1)
	require.Empty(t, newOne(t).inOrder(h).pending(sched))
	h.record(wire.JournalRecord{Type: wire.TypeRecreated, Stream: sched, Below: 3})
	h.entry(sched, "c", 1)
	for _, first := range []string{sched, wire.Journal} {
		o := newOne(t).read(h, true)
		o.next(first, 100)
		o.finish()
		require.Equal(t, []string{"3:lost", "4:c"}, o.pending(sched))
		require.EqualValues(t, 3, o.State().LowWater[sched])
	}
}

// A view that is rebuilt because the journal lost its end has a gap, until a leader journals a hold
// of everything. Holds before that end do not count.
func TestTruncatedJournalIsAGap(t *testing.T) {
	h := newHistory()
	all := func(r *wire.JournalRecord) {
		r.Held = map[string]int64{sched: wire.Everything, retry: wire.Everything, dead: wire.Everything, gated: wire.Everything}
	}
	h.open(all)
	h.record(wire.JournalRecord{Type: wire.TypeReleased})
	end := h.open()
	require.Empty(t, newOne(t).inOrder(h).State().Gap(0))

	o := newOne(t)
	require.NoError(t, o.LostEnd(end))
	o.restart()
	r := o.read(h, true).finish()
	require.Contains(t, o.State().Gap(0), "lost its newest records")
	h.open()
	r.finish()
	require.NotEmpty(t, o.State().Gap(0), "this leader does not know of the gap")
	h.open(all)
	r.finish()
	require.Empty(t, o.State().Gap(0))
	require.True(t, o.IsHeld(sched, 1))
}

func TestNear(t *testing.T) {
	h := newHistory()
	for i := range 9 {
		h.entry(retry, "a", 9-i)
		h.entry(retry, "b", 1)
	}
	o := newOne(t).inOrder(h)
	near := func(offset int64, limit int) (offsets []int64) {
		all, err := o.Near(retry, "a", offset, limit)
		require.NoError(t, err)
		for _, s := range all {
			require.Equal(t, "a", s.JID)
			offsets = append(offsets, s.Offset)
		}
		slices.Sort(offsets)
		return offsets
	}
	require.Equal(t, []int64{0, 2, 4, 6, 8, 10, 12, 14, 16}, near(8, 100))
	few := near(8, 1)
	require.Subset(t, few, []int64{6, 8, 10})
	require.Less(t, len(few), 6)
	require.NotEmpty(t, near(100, 1))
	require.NotEmpty(t, near(-1, 1))
}

// A replacement is an entry of the same job. If the stream was created again in between, another
// entry has the old offset.
func TestReplacementOfAnotherJobIsIgnored(t *testing.T) {
	h := newHistory()
	h.open()
	at := h.entry(sched, "a", 1)
	h.replace(sched, at, "b", 2)
	o := newOne(t).inOrder(h)
	for _, jid := range []string{"a", "b"} {
		found, err := o.Find(sched, jid)
		require.NoError(t, err)
		require.Len(t, found, 1, jid)
	}
}
