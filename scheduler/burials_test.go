package scheduler

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// tears has the broker die after a leader's burials reach the dead jobs, and before the journal has
// any of them.
func (sc *scene) tears(s *modelSidecar) {
	sc.t.Helper()
	before := len(sc.deadJobs())
	for range 10 {
		require.NoError(sc.t, s.step(sc.now))
		for len(s.conn.out) > 0 {
			sc.broker.ended = sc.broker.ended || s.conn.out[0].message.Exchange == wire.ExchangeBury
			sc.broker.process(s.conn, sc.now)
		}
		for len(s.conn.answers) > 0 && !sc.broker.ended {
			require.NoError(sc.t, s.answer(sc.now))
		}
		require.NoError(sc.t, s.readAll())
	}
	require.Greater(sc.t, len(sc.deadJobs()), before)
	require.Zero(sc.t, sc.journaled()[wire.OpBuried]+sc.journaled()[wire.OpExpired])
	sc.broker.ended, sc.broker.witness = false, ""
	s.lose()
}

// A kill is done if the dead jobs have it, even if the journal lacks it. The next leader journals
// it, answers a repeated command with it, and can undo it.
func TestNextLeaderJournalsMissingKill(t *testing.T) {
	sc := newScene(t)
	s := sc.leaderWith("j")
	kill := wire.Command{ID: "k", Command: wire.CommandKill, Stream: wire.ScheduledJobs, JID: "j", Actor: "ann"}
	require.NoError(t, s.core.command(sc.now, kill, func(r wire.Reply) { require.Fail(t, "it was answered", "%+v", r) }))
	sc.tears(s)

	fresh := sc.leader("fresh")
	require.Zero(t, fresh.entries.Total(wire.ScheduledJobs))
	require.Equal(t, wire.StatusDone, sc.ask(fresh, kill).Status)
	require.EqualValues(t, 1, fresh.entries.Total(wire.DeadJobs))
	happened, err := fresh.entries.LastOutcome(wire.ScheduledJobs, "j")
	require.NoError(t, err)
	require.Equal(t, []string{wire.TypeKilled, "ann"}, []string{happened.What, happened.Actor})

	undo := wire.Command{Command: wire.CommandUndo, Stream: wire.ScheduledJobs, JID: "j"}
	require.Equal(t, wire.StatusOK, sc.ask(fresh, undo).Status)
	require.EqualValues(t, 1, fresh.entries.Total(wire.ScheduledJobs))
	require.Zero(t, fresh.entries.Total(wire.DeadJobs))
	fresh.lose()
	require.EqualValues(t, 1, sc.leader("later").entries.Total(wire.ScheduledJobs), "an undone kill is not journaled again")
	require.Equal(t, 1, sc.journaled()[wire.TypeKilled])
}

// An operation counts kills that the journal lacks. The leader that journals them dies before it
// has journaled all, and the next one does the rest.
func TestOperationCountsKillsMissingFromJournal(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	for _, jid := range []string{"one", "two", "three"} {
		sc.at(jid, "q", sc.now.Add(day))
	}
	sc.rounds(s, 2, nil)
	op := wire.Operation{Action: wire.CommandKill, Stream: wire.ScheduledJobs, Filter: &wire.Filter{}}
	require.NoError(t, s.core.command(sc.now, wire.Command{ID: "op", Command: wire.CommandOperate, Bulk: &op}, func(wire.Reply) {}))
	sc.tears(s)
	lone := len(sc.deadJobs())

	dying, journaled := sc.sidecar("dying"), 0
	sc.elect(dying, never)
	require.True(t, sc.rounds(dying, 8, func(m wire.Message) bool {
		j, err := wire.ParseJournal(m.Body)
		if err == nil && j.Type == wire.TypeKilled {
			journaled++
		}
		return journaled == lone
	}))
	dying.lose()
	fresh := sc.leader("fresh")
	require.EqualValues(t, 3, sc.ended(fresh, "op").Done)
	require.EqualValues(t, 3, fresh.entries.Total(wire.DeadJobs))
	require.Zero(t, fresh.entries.Total(wire.ScheduledJobs))
	require.Equal(t, 3, sc.journaled()[wire.TypeKilled])
	require.Len(t, sc.deadJobs(), 3, "each was buried once")
}

// A job that expired, and is among the dead jobs, is not due any more.
func TestNextLeaderJournalsMissingExpiry(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.scheduled("late", sc.now, `,"expires_at":1`)
	require.NoError(t, s.readAll())
	sc.tears(s)
	fresh := sc.leader("fresh")
	sc.rounds(fresh, 20, nil)
	require.Zero(t, fresh.entries.Total(wire.ScheduledJobs))
	require.EqualValues(t, 1, fresh.entries.Total(wire.DeadJobs))
	require.Empty(t, sc.copies())
}

// A kill that the journal refused is undone, even if the dead jobs have it. A job that was answered
// as pending is pending, and fires.
func TestKillRefusedByJournalLeavesJobPending(t *testing.T) {
	for name, fires := range map[string]bool{"it is pending": false, "it was fired since": true} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			s := sc.leaderWith("j")
			sc.broker.nacks = func(m wire.Message) bool { return m.Exchange == wire.ExchangeBury }
			sc.broker.journalDown = true
			require.Equal(t, wire.StatusUnavailable, sc.ask(s, wire.Command{Command: wire.CommandKill, Stream: wire.ScheduledJobs, JID: "j"}).Status)
			require.Len(t, sc.deadJobs(), 1)
			sc.broker.nacks = nil
			if !fires {
				s.lose()
				sc.broker.witness = ""
				require.EqualValues(t, 1, sc.leader("fresh").entries.Total(wire.ScheduledJobs))
				return
			}
			trigger := wire.Command{Command: wire.CommandTrigger, Stream: wire.ScheduledJobs, JID: "j"}
			require.NoError(t, s.core.command(sc.now, trigger, func(wire.Reply) {}))
			sc.inFlight(s)
			sc.rounds(sc.leader("fresh"), 5, nil)
			require.Equal(t, map[string]int{"j": 1}, sc.copies())
		})
	}
}
