package ledger

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The number and the size of unconfirmed publishes are bounded: a thousand of the largest bodies
// would take the machine's memory.
func TestWindowIsBounded(t *testing.T) {
	w := newWindow()
	for i := range uint64(MaxOpen) {
		require.True(t, w.room(), "%d are open", i)
		w.add(i, &Publish{Size: 1})
	}
	require.False(t, w.room())
	w.takeOut(7)
	require.True(t, w.room())
	w.add(7, &Publish{Size: MaxOpenBytes})
	w.takeOut(8)
	require.False(t, w.room(), "there is room for one more, but not for its size")
	w.takeOut(7)
	require.True(t, w.room())
	require.Nil(t, w.takeOut(7))
}

// A silent queue with all the fires that a window holds leaves room for those of others.
func TestSilentFiresLeaveTheWindow(t *testing.T) {
	w := newWindow()
	for i := range uint64(MaxOpen) {
		w.add(i, &Publish{Size: 1})
	}
	require.False(t, w.room())
	w.aside, w.asideBytes = MaxOpen, MaxOpen
	require.True(t, w.room())
	w.aside, w.asideBytes = MaxAside, 0
	require.False(t, w.room(), "open publishes of silent queues are bounded too")
}

// The AMQP library keeps every answer that follows a missing one. The epoch ends before they are
// too many.
func TestEpochWearsOutFarBehindHole(t *testing.T) {
	a := newAnswers(nil)
	a.journal = MaxBehindHole + 7
	require.False(t, a.Worn())
	a.behind(7)
	require.False(t, a.Worn())
	a.journal++
	require.True(t, a.Worn())
}
