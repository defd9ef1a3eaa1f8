package scheduler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// loseConfirmed has the broker confirm all that a leader sent, and lose some of it from the journal.
// RabbitMQ 3.10 does so when the node of the journal's leader dies.
func (sc *scene) loseConfirmed(s *modelSidecar, lost func(*wire.Record) bool) {
	sc.t.Helper()
	journal := sc.broker.streams[wire.Journal]
	from, n := journal.end(), 0
	sc.answer(s)
	for offset := from; offset < journal.end(); offset++ {
		if r := journal.get(int64(offset)); lost(r) {
			m := wire.JournalRecord{Type: wire.TypeConfirmed, Epoch: s.core.ledger.Epoch()}.Append(wire.Journal, 0, 0)
			r.Headers, r.Body = m.Headers, m.Body
			n++
		}
	}
	require.Positive(sc.t, n)
	require.NoError(sc.t, s.readAll())
}

func fireOf(jid string) func(*wire.Record) bool {
	return func(r *wire.Record) bool {
		d, ok := wire.DispatchOf(r.Headers)
		return ok && d.JIDTag == wire.JIDTag(jid)
	}
}

func recordOfType(name string) func(*wire.Record) bool {
	return func(r *wire.Record) bool {
		j, err := wire.ParseJournal(r.Body)
		return err == nil && j.Type == name
	}
}

// No job waits for the next epoch because the journal lost a fire that the broker had confirmed.
func TestConfirmedFireThatJournalLostIsRepeated(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.due("lost", "q")
	require.NoError(t, s.readAll())
	require.NoError(t, s.step(sc.now))
	sc.loseConfirmed(s, fireOf("lost"))
	sc.busyFor(s, "other", 3*time.Second)
	require.Equal(t, 2, sc.copies()["lost"])
	require.EqualValues(t, 0, s.entries.Total(wire.ScheduledJobs))
}

// The same fire found no queue: then its copy does not stand, and the job comes once.
func TestCopyOfFireThatJournalLostDoesNotStand(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.broker.missing["q"] = true
	sc.due("lost", "q")
	require.NoError(t, s.readAll())
	require.NoError(t, s.step(sc.now))
	sc.loseConfirmed(s, fireOf("lost"))
	require.EqualValues(t, 1, s.entries.Total(wire.Gated))
	delete(sc.broker.missing, "q")
	sc.busyFor(s, "other", 10*time.Second)
	require.Equal(t, 1, sc.copies()["lost"])
	require.EqualValues(t, 0, s.entries.Total(wire.Gated)+s.entries.Total(wire.ScheduledJobs))
}

// A command is answered when the view has its record, not when the broker has confirmed it.
func TestConfirmedRecordThatJournalLostIsRepeated(t *testing.T) {
	sc := newScene(t)
	s := sc.leaderWith("deleted")
	var got []wire.Reply
	cmd := wire.Command{Command: wire.CommandDelete, Stream: wire.ScheduledJobs, JID: "deleted"}
	require.NoError(t, s.core.command(sc.now, cmd, func(r wire.Reply) { got = append(got, r) }))
	sc.loseConfirmed(s, recordOfType(wire.TypeDeleted))
	sc.due("other", "other")
	require.NoError(t, s.readAll())
	require.NoError(t, s.step(sc.now))
	sc.answer(s)
	require.NoError(t, s.readAll())
	for range 3 {
		require.NoError(t, s.step(sc.now))
		if s.entries.Total(wire.ScheduledJobs) > 0 {
			require.Empty(t, got)
		}
		sc.exchange(s)
	}
	require.NoError(t, s.step(sc.now))
	require.Len(t, got, 1)
	require.Equal(t, wire.StatusDone, got[0].Status)
	require.EqualValues(t, 0, s.entries.Total(wire.ScheduledJobs))
	sc.now = sc.now.Add(2 * day)
	sc.busyFor(s, "other", time.Second)
	require.Zero(t, sc.copies()["deleted"])
}

// The job of a fire that was refused is not lost because the journal has the fire, and lost the
// record that takes it back.
func TestConfirmedReturnThatJournalLostIsRepeated(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.broker.full["q"] = true
	sc.due("refused", "q")
	require.NoError(t, s.readAll())
	require.NoError(t, s.step(sc.now))
	sc.exchange(s)
	sc.loseConfirmed(s, recordOfType(wire.TypeReturned))
	sc.busyFor(s, "other", time.Second)
	delete(sc.broker.full, "q")
	sc.busyFor(s, "other", 10*time.Second)
	require.Equal(t, 1, sc.copies()["refused"])
	require.EqualValues(t, 0, s.entries.Total(wire.ScheduledJobs))
}
