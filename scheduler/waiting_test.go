package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// unread gives a scheduler a view that has read nothing yet.
func (s *Scheduler) unread() {
	s.view = view.New(s.store, nil, s.fold(), s.log, wire.Journal, wire.EntryStreams...)
}

// A sidecar whose view has not caught up does not stand for election. It stops waiting when it is
// stopped, and its connection stays open.
func TestElectionWaitsForView(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s, conn := runner(t, v)
	s.unread()
	require.False(t, s.eligible(time.Now()))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.waitForView(ended, conn), context.Canceled)
	done := make(chan error)
	go func() { done <- s.waitForView(t.Context(), conn) }()
	require.NoError(t, conn.Close())
	require.ErrorIs(t, <-done, conn.Err())
	require.Error(t, conn.Err())
}

// A sidecar that holds the lock while its readers are cut off keeps the lock for a moment: the
// readers of the others are cut off too.
func TestLockIsKeptWhileReadersAreCutOff(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s, conn := runner(t, v)
	require.NoError(t, s.awaitEligible(t.Context(), conn, nil), "it has nothing to read")
	s.unread()
	claim, err := conn.Lock(t.Context())
	require.NoError(t, err)
	lock := newCandidate(claim, conn.User(), newResponder(s.cfg.Broker, s.log), s.log)
	ended, cancel := context.WithTimeout(t.Context(), 3*fitEvery)
	defer cancel()
	require.ErrorIs(t, s.awaitEligible(ended, conn, lock), context.DeadlineExceeded)
	done := make(chan error)
	go func() { done <- s.awaitEligible(t.Context(), conn, lock) }()
	require.NoError(t, claim.Inbox.Close())
	require.ErrorIs(t, <-done, errLockGone)
}

// A sidecar that lags lets others lead first, but not for ever: all may lag.
func TestStandbyGraceExpires(t *testing.T) {
	var r standbyGrace
	begun := time.Now()
	require.True(t, r.expired(begun, maxStandingLag-1))
	require.False(t, r.expired(begun, maxStandingLag))
	require.False(t, r.expired(begun.Add(maxReluctance-1), time.Hour))
	require.True(t, r.expired(begun.Add(maxReluctance), time.Hour))
	require.True(t, r.expired(begun.Add(maxReluctance+1), time.Hour), "until it has caught up")
	require.True(t, r.expired(begun.Add(2*maxReluctance), 0))
	require.False(t, r.expired(begun.Add(3*maxReluctance), time.Hour))
}

func TestAskerWithoutBroker(t *testing.T) {
	cfg := broker.Config{AMQPURL: "amqp://guest:guest@127.0.0.1:1/"}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	reply := askOnce(ctx, cfg, wire.Command{Command: wire.CommandPing})
	require.Equal(t, wire.StatusUnavailable, reply.Status)
	require.NotEmpty(t, reply.Reason)
}

// A command that is not JSON is not sent.
func TestAskerSendsOnlyJSON(t *testing.T) {
	l := &askConn{waiting: map[string]chan wire.Reply{}, heard: time.Now()}
	reply := l.ask(t.Context(), wire.Command{Command: wire.CommandChange, Changes: []byte("{")})
	require.Equal(t, wire.StatusBad, reply.Status)
	require.Empty(t, l.waiting, "no answer is awaited")
}

// A sidecar that answers a command leads, unless the answer is that it is unavailable.
func TestAnswerShowsThatSidecarLeads(t *testing.T) {
	for status, leads := range map[int]bool{wire.StatusDone: true, wire.StatusNotFound: true, wire.StatusUnavailable: false} {
		l := &askConn{waiting: map[string]chan wire.Reply{}, heard: time.Now().Add(-leaderSilent)}
		answer := make(chan wire.Reply, 1)
		l.waiting["id"] = answer
		l.deliver(wire.Delivery{CorrelationID: "id", Body: fmt.Appendf(nil, `{"status":%d}`, status)})
		require.Equal(t, status, (<-answer).Status)
		require.Equal(t, leads, l.answered)
		require.Equal(t, leads, time.Since(l.heard) < leaderSilent)
	}
}

// A command does not fail because the leader has not answered a ping yet.
func TestCommandAwaitsPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &askConn{conn: &broker.Conn{}, heard: time.Now().Add(-leaderSilent)}
		go func() {
			time.Sleep(askerPingSoon)
			l.deliver(wire.Delivery{CorrelationID: pingID, Body: []byte(`{"status":200}`)})
		}()
		require.Nil(t, l.awaitLeader(t.Context()))

		l.heard = time.Now().Add(-leaderSilent)
		began := time.Now()
		require.Equal(t, noLeader, l.awaitLeader(t.Context()).Reason)
		require.Equal(t, leaderAwaited, time.Since(began))
	})
}

// A roll-up that cannot be published is tried again, and ends no epoch.
func TestFailedRollUpIsRetried(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s, conn := runner(t, v)
	metrics := &pieces{}
	s.cfg.Rollups = metrics
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.rollUp(ctx, conn) }()
	brokertest.Eventually(t, func() bool { return metrics.asked.Load() >= 2 }, "there is no stream for it yet")
	s.assertWanted(t.Context())
	brokertest.Eventually(t, func() bool { return len(v.ReadStream(t, wire.Rollups)) == 1 }, "it is published")
	cancel()
	require.NoError(t, <-done)
}

// A leader without progress resigns, because another sidecar may do better.
func TestStuckLeaderResigns(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s, conn := runner(t, v)
	s.view = view.New(s.store, nil, s.fold(), s.log, "none")
	sc := newScene(t)
	model := sc.leader("a")
	sc.at("j", "q", sc.now)
	require.NoError(t, model.readAll())
	l := &leadership{s: s, conn: conn, core: model.core, lock: &candidate{}, watchdog: newWatchdog(time.Now, claimWithin), background: background{beside: func(func(context.Context)) {}}}
	passes := func(d time.Duration) {
		l.watchdog.steppedAt, l.watchdog.oldestAt = l.watchdog.steppedAt.Add(-d), l.watchdog.oldestAt.Add(-d)
	}
	l.watchdog.Note(l.progress())
	passes(2 * maxStuck)
	require.NoError(t, l.checkStuck(), "nothing is unconfirmed")
	require.NoError(t, model.step(sc.now))
	require.Equal(t, 1, model.core.ledger.Open())
	l.watchdog.Note(l.progress())
	require.NoError(t, l.checkStuck(), "it was published just now")
	passes(2 * maxStuck)
	require.ErrorContains(t, l.checkStuck(), "neither confirmed nor refused")

	sc.answer(model) // and the view does not read it
	l.watchdog.Note(l.progress())
	require.NoError(t, l.checkStuck(), "it was confirmed just now")
	passes(2 * maxStuck)
	require.ErrorContains(t, l.checkStuck(), "no progress for 30s while leading")
	sc.rounds(model, 3, nil)
	l.watchdog.Note(l.progress())
	require.NoError(t, l.checkStuck(), "nothing waits")

	resigned, resign := context.WithCancelCause(t.Context())
	s.unread()
	require.NoError(t, l.watch(resigned, resign))
	require.ErrorIs(t, context.Cause(resigned), errResigned)
	require.ErrorContains(t, context.Cause(resigned), "behind")
	l.lock = &candidate{lease: newLease(func() time.Time { return time.Now().Add(time.Hour) })}
	l.lock.lease.silent = time.Time{}
	require.ErrorContains(t, l.checkStuck(), "no ping came back")
}

// Commands wait until the leader has reconciled, and while there is no room for what they publish.
func TestCommandsWaitForReconcileAndRoom(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	_, conn := runner(t, v)
	sc := newScene(t)
	l := &leadership{conn: conn, core: sc.leader("a").core, lock: &candidate{commands: make(chan wire.Delivery)}}
	require.NotNil(t, l.commands())
	for phase := range phaseLeading {
		l.core.phase = phase
		require.Nil(t, l.commands(), phase)
	}
	l.core.phase = phaseLeading
	large := ledger.Publish{Plain: true, Size: ledger.MaxOpenBytes, Build: func(int64, int64) wire.Message { return wire.Message{} }}
	require.NoError(t, l.core.ledger.Send(&large))
	require.Nil(t, l.commands())
	tag, _ := l.core.ledger.Oldest()
	require.NoError(t, l.core.ledger.Confirmed(time.Now(), tag, true))
	require.NotNil(t, l.commands())
	l.lock.lease = newLease(time.Now)
	require.Nil(t, l.commands(), "another sidecar may hold the lock")
}

// A leader that is asked to stop waits for its confirms, as long as its connection can deliver
// them.
func TestRetiringWithoutConnection(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	_, conn := runner(t, v)
	pub, err := conn.Publisher(t.Context())
	require.NoError(t, err)
	sc := newScene(t)
	model := sc.leader("a")
	sc.fires(model, "j", "q")
	require.NotZero(t, model.core.ledger.Open())
	seen := view.New(model.store, nil, model.entries, slog.New(slog.DiscardHandler), wire.Journal)
	l := &leadership{s: &Scheduler{services: &services{view: seen}}, conn: conn, pub: pub, core: model.core, prober: &prober{}}
	require.NoError(t, pub.Close())
	<-pub.Done()
	err = l.retire(retireWithin)
	require.Error(t, err)
	require.Equal(t, pub.Err(), err)
	require.NotZero(t, model.core.ledger.Open(), "it is in doubt, and the next leader finds it so")
}
