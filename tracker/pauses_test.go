package tracker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// Each record has all paused queues, so one record is enough for a view that begins there. A new
// process has the same queues.
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
			require.Len(t, o.Paused(), 2, "Paused returns a copy")
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

// Queues stay paused when the journal is lost, because no user has resumed them.
func TestPauseSurvivesLostJournal(t *testing.T) {
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

// A pause is shown when its batch is committed, not before.
func TestUncommittedPauseIsNotShown(t *testing.T) {
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

// Damage must not let workers take jobs from a queue that a user has paused.
func TestDamagedPausesAreReported(t *testing.T) {
	h := newHistory()
	h.open()
	h.record(wire.JournalRecord{Type: wire.TypeState, Queue: "q", Paused: &map[string]wire.Pause{"q": {At: 1}}})
	o := newOne(t).inOrder(h)
	require.Equal(t, 1, o.scribble(tablePaused))
	_, err := NewEntries(o.store, millrace)
	require.ErrorContains(t, err, "paused queues are damaged")
}
