package scheduler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// What the journal says of an entry may be in doubt. A command about the entry is answered after
// that is settled.
func TestCommandWaitsForEntryInDoubt(t *testing.T) {
	for name, refused := range map[string]bool{"it is confirmed": false, "it is refused": true} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			s := sc.leaderWith("killed")
			if refused {
				sc.broker.nacks = func(m wire.Message) bool { return m.Exchange == wire.ExchangeBury }
			}
			kill := wire.Command{Command: wire.CommandKill, Stream: wire.ScheduledJobs, JID: "killed"}
			var first, second []wire.Reply
			require.NoError(t, s.core.command(sc.now, kill, func(r wire.Reply) { first = append(first, r) }))
			sc.broker.process(s.conn, sc.now)
			require.NoError(t, s.readAll())
			require.NoError(t, s.core.command(sc.now, kill, func(r wire.Reply) { second = append(second, r) }))
			require.NoError(t, s.step(sc.now))
			require.Empty(t, second, "the broker has confirmed nothing yet")
			sc.broker.nacks = nil

			sc.rounds(s, 6, nil)
			require.Len(t, second, 1)
			require.Len(t, first, 1)
			if refused {
				require.Equal(t, wire.StatusUnavailable, first[0].Status)
				require.Equal(t, wire.StatusDone, second[0].Status, "it was pending again, and is killed now")
			} else {
				require.Equal(t, wire.StatusDone, first[0].Status)
				require.Equal(t, wire.StatusNotFound, second[0].Status)
				require.NotNil(t, second[0].Happened)
			}
			require.Len(t, sc.deadJobs(), 1)
			require.Zero(t, s.entries.Total(wire.ScheduledJobs))
		})
	}
}

// A command sees that a leader has returned a fire of the previous one, before the view has read
// it.
func TestCommandSeesReturnedFire(t *testing.T) {
	for name, id := range map[string]string{"another command": "", "the same again": "c"} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			s := sc.leaderWith("killed")
			kill := wire.Command{ID: "c", Command: wire.CommandKill, Stream: wire.ScheduledJobs, JID: "killed"}
			require.NoError(t, s.core.command(sc.now, kill, func(wire.Reply) {}))
			sc.inFlight(s)
			sc.elect(s, never)
			sc.leadsUnread(s)

			kill.ID = id
			require.Equal(t, wire.StatusDone, sc.ask(s, kill).Status)
			require.Len(t, sc.deadJobs(), 1)
			require.Zero(t, s.entries.Total(wire.ScheduledJobs))
		})
	}
}

// A trigger whose leader died is fired by the next one, and its queue refuses it: the command was
// not executed.
func TestRefusedTriggerIsNotDone(t *testing.T) {
	sc := newScene(t)
	s := sc.leaderWith("later")
	trigger := wire.Command{ID: "c", Command: wire.CommandTrigger, Stream: wire.ScheduledJobs, JID: "later"}
	require.NoError(t, s.core.command(sc.now, trigger, func(wire.Reply) {}))
	sc.inFlight(s)
	sc.broker.full["q"] = true
	sc.elect(s, never)
	sc.rounds(s, 12, nil)
	require.Equal(t, phaseLeading, s.core.phase)
	require.Empty(t, sc.copies())
	require.EqualValues(t, 1, s.entries.Total(wire.ScheduledJobs), "it is pending as before")

	sc.broker.full["q"] = false
	require.Equal(t, wire.StatusDone, sc.ask(s, trigger).Status, "the same request, repeated")
	require.Equal(t, map[string]int{"later": 1}, sc.copies())
}

// leadsUnread has a sidecar lead whose view has not read what it settled.
func (sc *scene) leadsUnread(s *modelSidecar) {
	sc.t.Helper()
	for range 40 {
		settling := s.core.phase >= phaseReconciling
		require.NoError(sc.t, s.step(sc.now))
		sc.answer(s)
		if s.core.phase == phaseLeading {
			return
		}
		if !settling {
			require.NoError(sc.t, s.readAll())
		}
		sc.now = sc.now.Add(10 * time.Millisecond)
	}
	require.Fail(sc.t, "no sidecar leads", "%s", s.core.phase)
}

// A job that was triggered and confirmed early is not fired again when it is due. Its lane looked
// it up before, and the view has not read the confirm yet.
func TestTriggeredJobIsNotFiredAgainWhenDue(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.at("early", "q", sc.now.Add(time.Minute))
	sc.rounds(s, 2, nil)
	trigger := wire.Command{ID: "c", Command: wire.CommandTrigger, Stream: wire.ScheduledJobs, JID: "early"}
	require.NoError(t, s.core.command(sc.now, trigger, func(wire.Reply) {}))
	sc.exchange(s)
	sc.now = sc.now.Add(time.Minute)
	require.NoError(t, s.step(sc.now))
	sc.take(s)
	require.Equal(t, map[string]int{"early": 1}, sc.copies())
}
