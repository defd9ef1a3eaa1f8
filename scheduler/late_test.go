package scheduler

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// follow has another sidecar lead beside one that does not know that yet.
func (sc *scene) follow() *modelSidecar {
	sc.t.Helper()
	sc.broker.conn = nil
	return sc.leader("successor")
}

// A client is answered after the leader's own view has read the record back. A record that is only
// confirmed may be void.
func TestCommandIsAnsweredAfterReadBack(t *testing.T) {
	for name, cmd := range map[string]wire.Command{
		"delete":  {Command: wire.CommandDelete, Stream: wire.ScheduledJobs, JID: "j"},
		"kill":    {Command: wire.CommandKill, Stream: wire.ScheduledJobs, JID: "j"},
		"change":  {Command: wire.CommandChange, Stream: wire.ScheduledJobs, JID: "j", Changes: json.RawMessage(`{"queue":"other"}`)},
		"undo":    {Command: wire.CommandUndo, Stream: wire.ScheduledJobs, JID: "gone"},
		"trigger": {Command: wire.CommandTrigger, Stream: wire.ScheduledJobs, JID: "j"},
		"enqueue": {Command: wire.CommandEnqueue, Key: "k", Job: json.RawMessage(`{"class":"C","queue":"q"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			s := sc.leaderWith("gone")
			sc.ask(s, wire.Command{Command: wire.CommandDelete, Stream: wire.ScheduledJobs, JID: "gone"})
			sc.at("j", "q", sc.now.Add(day))
			sc.rounds(s, 2, nil)

			var replies []wire.Reply
			require.NoError(t, s.core.command(sc.now, cmd, func(r wire.Reply) { replies = append(replies, r) }))
			for range 20 {
				known := len(replies)
				for range 3 { // all that it sends is confirmed, and nothing is read
					sc.answer(s)
					require.NoError(t, s.step(sc.now))
				}
				require.Len(t, replies, known)
				require.NoError(t, s.readAll())
				require.NoError(t, s.step(sc.now))
			}
			require.Len(t, replies, 1)
			require.Less(t, replies[0].Status, 300)
		})
	}
}

// A decision of a leader that was written after the next leader's first record is void. It is not
// answered.
func TestFencedDecisionIsVoid(t *testing.T) {
	sc := newScene(t)
	old := sc.leaderWith("j")
	next := sc.follow()
	answered := false
	remove := wire.Command{Command: wire.CommandDelete, Stream: wire.ScheduledJobs, JID: "j"}
	require.NoError(t, old.core.command(sc.now, remove, func(wire.Reply) { answered = true }))
	sc.answer(old)
	require.NoError(t, old.readAll())
	require.ErrorIs(t, old.step(sc.now), errFenced)
	require.False(t, answered)
	sc.rounds(next, 4, nil)
	require.EqualValues(t, 1, next.entries.Total(wire.ScheduledJobs), "it is pending")
}

// A leader fires after the next one began. The next leader repeats the fire unless it is known to
// have arrived.
func TestLateFireIsRepeatedUnlessItArrived(t *testing.T) {
	for name, lives := range map[string]bool{"its broker lived on": true, "its broker died": false} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			old := sc.leader("a")
			sc.at("j", "q", sc.now.Add(time.Minute))
			sc.rounds(old, 2, nil)
			next := sc.follow()
			sc.now = sc.now.Add(time.Minute)
			require.NoError(t, old.step(sc.now))
			require.NotEmpty(t, old.conn.out, "it fires what is due")
			if !lives {
				next.core.reconciler.verdict = gone
			}
			sc.take(old)
			require.NoError(t, next.readAll())
			sc.rounds(next, 20, nil)
			require.Equal(t, phaseLeading, next.core.phase)
			doubts, err := next.entries.Doubts()
			require.NoError(t, err)
			require.Empty(t, doubts, "it is settled while its successor leads")
			want, settled := 1, wire.TypeDelivered
			if !lives {
				want, settled = 2, wire.OpRefired
			}
			require.Equal(t, map[string]int{"j": want}, sc.copies())
			require.Equal(t, 1, sc.journaled()[settled])
		})
	}
}

// A leader that was followed may still journal that its fire was confirmed. The fire is not in
// doubt then.
func TestLateConfirmSettlesDoubt(t *testing.T) {
	sc := newScene(t)
	old := sc.leader("a")
	sc.at("j", "q", sc.now.Add(time.Minute))
	sc.rounds(old, 2, nil)
	next := sc.follow()
	next.core.reconciler.verdict = gone
	sc.now = sc.now.Add(time.Minute)
	require.NoError(t, old.step(sc.now))
	sc.answer(old)
	require.NoError(t, next.readAll())
	require.NoError(t, next.step(sc.now))
	through := old.core.confirmedNow()
	sc.broker.append(wire.Journal, millrace, wire.JournalRecord{Type: wire.TypeConfirmed, Epoch: through.Epoch, Through: through.Through}.
		Append(wire.Journal, 0, 0))
	sc.rounds(next, 20, nil)
	require.Equal(t, map[string]int{"j": 1}, sc.copies())
}

// Low water is not moved while a late fire is in doubt, because that would settle it without a
// proof.
func TestLowWaterWaitsForLateFires(t *testing.T) {
	sc := newScene(t)
	old := sc.leader("a")
	sc.at("j", "q", sc.now.Add(time.Minute))
	sc.rounds(old, 2, nil)
	next := sc.follow()
	sc.now = sc.now.Add(time.Minute)
	require.NoError(t, old.step(sc.now))
	require.NoError(t, next.core.beginCarry(0))
	sc.take(old)
	require.NoError(t, next.readAll())
	next.core.lateFires.seen = next.entries.Late() // and it is not settled
	sc.rounds(next, 20, nil)
	require.Zero(t, sc.journaled()[wire.TypeLowWater])
	next.core.lateFires.seen = 0
	sc.rounds(next, 40, nil)
	require.Equal(t, 1, sc.journaled()[wire.TypeLowWater])
	require.Equal(t, map[string]int{"j": 1}, sc.copies())
}

// A late fire that found no queue arrived in jobs.gated. It is not fired again, on a cluster
// either.
func TestUnroutableLateFireArrivedInGated(t *testing.T) {
	sc := newScene(t)
	sc.broker.cluster = true
	old := sc.leader("a")
	sc.at("j", "q", sc.now.Add(time.Minute))
	sc.rounds(old, 2, nil)
	next := sc.follow()
	sc.rounds(next, 40, nil)
	sc.now = sc.now.Add(time.Minute)
	require.NoError(t, old.step(sc.now))
	sc.broker.missing["q"] = true
	sc.take(old)
	delete(sc.broker.missing, "q") // it was created meanwhile
	require.NoError(t, next.readAll())
	sc.rounds(next, 40, nil)
	require.Equal(t, map[string]int{"j": 1}, sc.copies())
	doubts, err := next.entries.Doubts()
	require.NoError(t, err)
	require.Empty(t, doubts)
}

// A late burial is void. No later leader treats it as one that never reached the dead jobs.
func TestLateBurialsAreNotRepeated(t *testing.T) {
	sc := newScene(t)
	old := sc.leaderWith("j")
	next := sc.follow()
	kill := wire.Command{Command: wire.CommandKill, Stream: wire.ScheduledJobs, JID: "j"}
	require.NoError(t, old.core.command(sc.now, kill, func(wire.Reply) { require.Fail(t, "it is answered") }))
	require.NoError(t, next.core.beginCarry(day))
	sc.take(old)
	require.NoError(t, next.readAll())
	sc.rounds(next, 2, nil)
	next.lose()
	last := sc.leader("last")
	sc.rounds(last, 5, nil)
	require.Zero(t, last.entries.Total(wire.DeadJobs))
	require.EqualValues(t, 1, last.entries.Total(wire.ScheduledJobs))
}

// A leader that moves low water does not settle late fires that it has not read. They stay in
// doubt.
func TestLowWaterLeavesUnreadLateFires(t *testing.T) {
	sc := newScene(t)
	b := tale{sc.broker}
	old := b.opened()
	e := b.opened()
	b.entry()
	b.fired(old, 9, 0)
	water := wire.JournalRecord{Type: wire.TypeLowWater, LowWater: map[string]int64{wire.Retries: 0}, Needs: e, ReadTo: e + 1}
	b.journal(e, water)
	s := sc.sidecar("s")
	inDoubt := func() int {
		require.NoError(t, s.readAll())
		doubts, err := s.entries.Doubts()
		require.NoError(t, err)
		return len(doubts)
	}
	require.Equal(t, 1, inDoubt())
	water.ReadTo = e + 2
	b.journal(e, water)
	require.Zero(t, inDoubt())
}

// A fire that waits for a verdict is settled once. If its leader journals meanwhile that it came
// back, it is fired as any pending entry.
func TestFireReturnedDuringVerdictIsSettledOnce(t *testing.T) {
	sc := newScene(t)
	sc.broker.cluster = true
	old := sc.leader("a")
	at := sc.due("j", "q")
	require.NoError(t, old.readAll())
	require.NoError(t, old.step(sc.now))
	sc.take(old)
	next := sc.follow()
	require.Equal(t, 1, next.core.inDoubt())
	fired := next.core.reconciler.waiting[0]

	sc.broker.append(wire.Journal, millrace, wire.JournalRecord{Type: wire.TypeReturned, Epoch: fired.Epoch, Seq: fired.Seq,
		Stream: wire.ScheduledJobs, Offset: at, JID: "j"}.Append(wire.Journal, 0, 0))
	require.NoError(t, next.readAll())
	require.NoError(t, next.step(sc.now))
	sc.take(next)
	require.NoError(t, next.readAll())
	require.Equal(t, map[string]int{"j": 2}, sc.copies(), "it is pending, and fired")
	next.core.reconciler.decided(gone, next.core.reconciler.proof)
	sc.rounds(next, 10, nil)
	require.Equal(t, map[string]int{"j": 2}, sc.copies())
	require.Zero(t, next.core.inDoubt())
}

// A command about a fire that waits for a verdict is answered after the fire is settled.
func TestCommandWaitsForVerdict(t *testing.T) {
	sc := newScene(t)
	sc.broker.cluster = true
	old := sc.leader("a")
	sc.fires(old, "j", "q")
	sc.take(old)
	next := sc.follow()
	require.Equal(t, 1, next.core.inDoubt())

	var replies []wire.Reply
	remove := wire.Command{Command: wire.CommandDelete, Stream: wire.ScheduledJobs, JID: "j"}
	require.NoError(t, next.core.command(sc.now, remove, func(r wire.Reply) { replies = append(replies, r) }))
	sc.rounds(next, 3, nil)
	require.Empty(t, replies)
	next.core.reconciler.decided(stands, next.core.reconciler.proof)
	sc.rounds(next, 5, nil)
	require.Len(t, replies, 1)
	require.Equal(t, wire.StatusNotFound, replies[0].Status)
	require.Equal(t, map[string]int{"j": 1}, sc.copies())
}
