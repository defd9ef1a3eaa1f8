package scheduler

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// loseInJournal has the broker process what a leader sent, except one fire: it reaches its queue,
// but the journal does not get it and the leader gets no answer. This happens when the process of
// the journal's leader dies.
func (sc *scene) loseInJournal(s *modelSidecar, jid string) {
	sc.t.Helper()
	sc.take(s)
	at := slices.IndexFunc(s.conn.answers, func(a answer) bool { return a.copy != nil && a.copy.headers.JIDTag == wire.JIDTag(jid) })
	require.GreaterOrEqual(sc.t, at, 0)
	lost := s.conn.answers[at].copy
	s.conn.answers = slices.Delete(s.conn.answers, at, at+1)
	sc.broker.unjournal(lost)
	for len(s.conn.answers) > 0 {
		require.NoError(sc.t, s.answer(sc.now))
	}
	require.NoError(sc.t, s.readAll())
}

// busyFor has one job due to a queue in each second.
func (sc *scene) busyFor(s *modelSidecar, queue string, d time.Duration) {
	sc.t.Helper()
	for end := sc.now.Add(d); sc.now.Before(end); {
		sc.due(fmt.Sprint("busy-", sc.now.UnixNano()), queue)
		require.NoError(sc.t, s.readAll())
		sc.silentFor(s, "none", time.Second)
	}
}

// A fire that its queue has and the journal lacks does not count as delivered, even if the witness
// stands: no later leader would know of it.
func TestFireMissingFromJournalIsRepeated(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.fires(s, "lost", "q")
	sc.loseInJournal(s, "lost")
	sc.busyFor(s, "q", ledger.GiveUpAfter+10*time.Second)
	require.Equal(t, 2, sc.copies()["lost"])
	require.EqualValues(t, 0, s.entries.Total(wire.ScheduledJobs))
	require.Zero(t, s.core.ledger.Open())
}

// A command about such a job is not answered as done, and an operation does not count it.
func TestCommandIsNotDoneIfFireMissesJournal(t *testing.T) {
	sc := newScene(t)
	s := sc.leaderWith("lost")
	sc.at("counted", "q", sc.now.Add(day))
	sc.rounds(s, 2, nil)
	var got []wire.Reply
	cmd := wire.Command{Command: wire.CommandTrigger, Stream: wire.ScheduledJobs, JID: "lost"}
	require.NoError(t, s.core.command(sc.now, cmd, func(r wire.Reply) { got = append(got, r) }))
	sc.loseInJournal(s, "lost")
	sc.busyFor(s, "q", ledger.GiveUpAfter+10*time.Second)
	require.Len(t, got, 1)
	require.Equal(t, wire.StatusUnavailable, got[0].Status)
	require.EqualValues(t, 2, s.entries.Total(wire.ScheduledJobs))

	op := wire.Command{ID: "op", Command: wire.CommandOperate, Bulk: &wire.Operation{Action: wire.CommandTrigger, Stream: wire.ScheduledJobs, JIDs: []string{"counted"}}}
	require.NoError(t, s.core.command(sc.now, op, func(wire.Reply) {}))
	sc.untilFired(s, "counted")
	sc.loseInJournal(s, "counted")
	sc.busyFor(s, "q", ledger.GiveUpAfter+10*time.Second)
	o, known := s.entries.Operation("op")
	require.True(t, known)
	require.Equal(t, []any{wire.OperationDone, int64(0), int64(1)}, []any{o.State, o.Done, o.Failed})
}

// untilFired lets a leader work until it has sent a job that the broker has not processed yet.
func (sc *scene) untilFired(s *modelSidecar, jid string) {
	sc.t.Helper()
	for !slices.ContainsFunc(s.conn.out, func(m sent) bool { return m.message.MessageID == jid }) {
		sc.exchange(s)
		sc.now = sc.now.Add(200 * time.Millisecond)
		require.NoError(sc.t, s.step(sc.now))
	}
}

// fallsSilent has a queue never answer its newest job, while another queue answers.
func (sc *scene) fallsSilent(s *modelSidecar, jid, queue string) {
	sc.t.Helper()
	sc.due(jid, queue)
	require.NoError(sc.t, s.readAll())
	sc.silentFor(s, queue, 200*time.Millisecond)
	sc.busyFor(s, "other", 3*time.Second)
	require.Equal(sc.t, 1, s.core.queues.silentQueues())
}

// passOver has a queue answer all fires to it except one.
func (sc *scene) passOver(s *modelSidecar, jid, queue string) {
	sc.t.Helper()
	sc.due(jid, queue)
	require.NoError(sc.t, s.readAll())
	sc.silentFor(s, queue, 200*time.Millisecond)
	sc.busyFor(s, queue, 3*time.Second)
	require.Equal(sc.t, 1, s.core.ledger.Aside())
}

// A queue on trial resumes although one of its fires has no answer.
func TestTrialIgnoresFireThatIsPassedOver(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.passOver(s, "lost", "q")
	sc.broker.full["q"] = true
	sc.due("refused", "q")
	require.NoError(t, s.readAll())
	sc.silentFor(s, "none", 400*time.Millisecond)
	require.Len(t, s.core.queues.heldQueues(), 1)
	sc.broker.full["q"] = false
	sc.silentFor(s, "none", 2*firstHold)
	require.Equal(t, 1, sc.copies()["refused"])
	require.Equal(t, 1, s.core.ledger.Aside())
}

// A queue whose window is full of unanswered fires resumes when they are given up, even if they
// were triggered before they were due.
func TestFullWindowResumesAfterGiveUp(t *testing.T) {
	sc := newScene(t)
	sc.broker.window = 2
	s := sc.leader("a")
	limit := s.core.setup.window("q")
	for i := range limit + 1 {
		sc.at(fmt.Sprint("lost-", i), "q", sc.now.Add(day))
	}
	sc.rounds(s, 2, nil)
	for i := range limit + 1 {
		prefix := "q"
		if i == limit {
			prefix = "none" // this one is answered
		}
		cmd := wire.Command{Command: wire.CommandTrigger, Stream: wire.ScheduledJobs, JID: fmt.Sprint("lost-", i)}
		require.NoError(t, s.core.command(sc.now, cmd, func(wire.Reply) {}))
		sc.unanswered(s, prefix)
	}
	sc.broker.witness = ""
	at := sc.due("waits", "q")
	require.NoError(t, s.readAll())
	sc.silentFor(s, "none", ledger.GiveUpAfter-5*time.Second)
	q := s.core.queues.of("q")
	require.True(t, q.full)
	q.ahead = []tracker.DueKey{{At: sc.now, Stream: wire.ScheduledJobs, Offset: at}} // as if it had been looked up before the window was full
	require.Zero(t, sc.copies()["waits"])
	sc.silentFor(s, "none", 12*time.Second)
	require.Equal(t, 1, sc.copies()["waits"])
}

// The fire that is lost may be the newest of its queue. One more job shows whether the queue
// answers.
func TestSilentQueueGetsOneTrialJob(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.fallsSilent(s, "lost", "q")
	for i := range 10 {
		sc.due(fmt.Sprint("later-", i), "q")
	}
	require.NoError(t, s.readAll())
	sc.silentFor(s, "none", 2*time.Second)
	require.Zero(t, s.core.queues.silentQueues())
	require.Equal(t, 1, sc.copies()["later-9"])
	require.Equal(t, 1, sc.copies()["lost"])
}

// A fire that is given up leaves the count of fires that are set aside immediately. The window of
// other queues does not grow for it.
func TestGiveUpKeepsWindowSize(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.passOver(s, "lost", "q")
	sc.now = sc.now.Add(ledger.GiveUpAfter)
	s.core.ledger.Advance(ledger.GiveUpAfter)
	require.NoError(t, s.core.silence.giveUpOn(sc.now, "q", true))
	require.Zero(t, s.core.ledger.Aside())
	require.Zero(t, s.core.ledger.AsideBytes())
	require.Zero(t, s.core.queues.of("q").Aside)
}

// Operations and the carry-over do not wait for a queue that answers nothing.
func TestSilentQueueDoesNotStopOperations(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	for i := range operationFlight {
		sc.due(fmt.Sprint("j-", i), "silent")
	}
	sc.at("later", "q", sc.now.Add(day))
	require.NoError(t, s.readAll())
	sc.silentFor(s, "silent", 4*time.Second)
	require.GreaterOrEqual(t, s.core.ledger.Aside(), operationFlight)
	cmd := wire.Command{ID: "op", Command: wire.CommandOperate, Bulk: &wire.Operation{Action: wire.CommandDelete, Stream: wire.ScheduledJobs, JIDs: []string{"later"}}}
	require.NoError(t, s.core.command(sc.now, cmd, func(wire.Reply) {}))
	sc.silentFor(s, "silent", 3*time.Second)
	o, _ := s.entries.Operation("op")
	require.Equal(t, wire.OperationDone, o.State)
}

// dropAnswers has the broker process what was sent, and never answer what pick chooses.
func (sc *scene) dropAnswers(s *modelSidecar, pick func(wire.Message) bool) {
	dropped := map[uint64]bool{}
	for _, m := range s.conn.out {
		dropped[m.tag] = pick(m.message)
	}
	sc.take(s)
	s.conn.answers = slices.DeleteFunc(s.conn.answers, func(a answer) bool { return dropped[a.tag] })
	for len(s.conn.answers) > 0 {
		require.NoError(sc.t, s.answer(sc.now))
	}
	require.NoError(sc.t, s.readAll())
}

func isConfirmed(m wire.Message) bool {
	r, err := wire.ParseJournal(m.Body)
	return err == nil && r.Type == wire.TypeConfirmed && m.Key == wire.Journal
}

func isProbe(m wire.Message) bool {
	_, is := wire.ProbeOf(m.Headers)
	return is
}

// A record that only lists confirms, or a probe, is replaced if it has no answer. Neither ends the
// epoch.
func TestUnansweredRecordIsReplaced(t *testing.T) {
	for name, pick := range map[string]func(wire.Message) bool{"confirmed": isConfirmed, "probe": isProbe} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			s := sc.leader("a")
			lost := 0
			for i := range 30 {
				if i%3 == 0 {
					sc.due(fmt.Sprint("j-", i), "q")
				}
				require.NoError(t, s.readAll())
				sc.now = sc.now.Add(200 * time.Millisecond)
				require.NoError(t, s.step(sc.now))
				sc.dropAnswers(s, func(m wire.Message) bool {
					drops := pick(m) && lost == 0
					if drops {
						lost++
					}
					return drops
				})
			}
			require.Equal(t, 1, lost)
			require.Zero(t, s.core.routing.lost)
			_, any := s.core.ledger.Oldest()
			require.False(t, any, "nothing that would end the epoch is left")
			sc.prove(s)
			doubts, err := s.entries.Doubts()
			require.NoError(t, err)
			require.Empty(t, doubts)
		})
	}
}

// The epoch ends if the broker answers no probe, as if it answered nothing else.
func TestEpochEndsWithoutProbeAnswers(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	for range 10 * ledger.GiveUpAfter / time.Second {
		sc.due(fmt.Sprint("j-", sc.now.UnixNano()), "q")
		require.NoError(t, s.readAll())
		sc.now = sc.now.Add(200 * time.Millisecond)
		if err := s.step(sc.now); err != nil {
			require.ErrorIs(t, err, errResigned)
			return
		}
		s.conn.out = slices.DeleteFunc(s.conn.out, func(m sent) bool { return isProbe(m.message) })
		sc.exchange(s)
	}
	require.FailNow(t, "it has not ended")
}

// The same if nothing follows for a long time: a record is sent after it.
func TestUnansweredLastRecordIsFollowed(t *testing.T) {
	for name, pick := range map[string]func(wire.Message) bool{"confirmed": isConfirmed, "probe": isProbe} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			s := sc.leader("a")
			sc.prove(s)
			lost := 0
			for i := range 200 { // 40 s
				if i%50 == 0 {
					sc.due(fmt.Sprint("j-", i), "q")
				}
				require.NoError(t, s.readAll())
				sc.now = sc.now.Add(200 * time.Millisecond)
				require.NoError(t, s.step(sc.now))
				s.conn.out = slices.DeleteFunc(s.conn.out, func(m sent) bool {
					drops := pick(m.message) && lost == 0
					if drops {
						lost++
					}
					return drops
				})
				sc.exchange(s)
				if i%50 == 45 {
					require.Equal(t, 1, sc.copies()[fmt.Sprint("j-", i-45)])
					_, any := s.core.ledger.Oldest()
					require.False(t, any)
				}
			}
			require.Equal(t, 1, lost)
		})
	}
}

// A fire is settled, and its queue resumes, even if it is the last one that was sent.
func TestUnansweredLastFireIsSettled(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.fires(s, "lost", "q")
	sc.loseInJournal(s, "lost")
	sc.silentFor(s, "none", 5*time.Second)
	sc.due("later", "q")
	require.NoError(t, s.readAll())
	sc.silentFor(s, "none", time.Second)
	require.Equal(t, 1, sc.copies()["later"], "one more job shows that the queue answers")
	sc.silentFor(s, "none", ledger.GiveUpAfter+10*time.Second)
	require.Equal(t, 2, sc.copies()["lost"])
	require.Zero(t, s.core.ledger.Open())

	sc.fires(s, "alone", "r")
	sc.loseInJournal(s, "alone")
	sc.silentFor(s, "none", ledger.GiveUpAfter+15*time.Second)
	require.Equal(t, 2, sc.copies()["alone"])
	require.Zero(t, s.core.ledger.Open())
}

// A fire that a new leader repeats may be lost as well. Its entry is pending again, instead of in
// doubt for as long as that leader lives.
func TestRepeatedFireMissingFromJournalIsReturned(t *testing.T) {
	sc := newScene(t)
	s := sc.leaderWith("x")
	require.NoError(t, s.core.command(sc.now, wire.Command{Command: wire.CommandTrigger, Stream: wire.ScheduledJobs, JID: "x"}, func(wire.Reply) {}))
	sc.inFlight(s)
	sc.broker.witness = ""
	fresh := sc.sidecar("fresh")
	sc.elect(fresh, never)
	sc.untilFired(fresh, "x")
	sc.loseInJournal(fresh, "x")
	before := sc.copies()["x"]
	sc.busyFor(fresh, "q", ledger.GiveUpAfter+15*time.Second)
	doubts, err := fresh.entries.Doubts()
	require.NoError(t, err)
	require.Empty(t, doubts)
	require.EqualValues(t, 1, fresh.entries.Total(wire.ScheduledJobs), "it is pending until it is due")
	require.Equal(t, before, sc.copies()["x"])
}

// The trial job of a silent queue is one that is fired after the broker has confirmed something
// later.
func TestTrialOfSilentQueueIsAFire(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.fallsSilent(s, "lost", "q")
	sc.scheduled("expired", sc.now, `,"expires_at":1,"dead":false`)
	sc.due("comes", "q")
	require.NoError(t, s.readAll())
	sc.silentFor(s, "none", 2*time.Second)
	require.Equal(t, 1, sc.copies()["comes"])
	require.Zero(t, s.core.queues.silentQueues())
}

// A late answer closes the hole: the epoch continues.
func TestLateAnswerClosesHole(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.passOver(s, "late", "q")
	var tag uint64
	for t := range s.core.ledger.All() {
		tag = t
	}
	sc.busyFor(s, "q", ledger.GiveUpAfter+10*time.Second)
	require.Equal(t, tag, s.core.ledger.Hole())
	require.NoError(t, s.core.ledger.Confirmed(sc.now, tag, true))
	sc.busyFor(s, "q", time.Second)
	require.Zero(t, s.core.ledger.Hole())
	require.Zero(t, s.core.ledger.GivenUp())
}

// Confirms above a hole are journaled. A leader that is asked to stop does not wait for ever.
func TestConfirmsAboveHoleAreJournaled(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.due("open", "silent")
	for i := range 20 {
		sc.due(fmt.Sprint("j-", i), "q")
	}
	require.NoError(t, s.readAll())
	require.NoError(t, s.step(sc.now))
	sc.unanswered(s, "silent")
	require.NoError(t, s.core.announcer.announce(sc.now))
	require.Empty(t, s.conn.out, "the window has not drained")
	require.NoError(t, s.core.announcer.announceAll(sc.now))
	sc.exchange(s)
	doubts, err := s.entries.Doubts()
	require.NoError(t, err)
	require.Len(t, doubts, 1)
	require.Equal(t, "open", doubts[0].JID)
	require.NoError(t, s.core.announcer.announceAll(sc.now))
	require.Empty(t, s.conn.out, "it is journaled once")
}

// The AMQP library keeps every answer that follows a missing one. The epoch ends before they are
// too many.
func TestEpochEndsFarBehindHole(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.passOver(s, "lost", "q")
	sc.busyFor(s, "q", ledger.GiveUpAfter+10*time.Second)
	require.Zero(t, s.core.ledger.Open())
	require.NotZero(t, s.core.ledger.Hole())
	require.False(t, s.core.ledger.Worn())
}
