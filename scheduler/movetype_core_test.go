package scheduler

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// Nothing is fired to a queue while it is moved, not even by a command. Other queues get their
// jobs.
func TestQueueBeingMovedGetsNoJobs(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.at("due", "moving", sc.now)
	sc.at("later", "moving", sc.now.Add(day))
	sc.at("bulk", "moving", sc.now.Add(day))
	sc.at("other", "other", sc.now)
	require.Zero(t, s.core.queues.holdForMove(sc.now, "moving", "it is being moved to type quorum"))
	sc.rounds(s, 20, nil)
	require.Equal(t, map[string]int{"other": 1}, sc.copies())
	r := sc.ask(s, wire.Command{ID: random(), Command: wire.CommandTrigger, Stream: wire.ScheduledJobs, JID: "later"})
	require.Equal(t, wire.StatusUnavailable, r.Status)
	require.Contains(t, r.Reason, "it is being moved to type quorum: it is pending as before")
	op := wire.Operation{Action: wire.CommandTrigger, Stream: wire.ScheduledJobs, JIDs: []string{"bulk"}}
	require.Equal(t, wire.StatusAccepted, sc.operate(s, "op", op).Status)
	sc.rounds(s, 20, nil)
	require.Equal(t, map[string]int{"other": 1}, sc.copies())

	s.core.queues.endMove("moving")
	sc.rounds(s, 20, nil)
	require.Equal(t, map[string]int{"other": 1, "due": 1, "bulk": 1}, sc.copies())
	require.Equal(t, []int64{1, 0}, []int64{sc.ended(s, "op").Done, sc.ended(s, "op").Failed})
	require.Empty(t, s.core.queues.heldQueues())
}

// A move pauses its queue and resumes it. A pause by an operator outlasts the move.
func TestMovePausesAndResumesQueue(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	of := &wire.PauseMove{To: "quorum"}
	move := func(verb string) wire.Reply {
		return sc.ask(s, wire.Command{ID: random(), Command: verb, Queue: "q", Actor: "ann", Move: of})
	}
	require.Equal(t, wire.StatusDone, move(wire.CommandPause).Status)
	require.Equal(t, of, s.entries.Paused()["q"].Move)
	require.Equal(t, wire.StatusConflict, sc.pause(s, wire.CommandResume, "q").Status, "the move resumes it")
	require.Equal(t, wire.StatusDone, move(wire.CommandResume).Status)
	require.Empty(t, s.entries.Paused())
	require.Equal(t, []string{"pause q", "resume q"}, sc.said())

	for _, before := range []bool{true, false} {
		if before {
			sc.pause(s, wire.CommandPause, "q")
		}
		require.Equal(t, wire.StatusDone, move(wire.CommandPause).Status)
		if !before {
			sc.pause(s, wire.CommandPause, "q")
		}
		require.Equal(t, wire.StatusDone, move(wire.CommandPause).Status, "for example a move of another leader")
		require.Equal(t, &wire.PauseMove{To: "quorum", Paused: true}, s.entries.Paused()["q"].Move)
		sc.said()
		require.Equal(t, wire.StatusDone, move(wire.CommandResume).Status)
		require.Equal(t, []string{"pause q"}, sc.said(), "it stays paused")
		require.Nil(t, s.entries.Paused()["q"].Move)
		require.Equal(t, "r", s.entries.Paused()["q"].Reason)
		require.Equal(t, wire.StatusDone, sc.pause(s, wire.CommandResume, "q").Status)
		require.Empty(t, s.entries.Paused())
	}
}
