package scheduler

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

func (sc *scene) pause(s *modelSidecar, verb, queue string) wire.Reply {
	return sc.ask(s, wire.Command{ID: random(), Command: verb, Queue: queue, Actor: "ann", Reason: "r"})
}

// said returns what workers were sent since the last call.
func (sc *scene) said() (all []string) {
	for _, raw := range sc.broker.notices {
		var c wire.Controls
		require.NoError(sc.t, json.Unmarshal(raw, &c))
		require.Equal(sc.t, "*", c.Identity)
		require.NotEmpty(sc.t, c.ID)
		all = append(all, c.Op+" "+c.Queue)
	}
	sc.broker.notices = nil
	return all
}

func TestPauseSurvivesFailover(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	require.Equal(t, []string{}, sc.ask(s, wire.Command{Command: wire.CommandState}).Paused)
	require.Equal(t, wire.StatusDone, sc.pause(s, wire.CommandPause, "x").Status)
	require.Equal(t, wire.StatusDone, sc.pause(s, wire.CommandPause, "y").Status)
	require.Equal(t, wire.StatusDone, sc.pause(s, wire.CommandPause, "x").Status, "it is")
	require.Equal(t, wire.StatusDone, sc.pause(s, wire.CommandResume, "z").Status, "it is not paused")
	require.Equal(t, []string{"pause x", "pause y", "pause x", "resume z"}, sc.said())
	require.Equal(t, 2, sc.journaled()[wire.TypeState])
	reply := sc.ask(s, wire.Command{Command: wire.CommandState})
	require.Equal(t, []any{wire.StatusOK, []string{"x", "y"}}, []any{reply.Status, reply.Paused})
	x := s.entries.Paused()["x"]
	require.Positive(t, x.At)
	require.Equal(t, []string{"ann", "r"}, []string{x.Actor, x.Reason})

	// The next leader knows of it, and so does a leader that has read only what low water leaves.
	s.disconnect()
	s = sc.leader("b")
	require.Equal(t, []string{"pause x", "pause y"}, sc.said(), "requests from before the failover have no answer")
	require.NoError(t, s.core.beginCarry(0))
	sc.rounds(s, 20, nil)
	require.Equal(t, wire.StatusDone, sc.pause(s, wire.CommandResume, "y").Status)
	require.NoError(t, s.core.beginCarry(0))
	sc.rounds(s, 20, nil)
	journal := sc.broker.streams[wire.Journal]
	require.Positive(t, journal.spent)
	journal.records, journal.base = journal.records[journal.spent:], journal.spent
	s.disconnect()
	s = sc.leader("c")
	require.Equal(t, []string{"x"}, sc.ask(s, wire.Command{Command: wire.CommandState}).Paused)
}

// Commands about one queue that arrive together are executed one after the other.
func TestConcurrentPausesAreSerialized(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	var answered []int
	for i, verb := range []string{wire.CommandPause, wire.CommandResume, wire.CommandPause} {
		cmd := wire.Command{Command: verb, Queue: fmt.Sprint("q", i%2)}
		require.NoError(t, s.core.command(sc.now, cmd, func(wire.Reply) { answered = append(answered, i) }))
	}
	sc.rounds(s, 12, nil)
	require.Equal(t, []int{0, 1, 2}, answered)
	require.Equal(t, []string{"q0"}, sc.ask(s, wire.Command{Command: wire.CommandState}).Paused)
	require.Equal(t, []string{"pause q0", "resume q1", "pause q0"}, sc.said())
}

func TestPausedQueuesAreLimited(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	all := map[string]wire.Pause{}
	for i := range maxPaused {
		all[fmt.Sprint(i)] = wire.Pause{}
	}
	require.NoError(t, s.core.ledger.Record(sc.now, wire.JournalRecord{Type: wire.TypeState, Paused: &all}, ledger.EntryID{}))
	sc.rounds(s, 4, nil)
	require.Equal(t, wire.StatusConflict, sc.pause(s, wire.CommandPause, "x").Status)
	require.Equal(t, wire.StatusDone, sc.pause(s, wire.CommandResume, "7").Status)
	require.Equal(t, wire.StatusDone, sc.pause(s, wire.CommandPause, "x").Status)
}

// A command that arrives when the first was just executed waits for those that arrived before it.
func TestPausesKeepTheirOrder(t *testing.T) {
	for rounds := range 8 {
		sc := newScene(t)
		s := sc.leader("a")
		var answered []int
		ask := func(verb string, n int) {
			require.NoError(t, s.core.command(sc.now, wire.Command{Command: verb, Queue: "q"}, func(wire.Reply) { answered = append(answered, n) }))
		}
		ask(wire.CommandPause, 1)
		ask(wire.CommandResume, 2)
		sc.rounds(s, rounds, nil)
		ask(wire.CommandPause, 3)
		sc.rounds(s, 20, nil)
		require.Equal(t, []int{1, 2, 3}, answered, "after %d rounds", rounds)
		require.Contains(t, s.entries.Paused(), "q")
	}
}

// The journal refuses the record of a carry-over that says what is paused, and it is sent again.
// It does not undo what came meanwhile.
func TestCarryOverDoesNotUndoPause(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	require.Equal(t, wire.StatusDone, sc.pause(s, wire.CommandPause, "x").Status)
	refused := false
	sc.broker.nacks = func(m wire.Message) bool {
		j, err := wire.ParseJournal(m.Body)
		if err != nil || j.Type != wire.TypeState || j.Queue != "" || refused {
			return false
		}
		refused = true
		return true
	}
	require.NoError(t, s.core.beginCarry(0))
	answered, asked := 0, false
	for range 200 {
		sc.now = sc.now.Add(20 * time.Millisecond)
		require.NoError(t, s.step(sc.now))
		sc.exchange(s)
		if refused && !asked {
			asked = true
			for _, cmd := range []wire.Command{{ID: "1", Command: wire.CommandPause, Queue: "y"}, {ID: "2", Command: wire.CommandResume, Queue: "x"}} {
				require.NoError(t, s.core.command(sc.now, cmd, func(wire.Reply) { answered++ }))
			}
		}
	}
	require.Equal(t, 2, answered)
	require.Equal(t, []string{"y"}, slices.Collect(maps.Keys(s.entries.Paused())))
	require.NoError(t, s.core.beginCarry(0), "nothing waits for that record")
	sc.rounds(s, 60, nil)
	require.Equal(t, 2, sc.journaled()[wire.TypeLowWater])
}
