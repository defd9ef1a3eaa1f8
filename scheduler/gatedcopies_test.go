package scheduler

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// loseNewestCopy has jobs.gated lose its newest record, which the broker confirms.
func (sc *scene) loseNewestCopy(s *modelSidecar) {
	sc.t.Helper()
	sc.take(s)
	gated := sc.broker.streams[wire.Gated]
	sc.broker.loseCopy(int64(gated.end() - 1))
	sc.exchange(s)
}

// comesOnce requires that a job is delivered once, and that nothing is left of it.
func (sc *scene) comesOnce(s *modelSidecar, jid string) {
	sc.t.Helper()
	sc.rounds(s, 100, nil)
	require.Equal(sc.t, 1, sc.copies()[jid])
	require.EqualValues(sc.t, 0, s.entries.Total(wire.Gated)+s.entries.Total(wire.ScheduledJobs))
	require.Empty(sc.t, s.core.unrouted.waiting)
	require.Empty(sc.t, sc.broker.broken)
}

// A fire finds no queue, and the broker confirms its copy and loses it: the job is not lost.
func TestCopyThatStreamLostIsPublishedAgain(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.broker.missing["q"] = true
	sc.fires(s, "lost", "q")
	sc.loseNewestCopy(s)
	require.EqualValues(t, 0, s.entries.Total(wire.Gated)+s.entries.Total(wire.ScheduledJobs))
	sc.comesOnce(s, "lost")
}

// The second copy may be lost like the first.
func TestCopyThatStreamLostTwiceIsPublishedAgain(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.broker.missing["q"], sc.broker.away["q"] = true, true
	sc.fires(s, "lost", "q")
	sc.loseNewestCopy(s)
	published := false
	for range 100 {
		sc.now = sc.now.Add(200 * time.Millisecond)
		require.NoError(t, s.step(sc.now))
		for _, m := range s.conn.out {
			_, copied := wire.DispatchOf(m.message.Headers)
			published = published || copied && m.message.Key == wire.Gated
		}
		if published {
			break
		}
		sc.exchange(s)
	}
	require.True(t, published)
	sc.loseNewestCopy(s)
	delete(sc.broker.away, "q")
	sc.comesOnce(s, "lost")
}

// The next epoch of the same claim knows what the one before had not seen in jobs.gated.
func TestNextEpochPublishesLostCopyAgain(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.broker.missing["q"] = true
	sc.fires(s, "lost", "q")
	sc.loseNewestCopy(s)
	sc.rounds(s, 2, nil)
	s.leadOn()
	sc.comesOnce(s, "lost")
}

// A copy that shows between two epochs of one claim is not published again.
func TestCopyBetweenEpochsIsNotPublishedAgain(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.broker.missing["q"] = true
	sc.fires(s, "j", "q")
	sc.answer(s)
	s.leadOn()
	require.NotEmpty(t, s.core.unrouted.waiting)
	require.NoError(t, s.readAll())
	sc.comesOnce(s, "j")
}

// What the last epoch of a claim left unanswered counts in the next one.
func TestNextEpochKnowsHoles(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.fires(s, "open", "q")
	open := s.core.ledger.Open()
	require.Positive(t, open)
	s.leadOn()
	require.Len(t, s.core.ledger.Unanswered(), open)
	sc.rounds(s, 20, nil)
	require.Empty(t, s.core.ledger.Unanswered())
	require.Zero(t, s.core.ledger.Hole())
}

// Fires come back long after their copies showed, and are not missed.
func TestFireThatComesBackLateNeedsNoCopy(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.broker.missing["q"] = true
	sc.fires(s, "j", "q")
	sc.take(s)
	sc.broker.bounces = 0
	sc.busyFor(s, "other", 3*time.Minute)
	require.Equal(t, 1, sc.copies()["j"])
	sc.broker.bounces = 1
	sc.comesOnce(s, "j")
	require.Empty(t, s.core.unrouted.needNone, "a probe came back behind it")
}

// A copy that shows is not published again, in whichever order it and the fire come back.
func TestCopyThatShowsIsNotPublishedAgain(t *testing.T) {
	for name, late := range map[string]bool{"the fire is first": false, "the copy is first": true} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			s := sc.leader("a")
			sc.broker.missing["q"], sc.broker.away["q"] = true, true
			sc.fires(s, "j", "q")
			sc.take(s)
			bounced := s.conn.bounced
			require.Len(t, bounced, 1)
			if late {
				s.conn.bounced = nil
			}
			sc.rounds(s, 2, nil)
			if late {
				require.Len(t, s.core.unrouted.needNone, 1)
				s.conn.bounced = bounced
				sc.rounds(s, 1, nil)
			}
			require.Empty(t, s.core.unrouted.waiting)
			end := sc.broker.streams[wire.Gated].end()
			sc.rounds(s, 100, nil)
			require.Equal(t, end, sc.broker.streams[wire.Gated].end(), "nothing more is sent to jobs.gated")
			delete(sc.broker.away, "q")
			sc.comesOnce(s, "j")
		})
	}
}

// A fire that found no queue and was refused is pending: its copy does not matter.
func TestRefusedFireNeedsNoCopy(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.broker.missing["q"], sc.broker.halves = true, 1
	sc.fires(s, "j", "q")
	sc.loseNewestCopy(s)
	sc.comesOnce(s, "j")
}

// While a view lags in jobs.gated, no copy counts as lost.
func TestViewThatLagsLosesNoCopy(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.broker.missing["q"], sc.broker.away["q"] = true, true
	sc.fires(s, "j", "q")
	for range 200 {
		sc.now = sc.now.Add(200 * time.Millisecond)
		require.NoError(t, s.step(sc.now))
		sc.answer(s)
		require.NoError(t, s.read(wire.Journal, 1000))
	}
	copies := 0
	for _, r := range sc.broker.streams[wire.Gated].records {
		if _, ok := wire.DispatchOf(r.Headers); ok {
			copies++
		}
	}
	require.Equal(t, 1, copies)
	delete(sc.broker.away, "q")
	sc.comesOnce(s, "j")
}

// A fire that found no queue is refused while an operation kills jobs. The job dies once at most:
// the copy is settled before anything is done to the entry.
func TestKilledEntryLeavesNoCopy(t *testing.T) {
	for moves := range 60 {
		sc := newScene(t)
		s := sc.leader("a")
		sc.broker.append(wire.Gated, "client", wire.Message{Exchange: wire.ExchangeDirect, Key: "q", Body: []byte(`{"jid":"j","class":"C"}`)})
		require.NoError(t, s.readAll())
		require.NoError(t, s.step(sc.now))
		sc.untilFired(s, "j")
		sc.broker.missing["q"], sc.broker.away["q"], sc.broker.halves = true, true, 1
		sc.take(s)
		refusal := slices.IndexFunc(s.conn.answers, func(a answer) bool { return !a.ack })
		require.GreaterOrEqual(t, refusal, 0)
		late := s.conn.answers[refusal]
		s.conn.answers = slices.Delete(s.conn.answers, refusal, refusal+1)
		op := wire.Operation{Action: wire.CommandKill, Stream: wire.Gated, Filter: &wire.Filter{}}
		cmd := wire.Command{ID: "op", Command: wire.CommandOperate, Bulk: &op}
		refuse := func() { s.conn.answers = append(s.conn.answers, late) }
		ask := func() { require.NoError(t, s.core.command(sc.now, cmd, func(wire.Reply) {})) }
		first, second := ask, refuse
		n := moves
		if moves >= 30 {
			first, second, n = refuse, ask, moves-30
		}
		first()
		sc.single(s, n)
		second()
		sc.rounds(s, 50, nil)
		require.LessOrEqual(t, len(sc.deadJobs()), 1, "%d", moves)
	}
}

// single lets a leader and the broker take some single moves in turn.
func (sc *scene) single(s *modelSidecar, moves int) {
	for i := range moves {
		sc.now = sc.now.Add(10 * time.Millisecond)
		switch i % 4 {
		case 0:
			require.NoError(sc.t, s.step(sc.now))
		case 1:
			sc.broker.process(s.conn, sc.now)
		case 2:
			require.NoError(sc.t, s.answer(sc.now))
		case 3:
			require.NoError(sc.t, s.readAll())
		}
	}
}
