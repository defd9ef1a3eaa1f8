package scheduler

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// inFlight is a leader that dies with one fire or burial that only the journal has, on a broker
// that restarts.
func (sc *scene) inFlight(s *modelSidecar) {
	sc.t.Helper()
	require.Len(sc.t, s.conn.out, 1)
	sc.broker.append(wire.Journal, millrace, s.conn.out[0].message)
	sc.broker.witness = ""
	s.lose()
}

// An entry that is too large for the view is fetched before it is fired again. While the fetch
// fails, nothing waits for it. A new witness does not make it count as delivered: it is pending
// again.
func TestLargeEntryInDoubtIsFetched(t *testing.T) {
	for name, there := range map[string]bool{"its record is there": true, "its record is gone": false} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			s := sc.leader("a")
			sc.scheduled("large", sc.now, `,"args":["`+strings.Repeat("x", 70<<10)+`"]`)
			require.NoError(t, s.readAll())
			require.NoError(t, s.step(sc.now))
			sc.inFlight(s)

			s.fetch = func(string, int64) ([]byte, error) { return nil, errors.New("no connection") }
			sc.elect(s, never)
			sc.rounds(s, 12, nil)
			require.Equal(t, phaseLeading, s.core.phase, "nothing waits for it")
			doubts, err := s.entries.Doubts()
			require.NoError(t, err)
			require.Empty(t, doubts)
			require.Empty(t, sc.copies())
			require.EqualValues(t, 1, s.entries.Total(wire.ScheduledJobs))

			s.fetch = nil
			if !there {
				s.fetch = func(string, int64) ([]byte, error) { return nil, nil }
			}
			sc.rounds(s, 100, nil)
			found, err := s.entries.Find(wire.ScheduledJobs, "large")
			require.NoError(t, err)
			if there {
				require.Equal(t, map[string]int{"large": 1}, sc.copies())
				return
			}
			require.Len(t, found, 1)
			require.Contains(t, found[0].Parked, "cannot be read any more")
		})
	}
}

// A fire or burial whose entry was truncated with its stream is repeated with the bytes that the
// journal has.
func TestDoubtIsRepeatedFromJournal(t *testing.T) {
	for _, command := range []string{wire.CommandTrigger, wire.CommandKill} {
		t.Run(command, func(t *testing.T) {
			sc := newScene(t)
			s := sc.leaderWith("gone")
			require.NoError(t, s.core.command(sc.now, wire.Command{Command: command, Stream: wire.ScheduledJobs, JID: "gone"}, func(wire.Reply) {}))
			sc.inFlight(s)
			entries := sc.broker.streams[wire.ScheduledJobs]
			entries.records[len(entries.records)-1].Body = []byte("garbage: what stood there cannot be read any more")

			fresh := sc.sidecar("fresh")
			sc.elect(fresh, never)
			sc.rounds(fresh, 15, nil)
			require.Equal(t, phaseLeading, fresh.core.phase)
			doubts, err := fresh.entries.Doubts()
			require.NoError(t, err)
			require.Empty(t, doubts)
			if command == wire.CommandTrigger {
				require.Equal(t, map[string]int{"gone": 1}, sc.copies())
				return
			}
			require.Empty(t, sc.copies())
			require.Len(t, sc.deadJobs(), 1)
			require.Contains(t, sc.deadJobs()[0], `"gone"`)
		})
	}
}

// A job that only the journal has, and that cannot be sent, is listed.
func TestUnpublishableDoubtIsListed(t *testing.T) {
	sc := newScene(t)
	s := sc.leaderWith("gone")
	require.NoError(t, s.core.command(sc.now, wire.Command{Command: wire.CommandTrigger, Stream: wire.ScheduledJobs, JID: "gone"}, func(wire.Reply) {}))
	sc.inFlight(s)
	entries := sc.broker.streams[wire.ScheduledJobs]
	entries.records[len(entries.records)-1].Body = []byte("garbage")
	fresh := sc.sidecar("fresh")
	sc.elect(fresh, never)
	fresh.conn.unpublishable = func(m wire.Message) (dispatched bool) {
		_, dispatched = wire.DispatchOf(m.Headers)
		return dispatched
	}
	sc.rounds(fresh, 15, nil)
	require.Equal(t, phaseLeading, fresh.core.phase)
	doubts, err := fresh.entries.Doubts()
	require.NoError(t, err)
	require.Empty(t, doubts)
	require.Equal(t, 1, sc.journaled()[wire.TypeRejected])
}

// A burial whose dead job was already acted upon has arrived, although the dead job is gone.
func TestRetriedBurialCountsAsArrived(t *testing.T) {
	sc := newScene(t)
	s := sc.leaderWith("killed")
	require.NoError(t, s.core.command(sc.now, wire.Command{Command: wire.CommandKill, Stream: wire.ScheduledJobs, JID: "killed"}, func(wire.Reply) {}))
	sc.broker.process(s.conn, sc.now) // the broker has it, and its leader never learns that
	require.NoError(t, s.readAll())
	s.conn.answers = nil
	require.NoError(t, s.core.command(sc.now, wire.Command{Command: wire.CommandRetry, Stream: wire.DeadJobs, JID: "killed"}, func(wire.Reply) {}))
	sc.broker.process(s.conn, sc.now)
	s.lose()
	require.NoError(t, s.restart())
	sc.elect(s, never)
	sc.rounds(s, 15, nil)
	require.Equal(t, map[string]int{"killed": 1}, sc.copies())
	require.Zero(t, s.entries.Total(wire.ScheduledJobs))
	require.Zero(t, s.entries.Total(wire.DeadJobs))
}

// A carry-over leaves half of the window to fires and commands.
func TestCarryOverLeavesHalfTheWindow(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	for i := range 700 {
		sc.at(fmt.Sprint("later-", i), "q", sc.now.Add(day))
	}
	require.NoError(t, s.readAll())
	require.NoError(t, s.core.beginCarry(0))
	for range 20 {
		sc.now = sc.now.Add(time.Second)
		require.NoError(t, s.step(sc.now))
	}
	require.Equal(t, carryFlight, s.core.ledger.Open())
	require.True(t, s.core.ledger.Room())
	sc.rounds(s, 40, nil)
	require.Nil(t, s.core.carry.run)
	require.Equal(t, 1, sc.journaled()[wire.TypeLowWater])
	require.EqualValues(t, 700, s.entries.Total(wire.ScheduledJobs))
}

// Queues that refuse are listed in the order of their names. The others are not affected.
func TestRefusingQueuesAreListedByName(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.broker.full["c"], sc.broker.full["a"], sc.broker.full["b"] = true, true, true
	for _, queue := range []string{"c", "a", "b", "fine"} {
		sc.due("to-"+queue, queue)
	}
	sc.rounds(s, 3, nil)
	require.Equal(t, map[string]int{"to-fine": 1}, sc.copies())
	var names []string
	for _, held := range s.core.queues.heldQueues() {
		names = append(names, held.Queue)
	}
	require.Equal(t, []string{"a", "b", "c"}, names)
	clear(sc.broker.full)
	sc.rounds(s, 100, nil)
	require.Len(t, sc.copies(), 4)
	require.Empty(t, s.core.queues.heldQueues())
}

// A release is done without a wait if nothing is held.
func TestReleaseWithoutHeldJobs(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	require.Equal(t, wire.StatusDone, sc.ask(s, wire.Command{Command: wire.CommandRelease}).Status)
	require.Equal(t, 1, sc.journaled()[wire.TypeReleased])
	require.Zero(t, sc.journaled()[wire.TypeLowWater])
}

// An entry in doubt that cannot be read, although its stream answers, is parked by the leader that
// reconciles it.
func TestUnreadableEntryInDoubtIsParked(t *testing.T) {
	for name, record := range map[string][]byte{"gone": nil, "garbage": []byte("garbage")} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			s := sc.leader("a")
			sc.scheduled("large", sc.now, `,"args":["`+strings.Repeat("x", 70<<10)+`"]`)
			require.NoError(t, s.readAll())
			require.NoError(t, s.step(sc.now))
			sc.inFlight(s)
			s.fetch = func(string, int64) ([]byte, error) { return record, nil }
			sc.elect(s, never)
			sc.rounds(s, 12, nil)
			require.Equal(t, phaseLeading, s.core.phase)
			require.Empty(t, sc.copies())
			found, err := s.entries.Find(wire.ScheduledJobs, "large")
			require.NoError(t, err)
			require.Len(t, found, 1)
			require.Contains(t, found[0].Parked, "cannot be read any more")
			doubts, err := s.entries.Doubts()
			require.NoError(t, err)
			require.Empty(t, doubts)
		})
	}
}

// A fire whose job only the journal has, and whose queue refuses it again and again, is not
// forgotten. Low water waits until a leader can dispatch it.
func TestLowWaterWaitsForJobsOnlyInJournal(t *testing.T) {
	sc := newScene(t)
	s := sc.leaderWith("gone")
	require.NoError(t, s.core.command(sc.now, wire.Command{Command: wire.CommandTrigger, Stream: wire.ScheduledJobs, JID: "gone"}, func(wire.Reply) {}))
	sc.inFlight(s)
	entries := sc.broker.streams[wire.ScheduledJobs]
	entries.records[len(entries.records)-1].Body = []byte("garbage")
	sc.broker.full["q"] = true

	fresh := sc.sidecar("fresh")
	sc.elect(fresh, never)
	sc.rounds(fresh, 10, nil)
	require.Equal(t, phaseLeading, fresh.core.phase)
	require.NoError(t, fresh.core.beginCarry(0))
	sc.rounds(fresh, 20, nil)
	require.Zero(t, sc.journaled()[wire.TypeLowWater])
	doubts, err := fresh.entries.Doubts()
	require.NoError(t, err)
	require.Len(t, doubts, 1)

	clear(sc.broker.full)
	fresh.lose()
	sc.elect(fresh, never)
	sc.rounds(fresh, 10, nil)
	require.Equal(t, map[string]int{"gone": 1}, sc.copies())
	require.NoError(t, fresh.core.beginCarry(0))
	sc.rounds(fresh, 20, nil)
	require.Equal(t, 1, sc.journaled()[wire.TypeLowWater])
}

// A fire in the journal whose body is not a job is not fired again, and delays nothing.
func TestInvalidDoubtDelaysNothing(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	headers := wire.Dispatch{Op: wire.OpFired, Stream: wire.ScheduledJobs, Offset: 1 << 20, JIDTag: "none", Epoch: s.core.ledger.Epoch(), Seq: 1000}
	sc.broker.append(wire.Journal, millrace, wire.Fire(&wire.Job{Queue: "q"}, headers, []byte("garbage"), sc.now))
	sc.broker.witness = ""
	s.lose()
	sc.due("j", "q")
	for range 2 { // once after a restart of the broker, once without
		sc.elect(s, never)
		sc.rounds(s, 10, nil)
		require.Equal(t, phaseLeading, s.core.phase)
		s.lose()
	}
	require.Equal(t, map[string]int{"j": 1}, sc.copies())
	doubts, err := s.entries.Doubts()
	require.NoError(t, err)
	require.Empty(t, doubts)
}

// After retention, low water is the only source for the witness. The broker has not restarted, so a
// fire that was not confirmed arrived.
func TestLowWaterKeepsWitness(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	require.NoError(t, s.core.beginCarry(0))
	sc.rounds(s, 12, nil)
	sc.spend()
	require.Equal(t, 1, sc.journaled()[wire.TypeLowWater])
	require.Zero(t, sc.journaled()[wire.TypeWitness]+sc.journaled()[wire.TypeOpened])

	sc.fires(s, "x", "q")
	sc.take(s)
	s.lose()
	require.NoError(t, s.forget())
	sc.elect(s, never)
	sc.prove(s)
	require.Equal(t, map[string]int{"x": 1}, sc.copies())
}

func TestDoubtsAreCounted(t *testing.T) {
	var c core
	require.Zero(t, c.inDoubt())
	c.reconciler = reconciler{open: make([]tracker.Doubt, 1), waiting: make([]tracker.Doubt, 2), reentry: reentry{left: make([]misrouted, 4)}, unjournaled: make([]*tracker.Stored, 8)}
	c.lateFires.open = make([]tracker.Doubt, 16)
	require.Equal(t, 31, c.inDoubt())
}
