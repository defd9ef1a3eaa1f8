package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// runner is a scheduler that does not run: its parts are called one by one.
func runner(t *testing.T, v *brokertest.Vhost) (*Scheduler, *broker.Conn) {
	t.Helper()
	cfg := broker.Config{AMQPURL: v.AMQPURL(), Log: slog.New(slog.DiscardHandler)}
	conn, err := broker.Dial(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	store, err := view.Open(view.Config{Identity: "runner", Cache: 1 << 20})
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close() })
	entries, err := tracker.NewEntries(store, v.Owner.Name)
	require.NoError(t, err)
	return New(Config{Broker: cfg, Log: cfg.Log}, nil, store, entries, nil, nil), conn
}

// Queues that Millrace made are deleted when nobody has used them for long, and no others.
func TestQueuesThatNobodyUses(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s, conn := runner(t, v)
	ch := v.Channel(t)
	for _, name := range []string{"idle", "full", "consumed", "theirs", "new"} {
		_, err := ch.QueueDeclare(wire.QueuePrefix+name, true, false, false, false, nil)
		require.NoError(t, err)
		if name != "theirs" {
			s.noteMade(name)
		}
	}
	s.noteMade("gone")
	v.Publish(t, "", wire.QueuePrefix+"full", amqp.Publishing{Body: []byte("x")})
	_, err := ch.Consume(wire.QueuePrefix+"consumed", "", true, false, false, false, nil)
	require.NoError(t, err)
	later := time.Now().Add(unusedFor + time.Minute)
	s.made["new"] = later
	require.NoError(t, s.deleteUnused(t.Context(), conn, later))
	for name, stands := range map[string]bool{"idle": false, "full": true, "consumed": true, "theirs": true, "new": true} {
		there, err := conn.QueueExists(t.Context(), wire.QueuePrefix+name)
		require.NoError(t, err)
		require.Equal(t, stands, there, name)
	}
	require.Len(t, s.made, 3, "who is gone is forgotten")

	require.NoError(t, conn.Close())
	require.Error(t, s.deleteUnused(t.Context(), conn, later))
}

// A client that declares the lock keeps everybody from leading. That is found out by asking whoever holds it.
func TestLockThatNobodyOfUsHolds(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s, conn := runner(t, v)
	_, err := v.Channel(t).QueueDeclare(wire.LeaderInbox, false, false, true, false, nil)
	require.NoError(t, err)
	s.lookForLeader(t.Context(), conn)
	require.True(t, s.Status().Orphaned)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.waitForLock(ended, conn)
	require.ErrorIs(t, err, context.Canceled)
	go func() { _ = conn.Close() }()
	_, err = s.waitForLock(t.Context(), conn)
	require.Error(t, err)
}

func TestLockThatIsFree(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s, conn := runner(t, v)
	s.lookForLeader(t.Context(), conn)
	require.False(t, s.Status().Orphaned, "there is no leader, and nothing that keeps one away")
}

func TestAskingWithoutALeader(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	a := NewAsker(broker.Config{AMQPURL: v.AMQPURL(), Log: slog.New(slog.DiscardHandler)})
	product, version := a.Broker()
	require.Empty(t, product+version)
	require.Equal(t, wire.StatusUnavailable, a.Ask(t.Context(), wire.Command{Command: wire.CommandPing}).Status)
	require.Error(t, a.Publish(t.Context(), wire.Message{Key: "x"}))

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- a.Run(ctx) }()
	brokertest.Eventually(t, a.Connected, "it reaches the broker")
	product, _ = a.Broker()
	require.NotEmpty(t, product)
	require.Equal(t, "no_leader", a.Ask(t.Context(), wire.Command{Command: wire.CommandPing}).Error)
	require.ErrorIs(t, a.Publish(t.Context(), wire.Message{Key: "nowhere"}), broker.ErrReturned)

	inbox := v.Channel(t) // somebody who reads commands, and answers with garbage
	_, err := inbox.QueueDeclare(wire.LeaderInbox, false, true, false, false, nil)
	require.NoError(t, err)
	commands, err := inbox.Consume(wire.LeaderInbox, "", true, false, false, false, nil)
	require.NoError(t, err)
	go func() {
		for d := range commands {
			_ = inbox.Publish("", d.ReplyTo, false, false, amqp.Publishing{CorrelationId: d.CorrelationId, Body: []byte("garbage")})
			_ = inbox.Publish("", d.ReplyTo, false, false, amqp.Publishing{CorrelationId: "another", Body: []byte(`{"status":204}`)})
		}
	}()
	require.Equal(t, "outcome_unknown", a.Ask(t.Context(), wire.Command{Command: wire.CommandPing}).Error)
	cancel()
	require.NoError(t, <-done)
	require.False(t, a.Connected())
}

// Without a management API nothing is known of queues, and nothing is set.
func TestWithoutManagement(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s, conn := runner(t, v)
	require.NoError(t, s.assertPolicies(t.Context()))
	require.NoError(t, s.prepare(t.Context(), conn))
	require.False(t, s.mayRefuse("q"))
	require.NotNil(t, s.Topology())
	require.True(t, s.carryDue(time.Now()), "of a retention that is not known")
}

func TestManagementThatFails(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s, _ := runner(t, v)
	mgmt, err := broker.OpenManagement(t.Context(), v.ManagementURL(), v.Name, s.log)
	require.NoError(t, err)
	s.mgmt = mgmt
	mgmt.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s.readQueues(ended)
	require.Nil(t, s.kept)
	require.Error(t, s.assertPolicies(ended))
}

// Who acted is what the broker says; the sidecar's own account may speak for another.
func TestActors(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	_, conn := runner(t, v)
	l := &leadership{conn: conn}
	for _, c := range []struct{ user, says, want string }{
		{"", "anna", "unverified"},
		{"client", "anna", "client"},
		{conn.User(), "anna", "anna"},
		{conn.User(), "", conn.User()},
	} {
		require.Equal(t, c.want, l.actor(wire.Delivery{UserID: c.user}, wire.Command{Actor: c.says}))
	}
}

func TestDeathsAreExplained(t *testing.T) {
	for reason, says := range map[string]string{
		"rejected": "a worker rejected", "expired": "expired in queue", "maxlen": "was full", "delivery_limit": "too often", "other": "(other)",
	} {
		d := wire.Delivery{Body: []byte(`{"class":"C","jid":"j"}`), Headers: map[string]any{
			"x-death": []any{map[string]any{"reason": reason, "queue": "queue.mail", "time": time.Unix(1_700_000_000, 0)}}}}
		record, jid, err := deadRecord(d, time.Now())
		require.NoError(t, err)
		require.Equal(t, "j", jid)
		require.Contains(t, string(record), says)
		require.Contains(t, string(record), "1700000000")
	}
	record, jid, err := deadRecord(wire.Delivery{Body: []byte(`{"class":"C"}`), Redelivered: true}, time.Unix(1_600_000_000, 0))
	require.NoError(t, err)
	require.NotEmpty(t, jid)
	require.Contains(t, string(record), "1600000000", "nobody says when it died")
	envelope := []byte(`{"jid":"theirs","died_at":5,"job":{"class":"C"}}`)
	record, jid, err = deadRecord(wire.Delivery{Body: envelope}, time.Now())
	require.NoError(t, err)
	require.Equal(t, "theirs", jid)
	require.Equal(t, envelope, record, "a client's own envelope is taken as it is")
	long := fmt.Sprintf(`{"class":"C","jid":%q}`, strings.Repeat("j", maxDeadJID+1))
	_, jid, err = deadRecord(wire.Delivery{Body: []byte(long)}, time.Now())
	require.NoError(t, err)
	require.Less(t, len(jid), 100)
}

// The same dead letter that comes again after its leader died is known by its bytes.
func TestDeadLettersThatCameBefore(t *testing.T) {
	sc := newScene(t)
	sidecar := sc.sidecar("a")
	s := &Scheduler{entries: sidecar.entries}
	d := wire.Delivery{Body: []byte(`{"class":"C","jid":"j"}`), Redelivered: true, Timestamp: time.Unix(1_700_000_000, 0)}
	record, _, err := deadRecord(d, time.Now())
	require.NoError(t, err)
	known, err := s.isKnownDead(d)
	require.NoError(t, err)
	require.False(t, known)
	sc.broker.append(wire.DeadJobs, millrace, wire.Message{Body: record})
	require.NoError(t, sidecar.readAll())
	known, err = s.isKnownDead(d)
	require.NoError(t, err)
	require.True(t, known)
}

// pieces are metrics to roll up that nobody reads back.
type pieces struct {
	asked atomic.Int32
	fails atomic.Bool
}

func (p *pieces) Pieces(int) ([]wire.Rollup, error) {
	p.asked.Add(1)
	if p.fails.Load() {
		return nil, errors.New("the view is damaged")
	}
	return []wire.Rollup{{Type: "rollup", To: 5}}, nil
}

// A roll-up is published once, as long as it may still be read back.
func TestRollUpsArePublishedOnce(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s, conn := runner(t, v)
	require.NoError(t, s.rollUp(t.Context(), conn), "without metrics there is nothing to do")
	require.NoError(t, s.prepare(t.Context(), conn))
	metrics := &pieces{}
	s.cfg.Rollups = metrics
	done := make(chan error)
	go func() { done <- s.rollUp(t.Context(), conn) }()
	brokertest.Eventually(t, func() bool { return metrics.asked.Load() >= 3 }, "it looks again and again")
	require.Len(t, v.ReadStream(t, wire.Rollups), 1)
	metrics.fails.Store(true)
	require.ErrorContains(t, <-done, "the view is damaged")

	require.NoError(t, conn.Close())
	require.NoError(t, s.rollUp(t.Context(), conn), "whoever leads with the connection ends")
}

// However many queues are refused, so many are shown and kept in mind.
func TestRefusedQueuesAreBounded(t *testing.T) {
	r := &rerouter{s: &Scheduler{}, refused: map[string]*refusal{}}
	for i := range 2 * maxShown {
		until := time.Now().Add(time.Hour)
		if i%4 == 0 {
			until = time.Now().Add(-time.Hour)
		}
		r.refused[fmt.Sprint(i)] = &refusal{reason: "limit", until: until}
	}
	r.report()
	require.Len(t, r.s.status.Unroutable, maxShown)
	require.Len(t, r.refused, 2*maxShown*3/4)
}
