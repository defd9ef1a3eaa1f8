package scheduler

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What may be unconfirmed is bounded by number and by size: a thousand of the largest bodies would take the machine's memory.
func TestTheWindowIsBounded(t *testing.T) {
	w := newWindow()
	for i := range uint64(maxFlight) {
		require.True(t, w.room(silence{}), "%d are open", i)
		w.add(i, &item{size: 1})
	}
	require.False(t, w.room(silence{}))
	w.remove(7)
	require.True(t, w.room(silence{}))
	w.add(7, &item{size: maxFlightBytes})
	w.remove(8)
	require.False(t, w.room(silence{}), "there is room for one more, but not for its size")
	w.remove(7)
	require.True(t, w.room(silence{}))
	require.Nil(t, w.remove(7))
}
