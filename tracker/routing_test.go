package tracker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/tracker/audit"
	"github.com/millrace-jobs/millrace/wire"
)

// probe appends a probe that returned to the journal, and returns its offset.
func (h *history) probe(number, routed int64) int64 {
	m := wire.Probe{Epoch: h.epoch, Number: number, Confirmed: h.through, Routed: routed}.To(wire.Journal)
	return h.append(wire.Journal, millrace, m.Headers, string(m.Body))
}

// A probe has the number up to which fires have arrived, and the number up to which they are
// confirmed. It is not in the audit log, and changes no entry.
func TestProbes(t *testing.T) {
	h := newHistory()
	a := h.entry(sched, "a", 1)
	h.open()
	require.Equal(t, Probed{}, newOne(t).inOrder(h).Probed())
	h.through = h.fire(sched, a, "a")
	at := h.probe(1, 1)
	o := newOne(t).inOrder(h)
	for range 2 {
		require.Equal(t, Probed{Number: 1, Offset: at}, o.Probed())
		require.EqualValues(t, 1, o.State().RoutedTo)
		require.Empty(t, o.listDoubts(), "a fire that the probe confirms is settled")
		require.Empty(t, o.rejected(wire.Journal))
		ops, _ := o.auditEntries(audit.Query{})
		require.Empty(t, ops)
		o.restart()
	}
	at = h.probe(2, 0)
	o = newOne(t).inOrder(h)
	require.Equal(t, Probed{Number: 2, Offset: at}, o.Probed())
	require.EqualValues(t, 1, o.State().RoutedTo, "a lower number changes nothing")
}

// A probe of a fenced leader does not count for the current leader, whose route may differ. A new
// epoch begins without probes.
func TestProbesOfFencedLeaderAreVoid(t *testing.T) {
	h := newHistory()
	a := h.entry(sched, "a", 1)
	first := h.open()
	h.fire(sched, a, "a")
	h.probe(7, 1)
	second := h.open()
	require.Zero(t, newOne(t).inOrder(h).Probed().Number)
	h.epoch, h.through = first, 1
	h.probe(8, 2)
	o := newOne(t).inOrder(h)
	require.Zero(t, o.Probed().Number)
	require.EqualValues(t, 1, o.State().RoutedTo)
	require.EqualValues(t, 1, o.State().Void[wire.Journal])
	require.Empty(t, o.listDoubts(), "the confirm of a late probe is valid")
	h.epoch, h.through = second, 0
	at := h.probe(1, 3)
	require.Equal(t, Probed{Number: 1, Offset: at}, newOne(t).inOrder(h).Probed())
}

// A client may write into the journal. A probe of another user is listed as rejected.
func TestProbesOfClientsAreRejected(t *testing.T) {
	h := newHistory()
	h.open()
	m := wire.Probe{Epoch: h.epoch, Number: 1, Routed: 9}.To(wire.Journal)
	h.append(wire.Journal, client, m.Headers, string(m.Body))
	o := newOne(t).inOrder(h)
	require.Equal(t, Probed{}, o.Probed())
	require.EqualValues(t, -1, o.State().RoutedTo)
	require.Len(t, o.rejected(wire.Journal), 1)
}

// A view counts the burials behind the newest barrier of the dead jobs.
func TestProbesCountBurials(t *testing.T) {
	h := newHistory()
	a, b := h.entry(sched, "a", 1), h.entry(sched, "b", 1)
	h.open()
	h.dispatch(wire.OpBuried, sched, a, "a")
	last := h.dispatch(wire.OpExpired, sched, b, "b")
	require.Equal(t, last, newOne(t).inOrder(h).Probed().Buried)
	h.open()
	require.Zero(t, newOne(t).inOrder(h).Probed().Buried, "the numbers begin again")
}

// Fires between routed_to and the misrouted record may not have arrived. A new leader fires them
// again.
func TestMisroutedRange(t *testing.T) {
	to := func(offset int64) *int64 { return &offset }
	h := newHistory()
	h.open()
	require.Equal(t, []int64{-1, -1}, misrouted(newOne(t).inOrder(h)))
	h.plain(wire.JournalRecord{Type: wire.TypeConfirmed, RoutedTo: to(1)})
	at := h.plain(wire.JournalRecord{Type: wire.TypeMisrouted, At: 33})
	o := newOne(t).inOrder(h)
	for range 2 {
		require.Equal(t, []int64{1, at}, misrouted(o))
		require.Equal(t, 33.0, o.State().MisroutedTime)
		o.restart()
	}
	h.plain(wire.JournalRecord{Type: wire.TypeConfirmed, RoutedTo: to(0)})
	require.Equal(t, []int64{1, at}, misrouted(newOne(t).inOrder(h)), "a leader that had not read everything does not lower the number")
	h.plain(wire.JournalRecord{Type: wire.TypeWitness, Queue: "w"})
	require.Equal(t, []int64{at, -1}, misrouted(newOne(t).inOrder(h)), "all these jobs were entered again")
	h.record(wire.JournalRecord{Type: wire.TypeLowWater, RoutedTo: to(at + 1)})
	require.Equal(t, []int64{at + 1, -1}, misrouted(newOne(t).inOrder(h)))
	next := h.open(func(r *wire.JournalRecord) { r.RoutedTo = to(100) })
	require.Equal(t, []int64{next, -1}, misrouted(newOne(t).inOrder(h)), "the number of a longer, lost journal is limited to this one")
}

func misrouted(o *one) []int64 { return []int64{o.State().RoutedTo, o.State().MisroutedAt} }
