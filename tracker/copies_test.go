package tracker

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// An unroutable fire is in jobs.gated as an entry that names its fire. Only Millrace's own user can
// write such an entry.
func TestCopyKnowsItsFire(t *testing.T) {
	h := newHistory()
	h.open()
	h.entry(sched, "a", 1)
	seq := h.fire(sched, 1, "a")
	copied := h.bounce(seq, &Stored{Stream: sched, Offset: 1, JID: "a"})
	h.append(gated, client, wire.Dispatch{Op: wire.OpFired, Stream: sched, Offset: 1, Epoch: h.epoch, Seq: seq}.Headers(), body(gated, "b", 0))
	o := newOne(t)
	o.inOrder(h)
	s, err := o.Get(gated, copied)
	require.NoError(t, err)
	require.True(t, s.IsCopy())
	require.Equal(t, wire.Through{Epoch: h.epoch, Through: seq}, s.Origin())
	offsets, err := o.Copies()
	require.NoError(t, err)
	require.Equal(t, []int64{copied}, offsets)
	require.Equal(t, []int64{copied}, o.TakeCopies())
	require.Empty(t, o.TakeCopies())
	require.Equal(t, map[string]Ready{"a": {DueKey{time.Unix(1, 0).UTC(), sched, 1}, true, true}, "b": {DueKey{time.Unix(3, 0).UTC(), gated, copied + 1}, true, false}},
		o.TakeReady())
	inDoubt, err := o.InDoubt(h.epoch, seq)
	require.NoError(t, err)
	require.True(t, inDoubt)

	h.fire(gated, copied, "a")
	h.through = h.seq
	h.record(wire.JournalRecord{Type: wire.TypeConfirmed})
	o.inOrder(h)
	offsets, err = o.Copies()
	require.NoError(t, err)
	require.Empty(t, offsets, "the copy was fired")
}

// A copy is valid even if its leader had been followed by then, because its fire may be in the
// journal before the next epoch.
func TestCopyOfEarlierLeaderIsValid(t *testing.T) {
	h := newHistory()
	first := h.open()
	h.entry(sched, "a", 1)
	seq := h.fire(sched, 1, "a")
	h.open()
	h.epoch = first
	copied := h.bounce(seq, &Stored{Stream: sched, Offset: 1, JID: "a"})
	o := newOne(t)
	o.inOrder(h)
	offsets, err := o.Copies()
	require.NoError(t, err)
	require.Equal(t, []int64{copied}, offsets)
	require.Zero(t, o.State().Void[gated])
}

// A copy that is carried over is still a copy, so that it never counts as a repeated publish.
func TestCarriedOverCopyIsStillACopy(t *testing.T) {
	h := newHistory()
	h.open()
	old := h.bounce(1, &Stored{Stream: sched, Offset: 1, JID: "a"})
	headers := map[string]any{wire.HeaderReplaces: old, wire.HeaderFirst: old, wire.HeaderEpoch: h.epoch, wire.HeaderCopy: wire.OpFired}
	carried := h.append(gated, millrace, headers, body(gated, "a", 0))
	o := newOne(t)
	o.inOrder(h)
	s, err := o.Get(gated, carried)
	require.NoError(t, err)
	require.True(t, s.IsCopy())
	require.Equal(t, wire.Through{}, s.Origin())
	require.Equal(t, old, s.First)
}

// Unroutable probes are ignored. Every other record that is no job is rejected.
func TestGatedIgnoresProbes(t *testing.T) {
	h := newHistory()
	h.open()
	h.append(gated, millrace, map[string]any{wire.HeaderOp: wire.OpProbe}, `{"type":"probe"}`)
	h.append(gated, client, map[string]any{wire.HeaderOp: wire.OpProbe}, `{"type":"probe"}`)
	h.append(gated, client, nil, `[]`)
	o := newOne(t)
	o.inOrder(h)
	require.Empty(t, o.pending(gated))
	require.Equal(t, []string{"3: record is not a JSON object", `2: job: member "class" is missing`}, o.rejected(gated))
}

// Leaders of older versions wrote no barrier into jobs.gated. A jobs.gated without their barriers
// does not count as a stream that was deleted.
func TestGatedMayLackBarriersOfOlderVersions(t *testing.T) {
	h := newHistory()
	older := func(r *wire.JournalRecord) { r.Format = 1 }
	h.open(older)
	h.streams[gated] = 0
	h.all, h.gens = h.all[:len(h.all)-1], h.gens[1:] // without its barrier in jobs.gated
	h.entry(sched, "a", 1)
	h.fire(sched, 1, "a")
	o := newOne(t)
	h.open()
	o.inOrder(h)
	require.False(t, o.State().Foreign(gated, 0))
	require.False(t, o.State().Foreign(sched, 0))

	h.fire(sched, 1, "a")
	h.all = slices.DeleteFunc(h.all, func(r wire.Record) bool { return r.Stream == gated })
	h.streams[gated] = 0
	h.open()
	h.gens = h.gens[:len(h.all)]
	o = newOne(t)
	o.inOrder(h)
	require.True(t, o.State().Foreign(gated, 0), "this leader wrote a barrier into jobs.gated")
}
