package scheduler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

// loseConfirmed has the broker confirm all that a leader sent, and lose some of it from the
// journal. RabbitMQ 3.10 does so when the node of the journal's leader dies.
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

// endsFor lets a leader work until its epoch ends because the journal has lost something, and
// another one lead.
func (sc *scene) endsFor(s *modelSidecar) *modelSidecar {
	sc.t.Helper()
	var err error
	for end := sc.now.Add(3 * time.Second); err == nil && sc.now.Before(end); {
		sc.now = sc.now.Add(200 * time.Millisecond)
		if err = s.step(sc.now); err == nil {
			sc.exchange(s)
		}
	}
	require.ErrorIs(sc.t, err, ledger.ErrLost)
	s.lose()
	next := sc.sidecar("next")
	sc.elect(next, func(queue string) bool { return sc.broker.full[queue] })
	sc.rounds(next, 8, nil)
	require.Equal(sc.t, phaseLeading, next.core.phase)
	return next
}

// A job whose confirmed fire the journal lost is pending: the leader that fired it does not look
// at it again, so another epoch begins.
func TestConfirmedFireThatJournalLostIsRepeated(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.fires(s, "lost", "q")
	sc.loseConfirmed(s, fireOf("lost"))
	next := sc.endsFor(s)
	sc.rounds(next, 5, nil)
	require.Equal(t, 2, sc.copies()["lost"])
	require.EqualValues(t, 0, next.entries.Total(wire.ScheduledJobs))
}

// A fire that the journal lost found no queue: the entry stands, its copy does not, and the job
// comes once.
func TestCopyOfFireThatJournalLostDoesNotStand(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.broker.missing["q"] = true
	sc.fires(s, "lost", "q")
	sc.loseConfirmed(s, fireOf("lost"))
	require.EqualValues(t, 1, s.entries.Total(wire.Gated))
	next := sc.endsFor(s)
	delete(sc.broker.missing, "q")
	sc.busyFor(next, "other", 10*time.Second)
	require.Equal(t, 1, sc.copies()["lost"])
	require.EqualValues(t, 0, next.entries.Total(wire.Gated)+next.entries.Total(wire.ScheduledJobs))
}

// A command is not answered as done whose record the broker confirmed and the journal lost.
func TestCommandIsNotDoneThatJournalLost(t *testing.T) {
	for name, lost := range map[string]func(*wire.Record) bool{
		wire.CommandDelete:  recordOfType(wire.TypeDeleted),
		wire.CommandTrigger: fireOf("j"),
		wire.CommandKill:    recordOfType(wire.TypeKilled),
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			s := sc.leaderWith("j")
			cmd := wire.Command{Command: name, Stream: wire.ScheduledJobs, JID: "j"}
			require.NoError(t, s.core.command(sc.now, cmd, func(wire.Reply) { require.Fail(t, "it is answered") }))
			if name == wire.CommandKill { // its record follows the burial
				sc.exchange(s)
				require.NoError(t, s.step(sc.now))
			}
			sc.loseConfirmed(s, lost)
			next := sc.endsFor(s)
			if name == wire.CommandKill { // the burial is in the journal
				require.EqualValues(t, 0, next.entries.Total(wire.ScheduledJobs))
				require.Len(t, sc.deadJobs(), 1)
				require.Equal(t, 1, sc.journaled()[wire.TypeKilled])
				return
			}
			require.EqualValues(t, 1, next.entries.Total(wire.ScheduledJobs), "it is as before")
		})
	}
}

// A burial that both streams lose does not lose its job.
func TestBurialThatBothStreamsLostIsNotDone(t *testing.T) {
	sc := newScene(t)
	s := sc.leaderWith("j")
	kill := wire.Command{Command: wire.CommandKill, Stream: wire.ScheduledJobs, JID: "j"}
	require.NoError(t, s.core.command(sc.now, kill, func(wire.Reply) { require.Fail(t, "it is answered") }))
	sc.broker.cutBury = true // it does not reach the dead jobs
	sc.loseConfirmed(s, fireOf("j"))
	sc.broker.cutBury = false
	next := sc.endsFor(s)
	require.EqualValues(t, 1, next.entries.Total(wire.ScheduledJobs))
}

// The job of a fire that was refused is not lost because the journal has the fire, and lost the
// record that takes it back.
func TestRefusedFireOfWhichJournalLostReturn(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.broker.full["q"] = true
	sc.fires(s, "refused", "q")
	sc.exchange(s)
	sc.loseConfirmed(s, recordOfType(wire.TypeReturned))
	next := sc.endsFor(s)
	delete(sc.broker.full, "q")
	sc.busyFor(next, "other", 10*time.Second)
	require.Equal(t, 1, sc.copies()["refused"])
	require.EqualValues(t, 0, next.entries.Total(wire.ScheduledJobs))
}
