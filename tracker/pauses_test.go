package tracker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// Each record has all queues that are paused from there on: one is enough, whatever was read before
// it, and another process knows the same.
func TestPausedQueues(t *testing.T) {
	h := newHistory()
	h.open()
	require.Empty(t, newOne(t).inOrder(h).Paused())
	state := func(queue string, all map[string]wire.Pause) int64 {
		return h.record(wire.JournalRecord{Type: wire.TypeState, Queue: queue, Paused: &all})
	}
	low, high := wire.Pause{At: 1, Actor: "ann", Reason: "slow"}, wire.Pause{At: 2}
	state("low", map[string]wire.Pause{"low": low})
	at := state("high", map[string]wire.Pause{"low": low, "high": high})
	h.record(wire.JournalRecord{Type: wire.TypeState}) // about something else
	late := newOne(t)
	late.fold(h.of(wire.Journal, 0)[at:]...)
	for _, o := range []*one{newOne(t).inOrder(h), late} {
		for range 2 {
			require.Equal(t, map[string]wire.Pause{"low": low, "high": high}, o.Paused())
			delete(o.Paused(), "low")
			require.Len(t, o.Paused(), 2, "who asks has a copy")
			o.restart()
		}
	}
	state("low", map[string]wire.Pause{"high": high})
	require.Equal(t, map[string]wire.Pause{"high": high}, newOne(t).inOrder(h).Paused())
	state("high", map[string]wire.Pause{})
	o := newOne(t).inOrder(h)
	require.Empty(t, o.Paused())
	require.Zero(t, o.table(tablePaused))
	o.restart()
	require.Empty(t, o.Paused())
}

// A journal that is gone leaves queues paused: somebody meant that, and nobody has said otherwise.
func TestQueuesStayPausedWithoutTheirJournal(t *testing.T) {
	h := newHistory()
	h.open()
	h.record(wire.JournalRecord{Type: wire.TypeState, Queue: "q", Paused: &map[string]wire.Pause{"q": {At: 1}}})
	o := newOne(t).inOrder(h)
	o.lose(wire.Journal)
	for range 2 {
		require.Contains(t, o.Paused(), "q")
		o.restart()
	}
}

// What is shown changes with the batch, not before: one that is not written pauses nothing.
func TestAPauseThatIsNotWritten(t *testing.T) {
	h := newHistory()
	h.open()
	h.record(wire.JournalRecord{Type: wire.TypeState, Queue: "q", Paused: &map[string]wire.Pause{"q": {At: 1}}})
	bad := h.of(wire.Journal, 0)
	bad = append(bad, wire.Record{Stream: wire.Rollups})
	o := newOne(t)
	_, err := o.try(bad...)
	require.Error(t, err)
	require.Empty(t, o.Paused())
}

// Damage is no reason to have workers take what somebody held back.
func TestDamagedPauses(t *testing.T) {
	h := newHistory()
	h.open()
	h.record(wire.JournalRecord{Type: wire.TypeState, Queue: "q", Paused: &map[string]wire.Pause{"q": {At: 1}}})
	o := newOne(t).inOrder(h)
	require.Equal(t, 1, o.scribble(tablePaused))
	_, err := NewEntries(o.store, millrace)
	require.ErrorContains(t, err, "paused queues are damaged")
}
