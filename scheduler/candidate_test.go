package scheduler

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// candidateOn has a connection claim the lock, and reads what arrives on it.
func candidateOn(t *testing.T, s *Scheduler, conn *broker.Conn) *candidate {
	t.Helper()
	claim, err := conn.Lock(t.Context())
	require.NoError(t, err)
	c := newCandidate(claim, conn.User(), newResponder(s.cfg.Broker, s.log), s.log)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{}, 2)
	go func() { c.run(ctx); done <- struct{}{} }()
	go func() { _ = c.responder.run(ctx); done <- struct{}{} }()
	t.Cleanup(func() { cancel(); <-done; <-done })
	return c
}

// asks is a connection to the leader, as the REST API has one.
func asks(t *testing.T, s *Scheduler) *askConn {
	t.Helper()
	l, err := openAskConn(t.Context(), s.cfg.Broker)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { l.run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done; _ = l.conn.Close() })
	return l
}

// Only the leader answers pings of other sidecars. A sidecar that waits for the lock does not.
func TestOnlyLeaderAnswersPings(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s, conn := runner(t, v)
	c := candidateOn(t, s, conn)
	<-c.active
	brokertest.Eventually(t, c.mayPublish, "its own pings come back")
	ping := wire.Command{Command: wire.CommandPing}
	require.Equal(t, wire.StatusUnknown, asks(t, s).ask(t.Context(), ping).Status)
	c.leads.Store(true)
	require.Equal(t, wire.StatusDone, asks(t, s).ask(t.Context(), ping).Status)
	require.Empty(t, c.commands, "a ping needs no turn")
}

// Commands that arrive faster than the leader executes them are refused. They do not delay pings.
func TestExcessCommandsAreRefused(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s, conn := runner(t, v)
	c := candidateOn(t, s, conn)
	<-c.active
	l := asks(t, s)
	for range commandsAtHand {
		require.NoError(t, l.pub.Send(t.Context(), wire.Message{Key: wire.LeaderInbox, Body: []byte(`{"command":"state"}`)}))
	}
	reply := asks(t, s).ask(t.Context(), wire.Command{Command: wire.CommandState})
	require.Equal(t, wire.StatusUnavailable, reply.Status)
	require.Contains(t, reply.Reason, "nothing was done")
	require.Len(t, c.commands, commandsAtHand)
	require.True(t, c.mayPublish())
}

// A command that was delivered to the previous leader may have been executed. It is not executed
// again. A command that no leader got is executed by the next one.
func TestUndeliveredCommandsPassToNextLeader(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s, conn := runner(t, v)
	if conn.Features().ExclusiveLock {
		t.Skip("the queue goes with its leader")
	}
	before, err := conn.Lock(t.Context())
	require.NoError(t, err)
	l := asks(t, s)
	require.NoError(t, l.pub.Send(t.Context(), wire.Message{Key: wire.LeaderInbox, Body: []byte(`{"command":"state","reason":"given"}`)}))
	<-before.Inbox.Deliveries()
	require.NoError(t, before.Inbox.Close())
	require.NoError(t, l.pub.Send(t.Context(), wire.Message{Key: wire.LeaderInbox, Body: []byte(`{"command":"state","reason":"new"}`)}))
	c := candidateOn(t, s, conn)
	d := <-c.commands
	require.Contains(t, string(d.Body), "new")
	require.Empty(t, c.commands)
}

// A ping that another client sent does not renew the lease.
func TestForgedPingDoesNotRenewLease(t *testing.T) {
	c := &candidate{id: "id", user: millrace, lease: newLease(time.Now)}
	n := c.lease.Send()
	require.EqualValues(t, 1, n)
	for name, d := range map[string]wire.Delivery{
		"another user":   {CorrelationID: "id/1", UserID: "client"},
		"another sender": {CorrelationID: "di/1", UserID: millrace},
		"no number":      {CorrelationID: "id/x", UserID: millrace},
		"nothing":        {UserID: millrace},
	} {
		require.False(t, c.isOwnPing(d), name)
		require.False(t, c.mayPublish(), name)
	}
	require.True(t, c.isOwnPing(wire.Delivery{CorrelationID: "id/1", UserID: millrace}))
	require.True(t, c.mayPublish())
}

// A view that lags may name an earlier leader than the last one. The end of that earlier leader
// proves nothing.
func TestLaggingViewDoesNotKnowPredecessor(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	read, err := s.entries.Position(wire.Journal)
	require.NoError(t, err)
	knows := func(records silent) bool {
		return (&Scheduler{services: &services{entries: s.entries.Reader, records: records}}).hasReadJournal(t.Context())
	}
	require.True(t, knows(silent{first: read}))
	require.False(t, knows(silent{first: read + 1}))
	require.False(t, knows(silent{first: read, err: errors.New("no answer")}))
}
