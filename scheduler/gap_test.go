package scheduler_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// loseJournal deletes the journal. Which entries of the streams were done is then unknown.
func loseJournal(t *testing.T, v *brokertest.Vhost) {
	t.Helper()
	_, err := v.Channel(t).QueueDelete(wire.Journal, false, false, false)
	require.NoError(t, err)
}

// past has a sidecar fire some jobs, and stops it. Other jobs become due while no sidecar runs.
func past(t *testing.T, v *brokertest.Vhost, w *worker, o options) {
	t.Helper()
	s := start(t, v, o).leads(t)
	ensure(t, v, "q") // a job that passes through jobs.unrouted may come twice when the leader stops
	schedule(t, v, time.Now(), "q", names("done", 3)...)
	w.gets(t, names("done", 3)...)
	brokertest.Eventually(t, func() bool {
		doubts, err := s.entries.Doubts()
		require.NoError(t, err)
		return len(doubts) == 0 && s.entries.Total(wire.ScheduledJobs) == 0
	}, "they are settled")
	s.stop()
	schedule(t, v, time.Now(), "q", names("due", 3)...)
}

// holds requires that a sidecar leads, reports a gap, and fires only jobs that were published
// since.
func holds(t *testing.T, v *brokertest.Vhost, s *sidecar, w *worker, held int64, since string) {
	t.Helper()
	s.leads(t)
	require.NotEmpty(t, s.Status().Gap)
	schedule(t, v, time.Now(), "q", since)
	w.gets(t, since)
	brokertest.Eventually(t, func() bool { return s.entries.Total(wire.ScheduledJobs) == held }, "%d are held", held)
	for i := range 3 {
		require.Zero(t, w.times(names("due", 3)[i]))
		require.Equal(t, 1, w.times(names("done", 3)[i]))
	}
}

// The hold survives a restart and a failover: the record that begins an epoch does not prove that
// the journal is complete.
func TestLostJournalHoldsDueJobs(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	w := work(t, v, "q", nil)
	past(t, v, w, options{identity: "past"})
	loseJournal(t, v)

	first := start(t, v, options{identity: "first"})
	holds(t, v, first, w, 6, "since-0") // without a view of its own it does not know what was done
	first.stop()
	second := start(t, v, options{identity: "second"})
	holds(t, v, second, w, 6, "since-1")
	third := start(t, v, options{identity: "third"})
	brokertest.Eventually(t, func() bool { return third.Status().Phase == "waiting" && third.entries.Total(wire.ScheduledJobs) == 6 }, "it stands by")
	second.stop()
	holds(t, v, third, w, 6, "since-2")

	require.Equal(t, wire.StatusDone, third.ask(t, wire.Command{ID: "c", Command: wire.CommandRelease}).Status)
	w.gets(t, append(names("due", 3), names("since", 3)...)...)
	for _, jid := range names("done", 3) {
		brokertest.Eventually(t, func() bool { return w.times(jid) == 2 }, "%s is fired again: its fire is unknown", jid)
	}
	brokertest.Eventually(t, func() bool { return third.Status().Gap == "" }, "there is no gap any more")
	third.stop()
	fourth := start(t, v, options{identity: "fourth"}).leads(t)
	require.Empty(t, fourth.Status().Gap)
	schedule(t, v, time.Now(), "q", "last")
	w.gets(t, "last")
	brokertest.Eventually(t, func() bool { return fourth.entries.Total(wire.ScheduledJobs) == 0 }, "nothing is pending any more")
}

func TestLostJournalWithIntactView(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	w := work(t, v, "q", nil)
	o := options{identity: "a", dir: t.TempDir()}
	past(t, v, w, o)
	loseJournal(t, v)
	first := start(t, v, o)
	holds(t, v, first, w, 3, "since-0") // it knows what was done
	state := first.entries.State()
	first.stop()
	second := start(t, v, o)
	holds(t, v, second, w, 3, "since-1")
	require.Equal(t, state.Held, second.entries.State().Held, "jobs that came since are not held")
	require.Equal(t, wire.StatusDone, second.ask(t, wire.Command{ID: "c", Command: wire.CommandRelease}).Status)
	w.gets(t, append(names("done", 3), names("due", 3)...)...)
}

// A leader stops when its journal is deleted: its fires would be recorded nowhere. Sidecars that
// have read the old journal remember what was done. Others know less, and fire nothing either.
func TestJournalDeletedUnderLeader(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	w := work(t, v, "q", nil)
	leader := start(t, v, options{identity: "leader"}).leads(t)
	standby := start(t, v, options{identity: "standby"})
	schedule(t, v, time.Now(), "q", names("done", 3)...)
	w.gets(t, names("done", 3)...)
	schedule(t, v, time.Now().Add(time.Hour), "q", "later")
	for _, s := range []*sidecar{leader, standby} {
		brokertest.Eventually(t, func() bool { return pending(t, s, "later") && s.entries.Total(wire.ScheduledJobs) == 1 }, "both know")
	}
	loseJournal(t, v)
	brokertest.Eventually(t, func() bool { return !leader.Status().Leader }, "it stops at once")
	brokertest.Eventually(t, func() bool { return leader.Status().Leader || standby.Status().Leader }, "one of them leads again")
	first, second := leader, standby
	if standby.Status().Leader {
		first, second = standby, leader
	}
	holds(t, v, first, w, 1, "since-0")
	at := offsetOf(t, v, wire.ScheduledJobs, "later")
	require.True(t, first.entries.IsHeld(wire.ScheduledJobs, at))
	first.stop()
	holds(t, v, second, w, 1, "since-1")
	second.stop()
	fresh := start(t, v, options{identity: "fresh"})
	holds(t, v, fresh, w, 4, "since-2")
	require.True(t, fresh.entries.IsHeld(wire.ScheduledJobs, at))
}

// The view of a sidecar that was away for longer than the journal's retention does not match the
// journal any more.
func TestSidecarAwayLongerThanRetention(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	policy(t, v, "small", "^"+wire.Journal+"$", "queues", map[string]any{"max-length-bytes": 100_000, "stream-max-segment-size-bytes": 20_000})
	w := work(t, v, "q", nil)
	o := options{identity: "a", dir: t.TempDir()}
	start(t, v, o).leads(t).stop()
	past(t, v, w, options{identity: "other"}) // which fires what it has not seen
	forget(t, v)
	holds(t, v, start(t, v, o), w, 6, "since-0")
}

func TestDiscardDeletesDueHeldJobs(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	w := work(t, v, "q", nil)
	past(t, v, w, options{identity: "past"})
	schedule(t, v, time.Now().Add(time.Hour), "q", "later")
	loseJournal(t, v)
	s := start(t, v, options{identity: "a"}).leads(t)
	require.NotEmpty(t, s.Status().Gap)
	require.Equal(t, wire.StatusDone, s.ask(t, wire.Command{ID: "c", Command: wire.CommandDiscard}).Status)
	brokertest.Eventually(t, func() bool { return s.Status().Gap == "" }, "nothing is held")
	require.True(t, pending(t, s, "later"), "entries that were not due are kept")
	trigger := wire.Command{ID: "t", Command: wire.CommandTrigger, Stream: wire.ScheduledJobs, JID: "later"}
	require.Equal(t, wire.StatusDone, s.ask(t, trigger).Status)
	w.gets(t, "later")
	require.Equal(t, 4, w.distinct())
	require.Equal(t, 6, journal(t, v)[wire.TypeDeleted])
}

func TestOnGap(t *testing.T) {
	for onGap, comes := range map[string]int{"fire": 6, "discard": 3} {
		t.Run(onGap, func(t *testing.T) {
			t.Parallel()
			v := brokertest.New(t)
			w := work(t, v, "q", nil)
			past(t, v, w, options{identity: "past"})
			loseJournal(t, v)
			s := start(t, v, options{identity: "a", onGap: onGap}).leads(t)
			brokertest.Eventually(t, func() bool { return s.entries.Total(wire.ScheduledJobs) == 0 }, "nothing is held")
			schedule(t, v, time.Now(), "q", "last")
			w.gets(t, "last")
			require.Equal(t, comes+1, w.distinct())
		})
	}
}

// forget has a journal with a short retention forget everything that it has.
func forget(t *testing.T, v *brokertest.Vhost) {
	t.Helper()
	size := 25_000 // a segment each
	if !v.Features(t).StreamSegmentPolicy {
		size = 1_500_000 // more than a segment in all
	}
	noise := fmt.Appendf(nil, `{"type":"state","state":%q}`, strings.Repeat("x", size))
	for range 8 {
		v.Publish(t, "", wire.Journal, amqp.Publishing{UserId: v.Owner.Name, Body: noise})
	}
}

// A truncated journal counts as lost. An operator's limit on streams may truncate fires of some
// hours ago, while the entries stay in the first segment of their stream for years.
func TestTruncatedJournalIsAGap(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	policy(t, v, "small", "^"+wire.Journal+"$", "queues", map[string]any{"max-length-bytes": 100_000, "stream-max-segment-size-bytes": 20_000})
	w := work(t, v, "q", nil)
	past(t, v, w, options{identity: "past"})
	forget(t, v)
	require.Greater(t, brokertest.Offset(v.ReadStream(t, wire.Journal)[0]), v.Features(t).StreamOffsetBase, "the journal was truncated")

	first := start(t, v, options{identity: "first"})
	holds(t, v, first, w, 6, "since-0")
	require.Contains(t, first.Status().Gap, "the journal begins")
	standby := start(t, v, options{identity: "standby"})
	brokertest.Eventually(t, func() bool { return standby.Status().Gap != "" }, "it does not know what was done either")
	first.stop()
	holds(t, v, standby, w, 6, "since-1")
	require.Equal(t, wire.StatusDone, standby.ask(t, wire.Command{ID: "c", Command: wire.CommandDiscard}).Status)
	standby.stop()
	second := start(t, v, options{identity: "second"}).leads(t)
	require.Empty(t, second.Status().Gap, "the journal has all records that are needed")
	schedule(t, v, time.Now(), "q", "since-2")
	w.gets(t, append(names("done", 3), names("since", 3)...)...)
	require.Zero(t, w.times("due-0"))
	second.stop()

	forget(t, v)
	holds(t, v, start(t, v, options{identity: "third"}), w, 9, "since-3")
}

// Jobs that were published before Millrace first ran are no gap.
func TestFirstStartHoldsNoJobs(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	v.DeclareStream(t, wire.ScheduledJobs)
	schedule(t, v, time.Now(), "q", "early")
	w := work(t, v, "q", nil)
	s := start(t, v, options{identity: "a"}).leads(t)
	require.Empty(t, s.Status().Gap)
	w.gets(t, "early")
}
