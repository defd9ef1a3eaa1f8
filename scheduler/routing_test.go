package scheduler

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// untilAstray lets a leader work until it finds that what it fires does not arrive.
func (sc *scene) untilAstray(s *modelSidecar) {
	for range 100 {
		sc.now = sc.now.Add(probeEvery)
		err := s.step(sc.now)
		if errors.Is(err, errMisrouted) {
			s.disconnect()
			return
		}
		require.NoError(sc.t, err)
		sc.exchange(s)
	}
	require.FailNow(sc.t, "it has not noticed")
}

// exchange lets the broker take in what was sent, and the leader read what comes of it.
func (sc *scene) exchange(s *modelSidecar) {
	sc.answer(s)
	require.NoError(sc.t, s.readAll())
}

// answer lets the broker take in what was sent, and the leader know what became of it.
func (sc *scene) answer(s *modelSidecar) {
	sc.take(s)
	for len(s.conn.answers) > 0 {
		require.NoError(sc.t, s.answer(sc.now))
	}
}

// take lets the broker take in what was sent, and the leader know nothing of it.
func (sc *scene) take(s *modelSidecar) {
	for len(s.conn.out) > 0 {
		sc.broker.process(s.conn, sc.now)
	}
}

// prove lets a leader work until it knows that all that it fired arrived.
func (sc *scene) prove(s *modelSidecar) {
	sc.rounds(s, 12, nil)
	for range 40 {
		sc.rounds(s, 1, nil)
		if s.core.phase == phaseLeading && s.core.allProven() && !s.core.routing.hasNews() {
			return
		}
	}
	require.FailNow(sc.t, "nothing is proven")
}

// What was fired after the way was broken is fired again, what a probe had followed before is not,
// and what came back fires by itself.
func TestWhatWentAstrayIsEnteredAgain(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.due("before", "q")
	sc.prove(s)
	sc.broker.full["full"] = true
	sc.due("back", "full")
	sc.rounds(s, 1, nil)
	sc.broker.cut = true
	sc.due("astray", "q")
	sc.untilAstray(s)
	require.Equal(t, map[string]int{"before": 1}, sc.copies())

	clear(sc.broker.full)
	sc.elect(s, never)
	sc.prove(s)
	require.Equal(t, map[string]int{"before": 1, "back": 1, "astray": 1}, sc.copies())
	require.Equal(t, 1, sc.journaled()[wire.TypeAstray])
	require.EqualValues(t, -1, s.entries.State().MisroutedAt)

	s.lose()
	sc.elect(s, never)
	sc.prove(s)
	require.Equal(t, map[string]int{"before": 1, "back": 1, "astray": 1}, sc.copies(), "it is over")
}

// Only some probes are followed by one to no queue, which becomes a record of jobs.gated: what was
// fired since the last of those is fired again when jobs.gated keeps nothing.
func TestProbesToNoQueueAreRare(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	followed := []int64{}
	follow := s.core.setup.follow
	s.core.setup.follow = func(probe int64) {
		followed = append(followed, probe)
		follow(probe)
	}
	sc.prove(s)
	require.Empty(t, followed, "nothing was fired")
	const seconds = 20
	for i := range 5 * seconds {
		if i%3 == 0 {
			sc.due(fmt.Sprintf("job-%d", i), "q")
		}
		sc.rounds(s, 1, nil)
	}
	require.Greater(t, s.core.routing.probe, int64(seconds), "the other probes are as frequent as ever")
	require.LessOrEqual(t, len(followed), seconds/5)
	require.NotEmpty(t, followed)
	sc.prove(s)
	require.Zero(t, s.core.routing.before.jobs)

	sc.broker.missing["gone"], sc.broker.cutGated = true, true
	sc.due("lost", "gone")
	sc.due("arrived", "q")
	sc.untilAstray(s)
	require.Equal(t, 1, sc.copies()["arrived"])
	clear(sc.broker.missing)
	sc.elect(s, never)
	sc.prove(s)
	require.Equal(t, 1, sc.copies()["lost"])
	require.Equal(t, 2, sc.copies()["arrived"], "nothing says that it arrived")
	require.Equal(t, 1, sc.copies()["job-0"])
}

// A burst is not limited by the time between probes to no queue.
func TestProbesToNoQueueFollowBursts(t *testing.T) {
	w := routing{}
	require.False(t, w.mustFollow(load{jobs: followEach - 1}))
	require.True(t, w.mustFollow(load{jobs: followEach}))
	w.unseen = followEvery
	require.True(t, w.mustFollow(load{jobs: 1}))
	require.False(t, w.mustFollow(load{}))
}

// A job whose fire was in doubt when the way broke is in doubt all the more: the witness stands,
// and it is fired again.
func TestDoubtsThatWentAstray(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.prove(s)
	sc.broker.cut = true
	sc.due("doubtful", "q")
	require.NoError(t, s.readAll())
	require.NoError(t, s.step(sc.now))
	sc.take(s)
	s.lose() // before it has read a confirm

	sc.elect(s, never)
	sc.prove(s)
	require.Equal(t, map[string]int{"doubtful": 1}, sc.copies())
}

// Who mends the way and dies before all is entered again leaves that to the next: what was entered
// twice is fired once.
func TestALeaderDiesBetweenMendingAndFiring(t *testing.T) {
	for rounds := range 12 {
		sc := newScene(t)
		s := sc.leader("a")
		sc.prove(s)
		sc.broker.cut = true
		sc.due("x", "q")
		sc.due("y", "q")
		sc.untilAstray(s)
		sc.elect(s, never)
		sc.rounds(s, rounds, nil)
		early := sc.copies()
		s.lose()
		sc.elect(s, never)
		sc.prove(s)
		for _, jid := range []string{"x", "y"} {
			require.Equal(t, 1, sc.copies()[jid], "after %d rounds, with %v before", rounds, early)
		}
	}
}

// A dead job that never reached dead_jobs, though the journal has its burial, is buried again.
func TestBurialsThatWentAstray(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	at := sc.at("killed", "q", sc.now.Add(1000*probeEvery))
	also := sc.at("arrived", "q", sc.now.Add(1000*probeEvery))
	sc.prove(s)
	kill := func(jid string, offset int64) {
		require.NoError(t, s.readAll())
		cmd := wire.Command{ID: jid, Command: wire.CommandKill, Stream: wire.ScheduledJobs, JID: jid, Offset: &offset}
		require.NoError(t, s.core.command(sc.now, cmd, func(wire.Reply) {}))
	}
	kill("arrived", also)
	sc.exchange(s)
	sc.broker.cutBury = true
	kill("killed", at)
	sc.untilAstray(s)
	require.EqualValues(t, 1, s.entries.Total(wire.DeadJobs))

	sc.elect(s, never)
	sc.prove(s)
	require.EqualValues(t, 2, s.entries.Total(wire.DeadJobs))
	for _, jid := range []string{"killed", "arrived"} {
		dead, err := s.entries.Find(wire.DeadJobs, jid)
		require.NoError(t, err)
		require.Len(t, dead, 1, jid)
	}
}

// A leader that dies once it has entered such a dead job again, and before the journal has that the
// way stands, has the next one look at it anew: it stays one.
func TestBurialsAreRepeatedOnce(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	at := sc.at("killed", "q", sc.now.Add(1000*probeEvery))
	sc.prove(s)
	require.NoError(t, s.readAll())
	sc.broker.cutBury = true
	cmd := wire.Command{Command: wire.CommandKill, Stream: wire.ScheduledJobs, JID: "killed", Offset: &at}
	require.NoError(t, s.core.command(sc.now, cmd, func(wire.Reply) {}))
	sc.untilAstray(s)
	for range 3 {
		sc.elect(s, never)
		sc.rounds(s, 8, nil)
		require.EqualValues(t, 1, s.entries.Total(wire.DeadJobs))
		s.lose()
	}
}

// A kill that was undone is not buried again, though its dead job is gone and the leader died
// before it could tell the journal.
func TestBurialsOfUndoneKillsAreNotRepeated(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.prove(s)
	sc.broker.append(wire.DeadJobs, "client", wire.Message{Body: []byte(`{"jid":"dead","died_at":1,"job":{"class":"C","queue":"q"}}`)})
	sc.scheduled("killed", sc.now.Add(day), "")
	sc.due("probed", "q")
	sc.rounds(s, 2, nil)
	cmd := wire.Command{Command: wire.CommandKill, Stream: wire.ScheduledJobs, JID: "killed"}
	require.NoError(t, s.core.command(sc.now, cmd, func(wire.Reply) {}))
	for range 3 { // it is buried and told, and it is too early for a probe
		require.NoError(t, s.step(sc.now))
		sc.exchange(s)
	}
	cmd.Command = wire.CommandUndo
	require.NoError(t, s.core.command(sc.now, cmd, func(wire.Reply) {}))
	sc.take(s)
	sc.broker.streams[wire.DeadJobs] = &modelStream{generation: 1}
	s.disconnect()
	sc.elect(s, never)
	sc.prove(s)
	require.EqualValues(t, 1, s.entries.Total(wire.ScheduledJobs))
	require.Zero(t, s.entries.Total(wire.DeadJobs))
}

// No more is fired than can be fired again, until a probe has arrived.
func TestWhatIsUnprovenIsBounded(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.prove(s)
	for range maxUnproven {
		s.core.routing.sent(1, 0, false)
	}
	require.False(t, s.core.ledger.Room())
	sc.due("late", "q")
	sc.prove(s)
	require.Equal(t, map[string]int{"late": 1}, sc.copies())

	s.core.routing.sent(1, maxUnprovenBytes, false)
	require.False(t, s.core.ledger.Room())
}

// Carrying over leaves in the journal what was fired and is not proven to have arrived.
func TestLowWaterKeepsWhatMayHaveGoneAstray(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.prove(s)
	sc.broker.cut = true
	sc.due("astray", "q")
	sc.rounds(s, 3, nil)
	require.NoError(t, s.core.beginCarry(0))
	sc.rounds(s, 11, nil)
	require.Equal(t, 1, sc.journaled()[wire.TypeLowWater])
	for _, r := range sc.broker.streams[wire.Journal].records {
		if d, fired := wire.DeedOf(r.Headers); fired && d.JIDTag == "astray" {
			require.LessOrEqual(t, s.entries.State().Needs, r.Offset)
		}
	}
}

// A broker or a view that is slow loses nothing: only a probe that was confirmed, and does not
// show, says that the way is broken.
func TestALateProbeIsNotAstray(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.prove(s)
	sc.due("a", "q")
	require.NoError(t, s.readAll())
	wait := func() {
		for range 60 {
			sc.now = sc.now.Add(probeEvery)
			require.NoError(t, s.step(sc.now))
		}
	}
	wait() // the broker confirms nothing
	require.True(t, s.core.routing.out, "a probe is on its way")
	require.False(t, s.core.routing.taken)
	late := s.core.routing.probe
	sc.take(s)
	s.core.setup.probeTimeout = func() time.Duration { return time.Hour } // the view is behind
	sc.answer(s)
	wait()
	require.True(t, s.core.routing.taken)
	require.True(t, s.core.routing.out)
	require.NoError(t, s.readAll())
	require.NoError(t, s.step(sc.now))
	require.Greater(t, s.core.routing.probe, late, "it has arrived, and the next one is on its way")
}

// What follows a probe must be confirmed too, and a broker that is slow to confirm the one is slow
// with the other.
func TestWhatFollowsAProbeMayTakeAsLong(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.prove(s)
	sc.due("late", "q")
	wait := func() {
		for range 40 {
			sc.now = sc.now.Add(probeEvery)
			require.NoError(t, s.step(sc.now))
			sc.take(s)
			require.NoError(t, s.readAll())
			s.conn.arrived = nil // which is told when what followed the probe is confirmed
		}
	}
	wait()
	sc.exchange(s)
	wait()
	require.True(t, s.core.routing.out)
	s.core.routing.arrived(s.core.routing.probe)
	sc.prove(s)
	require.Equal(t, map[string]int{"late": 1}, sc.copies())
}

// A probe that came out, and that the view does not show, was lost only if what went to the journal
// after it is there.
func TestAJournalThatLacksAProbe(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.prove(s)
	probes := s.core.routing.probe
	sc.due("a", "q")
	require.NoError(t, s.readAll())
	for range 120 { // the view is behind
		sc.now = sc.now.Add(probeEvery)
		require.NoError(t, s.step(sc.now))
		sc.answer(s)
	}
	require.Equal(t, probes+1, s.core.routing.probe)
	require.True(t, s.core.routing.out)
	require.Positive(t, s.core.routing.asked)
	sc.prove(s)

	sc.broker.muted = true
	sc.due("b", "q")
	sc.untilAstray(s)
}
