package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

// unanswered has the broker process what a leader sent, and never answer the fires to some queues.
func (sc *scene) unanswered(s *modelSidecar, prefix string) {
	for len(s.conn.out) > 0 {
		sc.broker.process(s.conn, sc.now)
	}
	var left []answer
	for _, a := range s.conn.answers {
		if a.copy == nil || !strings.HasPrefix(a.copy.queue, prefix) {
			left = append(left, a)
		}
	}
	s.conn.answers = left
	for len(s.conn.answers) > 0 {
		require.NoError(sc.t, s.answer(sc.now))
	}
	require.NoError(sc.t, s.readAll())
}

// silentFor lets a leader work while some queues answer nothing.
func (sc *scene) silentFor(s *modelSidecar, prefix string, d time.Duration) {
	for end := sc.now.Add(d); sc.now.Before(end); {
		sc.now = sc.now.Add(200 * time.Millisecond)
		require.NoError(sc.t, s.step(sc.now))
		sc.unanswered(s, prefix)
	}
}

func TestSilentQueueDelaysNoOther(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.due("lost-answer", "silent")
	require.NoError(t, s.readAll())
	sc.silentFor(s, "silent", 3*time.Second)
	for i := range 20 {
		sc.due(fmt.Sprint("waits-", i), "silent")
		sc.due(fmt.Sprint("comes-", i), "q")
	}
	require.NoError(t, s.readAll())
	sc.silentFor(s, "silent", 5*time.Second)
	require.Equal(t, 1, s.core.queues.silentQueues())
	require.Len(t, sc.copies(), 22, "one more job is fired to the silent queue, and all due jobs to the other")
	require.Contains(t, sc.copies(), "lost-answer")
}

// RabbitMQ never answers what was on its way to the leader of a stream when that died. It answers
// what follows.
func TestFireThatIsPassedOverDelaysNothing(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.due("lost-answer", "q")
	require.NoError(t, s.readAll())
	sc.silentFor(s, "q", 200*time.Millisecond)
	require.Equal(t, 1, s.core.ledger.Open())
	for i := range 25 { // the watchdog ends an epoch after maxStuck
		jid := fmt.Sprint("later-", i)
		sc.due(jid, "q")
		require.NoError(t, s.readAll())
		sc.silentFor(s, "none", time.Second)
		require.Contains(t, sc.copies(), jid)
	}
	require.Zero(t, s.core.queues.silentQueues())
	require.Equal(t, 1, s.core.ledger.Aside(), "the window is free for others")
	_, any := s.core.ledger.Oldest()
	require.False(t, any, "it does not end the epoch")
	sc.broker.witness = "" // so that nothing proves that it arrived
	for range 50 {
		sc.silentFor(s, "none", 200*time.Millisecond)
		require.Empty(t, s.core.queues.heldQueues(), "its queue is not held when it is given up on")
	}
	require.Equal(t, 2, sc.copies()["lost-answer"])
	require.Zero(t, s.core.ledger.Open())
}

// The open fires of a silent queue are settled after a while. If nothing restarted, they arrived.
// Otherwise they are fired again.
func TestUnansweredFiresAreGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		restarts bool
		copies   int
	}{"proven": {false, 1}, "not proven": {true, 2}} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			s := sc.leader("a")
			sc.due("lost-answer", "q")
			require.NoError(t, s.readAll())
			sc.silentFor(s, "q", time.Second)
			if c.restarts {
				sc.broker.witness = ""
			}
			sc.silentFor(s, "none", ledger.GiveUpAfter-2*time.Second)
			require.Equal(t, map[string]int{"lost-answer": 1}, sc.copies(), "it is not decided early")
			sc.silentFor(s, "none", 10*time.Second)
			require.Equal(t, map[string]int{"lost-answer": c.copies}, sc.copies())
			require.Zero(t, s.core.ledger.Open())
			doubts, err := s.entries.Doubts()
			require.NoError(t, err)
			require.Empty(t, doubts)
		})
	}
}

// An answer that comes late says nothing about a fire that was given up.
func TestLateAnswersAreIgnored(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.fires(s, "late", "q")
	sc.broker.process(s.conn, sc.now)
	late := s.conn.answers
	s.conn.answers = nil
	require.NoError(t, s.readAll())
	sc.silentFor(s, "none", ledger.GiveUpAfter+5*time.Second)
	before := s.core.ledger.Watermark()
	for _, a := range late {
		require.NoError(t, s.core.ledger.Confirmed(sc.now, a.tag, false))
	}
	sc.silentFor(s, "none", 5*time.Second)
	require.GreaterOrEqual(t, s.core.ledger.Watermark(), before)
	require.Equal(t, map[string]int{"late": 1}, sc.copies())
}

// Each queue may have only so many fires open, even if more are due.
func TestEachQueueHasAWindow(t *testing.T) {
	sc := newScene(t)
	sc.broker.window = 4
	s := sc.leader("a")
	for i := range 20 {
		sc.due(fmt.Sprint("q-", i), "q")
		sc.due(fmt.Sprint("other-", i), quorum)
	}
	require.NoError(t, s.readAll())
	for range 3 {
		require.NoError(t, s.step(sc.now))
	}
	open := map[string]int{}
	for _, m := range s.conn.out {
		open[m.message.Key]++
	}
	require.Equal(t, s.core.setup.window("q"), open["q"])
	require.Equal(t, s.core.setup.window(quorum), open[quorum])
	sc.rounds(s, 20, nil)
	require.Len(t, sc.copies(), 40)
}

// While the broker answers nothing at all, nothing more is fired: it may have lost its majority.
func TestFiringStopsWithoutAnswers(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.fires(s, "first", "q")
	require.Len(t, s.conn.out, 1)
	for range 10 {
		sc.now = sc.now.Add(150 * time.Millisecond)
		require.NoError(t, s.step(sc.now))
	}
	sc.fires(s, "second", "other")
	require.Equal(t, "first", s.conn.out[0].message.MessageID)
	for _, m := range s.conn.out {
		require.NotEqual(t, "second", m.message.MessageID)
	}
	sc.rounds(s, 5, nil)
	require.Equal(t, map[string]int{"first": 1, "second": 1}, sc.copies())
}

// A leader journals which numbers are confirmed above one that is not. Only that one is in doubt
// for its successor.
func TestOnlyUnconfirmedFiresAreInDoubt(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.fires(s, "open", "silent")
	sc.unanswered(s, "silent")
	for i := range 20 {
		sc.due(fmt.Sprint("j", i), fmt.Sprint("q", i%7))
		require.NoError(t, s.readAll())
		sc.silentFor(s, "silent", 200*time.Millisecond)
	}
	sc.silentFor(s, "silent", time.Second)
	doubts, err := s.entries.Doubts()
	require.NoError(t, err)
	require.Len(t, doubts, 1)
	require.Equal(t, "open", doubts[0].JID)

	sc.broker.witness = ""
	s.lose()
	require.NoError(t, s.forget())
	sc.elect(s, never)
	sc.rounds(s, 20, nil)
	for jid, n := range sc.copies() {
		require.Equal(t, map[bool]int{true: 2, false: 1}[jid == "open"], n, jid)
	}
}

// If there are more ranges than a header can hold, they get a record of their own.
func TestManyRangesAreJournaled(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	for i := range 40 {
		sc.due(fmt.Sprint("j", i), fmt.Sprint("q", i))
	}
	require.NoError(t, s.readAll())
	require.NoError(t, s.step(sc.now))
	for len(s.conn.out) > 0 {
		sc.broker.process(s.conn, sc.now)
	}
	for i, a := range s.conn.answers {
		if i%2 == 1 {
			require.NoError(t, s.core.ledger.Confirmed(sc.now, a.tag, true))
		}
	}
	s.conn.answers = nil
	require.NoError(t, s.readAll())
	sc.silentFor(s, "none", time.Second)
	doubts, err := s.entries.Doubts()
	require.NoError(t, err)
	require.Len(t, doubts, 20)
	require.Positive(t, sc.journaled()[wire.TypeConfirmed])
}

// A fire that the view has not read from the journal is not given up: it may be the journal that
// does not answer.
func TestNoGiveUpWhileJournalIsSilent(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.fires(s, "unread", "q")
	for range 5 * ledger.GiveUpAfter / time.Second {
		sc.now = sc.now.Add(time.Second)
		require.NoError(t, s.step(sc.now))
	}
	require.Equal(t, "unread", s.conn.out[0].message.MessageID)
	require.Equal(t, []string{"q"}, s.core.silence.overdue)
	require.Equal(t, 1, s.core.queues.of("q").unconfirmed, "the fire is open")
	require.Zero(t, s.core.counters.Returned)
	sc.rounds(s, 5, nil)
	require.Equal(t, map[string]int{"unread": 1}, sc.copies())
}

// A burial without an answer is not given up: what is known of its job's queue says nothing of the
// dead jobs. The leader resigns over it.
func TestBurialsAreNeverGivenUp(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.scheduled("expired", sc.now, `,"expires_at":1`)
	require.NoError(t, s.readAll())
	require.NoError(t, s.step(sc.now))
	sc.take(s)
	var burial uint64
	for tag, it := range s.core.ledger.All() {
		if it.Dispatch {
			burial = tag
		}
	}
	s.conn.answers = slices.DeleteFunc(s.conn.answers, func(a answer) bool { return a.tag == burial })
	sc.silentFor(s, "none", ledger.GiveUpAfter+10*time.Second)
	require.Zero(t, s.core.queues.silentQueues())
	oldest, open := s.core.ledger.Oldest()
	require.True(t, open)
	require.Equal(t, burial, oldest, "the watchdog detects it")
	require.Zero(t, s.core.counters.Returned)
}

// A fire that is repeated from the journal counts in its queue's lane as any other.
func TestSilentQueueOfFireOnlyInJournal(t *testing.T) {
	sc := newScene(t)
	s := sc.leaderWith("gone")
	require.NoError(t, s.core.command(sc.now, wire.Command{Command: wire.CommandTrigger, Stream: wire.ScheduledJobs, JID: "gone"}, func(wire.Reply) {}))
	sc.inFlight(s)
	entries := sc.broker.streams[wire.ScheduledJobs]
	entries.records[len(entries.records)-1].Body = []byte("garbage")
	fresh := sc.sidecar("fresh")
	sc.elect(fresh, never)
	sc.silentFor(fresh, "q", 5*time.Second)
	require.Equal(t, phaseLeading, fresh.core.phase)
	require.Equal(t, 1, fresh.core.queues.silentQueues())
	require.Equal(t, fresh.core.ledger.Open(), fresh.core.ledger.Aside(), "the window is free for others")
	sc.due("other", "r")
	require.NoError(t, fresh.readAll())
	sc.silentFor(fresh, "q", 2*time.Second)
	require.Equal(t, 1, sc.copies()["other"])
	sc.broker.witness = ""
	sc.silentFor(fresh, "none", ledger.GiveUpAfter+10*time.Second)
	require.Zero(t, fresh.core.queues.of("q").unconfirmed)
	require.Zero(t, fresh.core.ledger.Open())
}

// A new leader repeats more fires than a window holds, to queues that do not answer, and leads.
func TestSilentQueuesDuringReconcile(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	for wave, n := range []int{ledger.MaxOpen, 200} { // the second is fired when the queues of the first have left the window
		for i := range n {
			sc.due(fmt.Sprintf("j-%d-%d", wave, i), fmt.Sprintf("silent-%d-%d", wave, i%8))
		}
		require.NoError(t, s.readAll())
		sc.silentFor(s, "silent-", 5*time.Second)
	}
	require.Greater(t, s.core.ledger.Open(), ledger.MaxOpen)
	s.lose()
	sc.broker.witness = ""
	fresh := sc.sidecar("fresh")
	sc.elect(fresh, never)
	sc.silentFor(fresh, "silent-", 10*time.Second)
	require.Equal(t, phaseLeading, fresh.core.phase)
	sc.due("other", "q")
	require.NoError(t, fresh.readAll())
	sc.silentFor(fresh, "silent-", 2*time.Second)
	require.Equal(t, 1, sc.copies()["other"])
}
