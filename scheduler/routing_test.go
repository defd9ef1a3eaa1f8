package scheduler

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

// untilMisrouted lets a leader work until it finds that its fires do not arrive.
func (sc *scene) untilMisrouted(s *modelSidecar) {
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
	require.FailNow(sc.t, "the leader has not detected it")
}

// exchange lets the broker process what was sent, and the leader read the results.
func (sc *scene) exchange(s *modelSidecar) {
	sc.answer(s)
	require.NoError(sc.t, s.readAll())
}

// answer lets the broker process what was sent, and the leader learn the results.
func (sc *scene) answer(s *modelSidecar) {
	sc.take(s)
	for len(s.conn.answers) > 0 {
		require.NoError(sc.t, s.answer(sc.now))
	}
}

// take lets the broker process what was sent, and the leader learn nothing.
func (sc *scene) take(s *modelSidecar) {
	for len(s.conn.out) > 0 {
		sc.broker.process(s.conn, sc.now)
	}
}

// prove lets a leader work until it knows that all its fires arrived.
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

// A job that was fired after the route broke is fired again. A job that was fired before a probe is
// not. A job that came back fires as any pending one.
func TestMisroutedJobsAreEnteredAgain(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.due("before", "q")
	sc.prove(s)
	sc.broker.full["full"] = true
	sc.due("back", "full")
	sc.rounds(s, 1, nil)
	sc.broker.cut = true
	sc.due("misrouted", "q")
	sc.untilMisrouted(s)
	require.Equal(t, map[string]int{"before": 1}, sc.copies())

	clear(sc.broker.full)
	sc.elect(s, never)
	sc.prove(s)
	require.Equal(t, map[string]int{"before": 1, "back": 1, "misrouted": 1}, sc.copies())
	require.Equal(t, 1, sc.journaled()[wire.TypeMisrouted])
	require.EqualValues(t, -1, s.entries.State().MisroutedAt)

	s.lose()
	sc.elect(s, never)
	sc.prove(s)
	require.Equal(t, map[string]int{"before": 1, "back": 1, "misrouted": 1}, sc.copies(), "it is over")
}

// Only some probes are followed by an unroutable one, which becomes a record of jobs.gated. Fires
// since the last of those are repeated when jobs.gated keeps nothing.
func TestUnroutableProbesAreRare(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	followed := []int64{}
	follow := s.core.setup.follow
	s.core.setup.follow = func(probe int64) {
		followed = append(followed, probe)
		follow(probe)
	}
	sc.prove(s)
	require.Empty(t, followed, "no job was fired")
	const seconds = 20
	for i := range 5 * seconds {
		if i%3 == 0 {
			sc.due(fmt.Sprintf("job-%d", i), "q")
		}
		sc.rounds(s, 1, nil)
	}
	require.Greater(t, s.core.routing.probe, int64(seconds), "the other probes are as frequent as before")
	require.LessOrEqual(t, len(followed), seconds/5)
	require.NotEmpty(t, followed)
	sc.prove(s)
	require.Zero(t, s.core.routing.before.jobs)

	sc.broker.missing["gone"], sc.broker.cutGated = true, true
	sc.due("lost", "gone")
	sc.due("arrived", "q")
	sc.untilMisrouted(s)
	require.Equal(t, 1, sc.copies()["arrived"])
	clear(sc.broker.missing)
	sc.elect(s, never)
	sc.prove(s)
	require.Equal(t, 1, sc.copies()["lost"])
	require.Equal(t, 2, sc.copies()["arrived"], "nothing proves that it arrived")
	require.Equal(t, 1, sc.copies()["job-0"])
}

// The next leader reads the journal again from the last probe that was followed. So each epoch has
// one that was, however short it is.
func TestShortEpochsFollowTheirProbe(t *testing.T) {
	sc := newScene(t)
	for i := range 4 {
		sc.due(fmt.Sprintf("first-%d", i), "q")
		sc.due(fmt.Sprintf("second-%d", i), "q")
		s := sc.leader(fmt.Sprint(i))
		sc.due(fmt.Sprintf("third-%d", i), "q")
		sc.rounds(s, 3, nil)
		state := s.entries.State()
		require.GreaterOrEqual(t, state.RoutedTo, state.Epoch)
		s.lose()
	}
}

// The interval of unroutable probes does not limit a burst.
func TestUnroutableProbesFollowBursts(t *testing.T) {
	w := routing{}
	require.False(t, w.mustFollow(load{jobs: followEach - 1}))
	require.True(t, w.mustFollow(load{jobs: followEach}))
	w.unseen = followEvery
	require.True(t, w.mustFollow(load{jobs: 1}))
	require.False(t, w.mustFollow(load{}))
}

// A job that was already in doubt when the route broke is fired again, although the witness stands.
func TestMisroutedDoubtIsFiredAgain(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.prove(s)
	sc.broker.cut = true
	sc.fires(s, "in-doubt", "q")
	sc.take(s)
	s.lose() // before it has read a confirm

	sc.elect(s, never)
	sc.prove(s)
	require.Equal(t, map[string]int{"in-doubt": 1}, sc.copies())
}

// A leader repairs the route and dies before all misrouted jobs are entered again. The next leader
// enters the rest. A job that was entered twice is fired once.
func TestLeaderCrashBetweenRepairAndFire(t *testing.T) {
	for rounds := range 12 {
		sc := newScene(t)
		s := sc.leader("a")
		sc.prove(s)
		sc.broker.cut = true
		sc.due("x", "q")
		sc.due("y", "q")
		sc.untilMisrouted(s)
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

// A burial that the journal has and dead_jobs lacks is repeated.
func TestMisroutedBurialIsRepeated(t *testing.T) {
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
	sc.untilMisrouted(s)
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

// A leader dies after it has entered such a dead job again, and before the journal says that the
// route is intact. The next leader examines it again: there is still one dead job.
func TestBurialsAreRepeatedOnce(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	at := sc.at("killed", "q", sc.now.Add(1000*probeEvery))
	sc.prove(s)
	require.NoError(t, s.readAll())
	sc.broker.cutBury = true
	cmd := wire.Command{Command: wire.CommandKill, Stream: wire.ScheduledJobs, JID: "killed", Offset: &at}
	require.NoError(t, s.core.command(sc.now, cmd, func(wire.Reply) {}))
	sc.untilMisrouted(s)
	for range 3 {
		sc.elect(s, never)
		sc.rounds(s, 8, nil)
		require.EqualValues(t, 1, s.entries.Total(wire.DeadJobs))
		s.lose()
	}
}

// A kill that was undone is not buried again, although its dead job is gone and the leader died
// before it could journal the undo.
func TestBurialOfUndoneKillIsNotRepeated(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.prove(s)
	sc.broker.append(wire.DeadJobs, "client", wire.Message{Body: []byte(`{"jid":"dead","died_at":1,"job":{"class":"C","queue":"q"}}`)})
	sc.scheduled("killed", sc.now.Add(day), "")
	sc.due("probed", "q")
	sc.rounds(s, 2, nil)
	cmd := wire.Command{Command: wire.CommandKill, Stream: wire.ScheduledJobs, JID: "killed"}
	require.NoError(t, s.core.command(sc.now, cmd, func(wire.Reply) {}))
	for range 3 { // it is buried and journaled, and it is too early for a probe
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

// The fires since the last probe are bounded by what can be fired again.
func TestUnprobedFiresAreBounded(t *testing.T) {
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

// A carry-over leaves fires in the journal that are not proven to have arrived.
func TestLowWaterKeepsUnprovenFires(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.prove(s)
	sc.broker.cut = true
	sc.due("misrouted", "q")
	sc.rounds(s, 3, nil)
	require.NoError(t, s.core.beginCarry(0))
	sc.rounds(s, 11, nil)
	require.Equal(t, 1, sc.journaled()[wire.TypeLowWater])
	for _, r := range sc.broker.streams[wire.Journal].records {
		if d, fired := wire.DispatchOf(r.Headers); fired && d.JIDTag == "misrouted" {
			require.LessOrEqual(t, s.entries.State().Needs, r.Offset)
		}
	}
}

// A slow broker or view loses nothing. Only a probe that was confirmed, and did not arrive, shows
// that the route is broken.
func TestLateProbeIsNotMisrouted(t *testing.T) {
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
	require.False(t, s.core.routing.out, "it has arrived")
	require.Zero(t, s.core.routing.lost)
	sc.due("b", "q")
	sc.rounds(s, 5, nil)
	require.Greater(t, s.core.routing.probe, late, "it has arrived, and the next one is on its way")
}

// The publish that follows a probe must be confirmed too. A broker that is slow to confirm one is
// slow with the other.
func TestProbeFollowUpHasSameTimeout(t *testing.T) {
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
			s.conn.arrived = nil // the leader gets it when the publish that follows the probe is confirmed
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

// A probe that arrived, and that the view does not have, is lost only if later records of the
// journal are there.
func TestProbeMissingFromJournal(t *testing.T) {
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
	for range probeAlways/ledger.MaxSleep - 1 { // a fire would be found missing sooner
		sc.now = sc.now.Add(ledger.MaxSleep)
		require.NoError(t, s.step(sc.now))
		sc.exchange(s)
	}
	sc.untilMisrouted(s)
}
