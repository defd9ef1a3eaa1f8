package tracker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// A leader fires an entry again, of which an earlier leader has said meanwhile that it is
// confirmed. The entry stays settled, also if the later fire comes back.
func TestFireOfSettledEntry(t *testing.T) {
	h := newHistory()
	a := h.entry(sched, "a", 1)
	first := h.open()
	fired := h.dispatch(wire.OpFired, sched, a, "a")
	second := h.open()
	h.epoch = first
	h.confirmed(fired)
	h.epoch, h.through = second, 0
	again := h.dispatch(wire.OpRefired, sched, a, "a")
	h.record(wire.JournalRecord{Type: wire.TypeReturned, Seq: again, Stream: sched, Offset: a, JID: "a"})

	inOrder, journalFirst := newOne(t).inOrder(h), newOne(t)
	r := journalFirst.read(h, true)
	for r.next(wire.Journal, 1) {
	}
	r.finish()
	require.Equal(t, inOrder.dump(), journalFirst.dump())
	require.Empty(t, inOrder.listDoubts())
	require.Empty(t, inOrder.pending(sched))
}
