package tracker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// The barrier of a leader that was already followed is void. If that leader had read the follower's
// barrier, its journal is a new one, and epochs have begun again.
func TestBarriersOfFencedLeadersAreVoid(t *testing.T) {
	for read, want := range map[int64]struct{ epoch, void int64 }{
		-1: {9, 1}, 0: {9, 1}, 1: {5, 0}, 7: {5, 0},
	} {
		h := newHistory()
		h.entry(sched, "a", 1)
		h.barrier(sched, 9)
		h.message(wire.JournalRecord{Type: wire.TypeBarrier, Epoch: 5, Read: &read}.Append(sched, 0, 0))
		state := newOne(t).inOrder(h).State()
		require.Equal(t, want.epoch, state.Barriers[sched].Epoch, "read up to %d", read)
		require.Equal(t, want.void, state.Void[sched], "read up to %d", read)
	}
}

// A leader whose barrier the broker lost after all writes it again. If both are there, one counts.
func TestBarrierThatWasWrittenTwice(t *testing.T) {
	h := newHistory()
	h.barrier(sched, 3)
	read := int64(0)
	barrier := wire.JournalRecord{Type: wire.TypeBarrier, Epoch: 9, Read: &read}
	h.message(barrier.Append(sched, 0, 0))
	once := newOne(t).inOrder(h).State()
	h.entry(sched, "a", 1)
	h.message(barrier.Append(sched, 0, 0))
	twice := newOne(t).inOrder(h).State()
	require.EqualValues(t, 9, twice.Barriers[sched].Epoch)
	require.Equal(t, once.Barriers, twice.Barriers)
	require.Zero(t, twice.Void[sched])
}

// If retention overtakes a view, the barriers of newer leaders may be among what it lost. So it
// takes what they carried over, up to the next barrier.
func TestOvertakenViewTakesWhatNewerLeadersCarried(t *testing.T) {
	h := newHistory()
	h.open()
	a := h.entry(sched, "a", 1)
	o := newOne(t)
	o.fold(h.of(sched, 0)...)
	read := len(h.of(sched, 0))

	h.open()
	h.replace(sched, a, "a", 1)
	b := h.entry(sched, "b", 1)
	fenced := h.epoch
	h.open()
	h.epoch = fenced
	h.replace(sched, b, "b", 1)
	records := h.of(sched, 0)[read:]

	// Retention takes the second leader's barrier.
	require.NoError(t, o.store.Update(func(tx *view.Tx) error { return o.Overtaken(tx, sched) }))
	o.fold(records[1:]...)
	require.Equal(t, []string{"3:a", "4:b"}, o.pending(sched))
	require.EqualValues(t, 1, o.State().Void[sched], "behind a barrier that it read, another epoch is void")
}

// The barrier of a leader that had not read behind the hole proves nothing about newer leaders: it
// may be the last word of one that was followed.
func TestOvertakenViewDistrustsBarrierOfLeaderThatLagged(t *testing.T) {
	for behind, want := range map[int64][]string{-2: {"4:a", "6:b"}, -1: {"4:a"}} {
		h := newHistory()
		h.open()
		a := h.entry(sched, "a", 1)
		o := newOne(t)
		o.fold(h.of(sched, 0)...)
		fenced := h.open()
		h.open()
		hole := len(h.of(sched, 0))
		first := h.replace(sched, a, "a", 1)
		upTo := first + behind
		h.message(wire.JournalRecord{Type: wire.TypeBarrier, Epoch: fenced, Read: &upTo}.Append(sched, 0, 0))
		h.replace(sched, first, "b", 1)
		records := h.of(sched, 0)
		require.NoError(t, o.store.Update(func(tx *view.Tx) error { return o.Overtaken(tx, sched) }))
		o.fold(records[hole:]...)
		require.Equal(t, want, o.pending(sched), "it had read up to %d", upTo)
	}
}

// A view that begins behind a hole distrusts the first barrier likewise.
func TestOvertakenViewMayBeNew(t *testing.T) {
	for behind, want := range map[int64][]string{-2: {"4:a", "6:b"}, -1: {"4:a"}} {
		h := newHistory()
		h.open()
		a := h.entry(sched, "a", 1)
		fenced := h.open()
		h.open()
		hole := len(h.of(sched, 0))
		first := h.replace(sched, a, "a", 1)
		upTo := first + behind
		h.message(wire.JournalRecord{Type: wire.TypeBarrier, Epoch: fenced, Read: &upTo}.Append(sched, 0, 0))
		h.replace(sched, first, "b", 1)
		o := newOne(t)
		o.fold(h.of(sched, 0)[hole:]...)
		require.Equal(t, want, o.pending(sched), "its leader had read up to %d", upTo)
	}
}

// Burials of a leader whose barrier retention took are compared too.
func TestOvertakenViewCountsBurials(t *testing.T) {
	h := newHistory()
	h.open()
	a, b := h.entry(sched, "a", 1), h.entry(sched, "b", 1)
	h.dispatch(wire.OpBuried, sched, a, "a")
	o := newOne(t)
	o.fold(h.of(dead, 0)...)
	read := len(h.of(dead, 0))

	epoch := h.open()
	seq := h.dispatch(wire.OpBuried, sched, b, "b")
	h.open()
	require.NoError(t, o.store.Update(func(tx *view.Tx) error { return o.Overtaken(tx, dead) }))
	o.fold(h.of(dead, 0)[read+1:]...)
	require.Equal(t, wire.Through{Epoch: epoch, Through: seq}, o.State().Barriers[dead].Before)
}
