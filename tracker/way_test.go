package tracker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/tracker/audit"
	"github.com/millrace-jobs/millrace/wire"
)

// probe is a probe that came back into the journal; it returns where that has it.
func (h *history) probe(number, routed int64) int64 {
	m := wire.Probe{Epoch: h.epoch, Number: number, Confirmed: h.through, Routed: routed}.To(wire.Journal)
	return h.append(wire.Journal, millrace, m.Headers, string(m.Body))
}

// A probe tells how far what was fired is known to have arrived, and what is confirmed. It is no
// act, and says nothing of any entry.
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
		require.Empty(t, o.doubtful(), "what it says is confirmed is settled")
		require.Empty(t, o.rejected(wire.Journal))
		ops, _ := o.acts(audit.Query{})
		require.Empty(t, ops)
		o.restart()
	}
	at = h.probe(2, 0)
	o = newOne(t).inOrder(h)
	require.Equal(t, Probed{Number: 2, Offset: at}, o.Probed())
	require.EqualValues(t, 1, o.State().RoutedTo, "it takes nothing back")
}

// A probe of a leader that was followed proves nothing: who leads now has a way of its own. A new
// epoch has sent none yet.
func TestLateProbes(t *testing.T) {
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
	require.Empty(t, o.doubtful(), "what it says was confirmed was")
	h.epoch, h.through = second, 0
	at := h.probe(1, 3)
	require.Equal(t, Probed{Number: 1, Offset: at}, newOne(t).inOrder(h).Probed())
}

// Anybody may write into the journal: what another user calls a probe is listed as rejected.
func TestProbesOfOthers(t *testing.T) {
	h := newHistory()
	h.open()
	m := wire.Probe{Epoch: h.epoch, Number: 1, Routed: 9}.To(wire.Journal)
	h.append(wire.Journal, client, m.Headers, string(m.Body))
	o := newOne(t).inOrder(h)
	require.Equal(t, Probed{}, o.Probed())
	require.EqualValues(t, -1, o.State().RoutedTo)
	require.Len(t, o.rejected(wire.Journal), 1)
}

// The view has seen as many burials as stand behind the newest barrier of the dead jobs.
func TestProbedBurials(t *testing.T) {
	h := newHistory()
	a, b := h.entry(sched, "a", 1), h.entry(sched, "b", 1)
	h.open()
	h.deed(wire.OpBuried, sched, a, "a")
	last := h.deed(wire.OpExpired, sched, b, "b")
	require.Equal(t, last, newOne(t).inOrder(h).Probed().Buried)
	h.open()
	require.Zero(t, newOne(t).inOrder(h).Probed().Buried, "numbers begin again")
}

// What was fired between routed_to and the record astray may not have arrived; a leader that begins
// has fired it again.
func TestAstray(t *testing.T) {
	to := func(offset int64) *int64 { return &offset }
	h := newHistory()
	h.open()
	require.Equal(t, []int64{-1, -1}, astray(newOne(t).inOrder(h)))
	h.plain(wire.JournalRecord{Type: wire.TypeConfirmed, RoutedTo: to(1)})
	at := h.plain(wire.JournalRecord{Type: wire.TypeMisrouted, At: 33})
	o := newOne(t).inOrder(h)
	for range 2 {
		require.Equal(t, []int64{1, at}, astray(o))
		require.Equal(t, 33.0, o.State().MisroutedTime)
		o.restart()
	}
	h.plain(wire.JournalRecord{Type: wire.TypeConfirmed, RoutedTo: to(0)})
	require.Equal(t, []int64{1, at}, astray(newOne(t).inOrder(h)), "who had not read all says less than is known")
	h.plain(wire.JournalRecord{Type: wire.TypeWitness, Queue: "w"})
	require.Equal(t, []int64{at, -1}, astray(newOne(t).inOrder(h)), "all of that has been entered again")
	h.record(wire.JournalRecord{Type: wire.TypeLowWater, RoutedTo: to(at + 1)})
	require.Equal(t, []int64{at + 1, -1}, astray(newOne(t).inOrder(h)))
	next := h.open(func(r *wire.JournalRecord) { r.RoutedTo = to(100) })
	require.Equal(t, []int64{next, -1}, astray(newOne(t).inOrder(h)), "a journal that had gone on further than this one")
}

func astray(o *one) []int64 { return []int64{o.State().RoutedTo, o.State().MisroutedAt} }
