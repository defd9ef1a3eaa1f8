package tracker

import (
	"testing"

	"github.com/stretchr/testify/require"

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
