package broker_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// claim claims the lock. It returns nil if another connection has the lock exclusively.
func claim(t *testing.T, conn *broker.Conn) *broker.Lock {
	t.Helper()
	lock, err := conn.Lock(soon(t))
	if errors.Is(err, broker.ErrLocked) {
		return nil
	}
	require.NoError(t, err)
	return lock
}

// leads reports whether a claim has the lock: it gets the ping that it sends.
func leads(t *testing.T, lock *broker.Lock, within time.Duration) bool {
	t.Helper()
	if lock == nil || lock.Exclusive {
		return lock != nil
	}
	require.NoError(t, lock.Ping("ping"))
	select {
	case d, open := <-lock.Inbox.Deliveries():
		if open {
			require.NoError(t, lock.Inbox.Ack(d.Tag, false))
		}
		return open
	case <-time.After(within):
		return false
	}
}

// eventuallyLeads claims the lock until it has it.
func eventuallyLeads(t *testing.T, conn *broker.Conn) *broker.Lock {
	t.Helper()
	var lock *broker.Lock
	brokertest.Eventually(t, func() bool { lock = claim(t, conn); return lock != nil }, "the lock can be claimed")
	require.True(t, leads(t, lock, time.Minute))
	return lock
}

func TestOneConnectionHasLock(t *testing.T) {
	v := brokertest.New(t)
	leader, rival := dial(t, v.AMQPURL()), dial(t, v.AMQPURL())
	lock := eventuallyLeads(t, leader)
	waits := claim(t, rival)
	require.False(t, leads(t, waits, time.Second))
	if waits != nil {
		d := <-lock.Inbox.Deliveries()
		require.Equal(t, "ping", d.CorrelationID, "the rival's ping goes to the leader")
		require.NoError(t, lock.Inbox.Ack(d.Tag, false))
	}
	require.NoError(t, rival.Err(), "waiting ends no connection")

	sender := publisher(t, rival)
	require.NoError(t, sender.SendMandatory(soon(t), wire.Message{Key: wire.LeaderInbox, CorrelationID: "7", Body: []byte("{}")}))
	d := <-lock.Inbox.Deliveries()
	require.Equal(t, v.Owner.Name, d.UserID)
	require.Equal(t, "7", d.CorrelationID)
	require.NoError(t, lock.Inbox.Ack(d.Tag, false))

	require.NoError(t, leader.Close())
	if waits == nil {
		waits = eventuallyLeads(t, rival)
	}
	require.True(t, leads(t, waits, time.Minute))
}

// Everything that a leader has published comes before anything that its successor publishes,
// however much it is.
func TestLockPassesOnAfterAllPublishes(t *testing.T) {
	v := brokertest.New(t)
	work := v.Channel(t)
	_, err := work.QueueDeclare("work", true, false, false, false, nil)
	require.NoError(t, err)
	arrived, err := work.Consume("work", "", true, false, false, false, nil)
	require.NoError(t, err)
	for range 5 {
		leader, rival := dial(t, v.AMQPURL()), dial(t, v.AMQPURL())
		lock := eventuallyLeads(t, leader)
		waits := claim(t, rival)
		const n = 3000
		for range n {
			_, err := lock.Publisher.Publish(wire.Message{Key: "work", Body: []byte("{}")})
			require.NoError(t, err)
		}
		go leader.Close()
		if waits == nil {
			waits = eventuallyLeads(t, rival)
		}
		require.True(t, leads(t, waits, time.Minute))
		for _, id := range []string{"first", "last"} {
			require.NoError(t, waits.Publisher.Send(soon(t), wire.Message{Key: "work", CorrelationID: id}))
		}
		for d := range arrived {
			if d.CorrelationId == "first" {
				require.Equal(t, "last", (<-arrived).CorrelationId, "what the leader published precedes its successor's first message")
				break
			}
		}
		require.NoError(t, rival.Close())
	}
}

// The queue outlives its leader, so the next leader gets the commands that were sent meanwhile.
func TestCommandsWaitForNextLeader(t *testing.T) {
	v := brokertest.New(t)
	leader, sender := dial(t, v.AMQPURL()), publisher(t, dial(t, v.AMQPURL()))
	lock := eventuallyLeads(t, leader)
	require.NoError(t, leader.Close())
	if lock.Exclusive {
		brokertest.Eventually(t, func() bool {
			return errors.Is(sender.SendMandatory(soon(t), wire.Message{Key: wire.LeaderInbox}), broker.ErrReturned)
		}, "the queue is gone with its connection")
		return
	}
	require.NoError(t, sender.SendMandatory(soon(t), wire.Message{Key: wire.LeaderInbox, CorrelationID: "waits"}))
	next, err := dial(t, v.AMQPURL()).Lock(soon(t))
	require.NoError(t, err)
	d := <-next.Inbox.Deliveries()
	require.Equal(t, "waits", d.CorrelationID)
	require.False(t, d.Redelivered)
	require.NoError(t, next.Inbox.Close())

	require.NoError(t, sender.SendMandatory(soon(t), wire.Message{Key: wire.LeaderInbox, CorrelationID: "expires"}))
	brokertest.EventuallyWithin(t, time.Minute, func() bool { return v.QueueLength(t, wire.LeaderInbox) == 0 }, "it expires")
}

func TestLeaderDetectsDeletedLock(t *testing.T) {
	v := brokertest.New(t)
	leader := dial(t, v.AMQPURL())
	lock := eventuallyLeads(t, leader)
	require.False(t, lock.Inbox.Cancelled())
	// Only its owner and rabbitmqctl can delete an exclusive queue on RabbitMQ.
	require.NoError(t, leader.Queues().Delete(soon(t), wire.LeaderInbox, false, false))
	_, open := <-lock.Inbox.Deliveries()
	require.False(t, open)
	require.True(t, lock.Inbox.Cancelled())
	require.ErrorIs(t, lock.Inbox.Err(), broker.ErrCancelled)
	require.NoError(t, leader.Err())
	require.NoError(t, lock.Inbox.Close())
	requireEnds(t, lock.Publisher.Done())
}

// A queue of another kind in the lock's place is refused: two of its consumers could both be
// active.
func TestForeignQueueIsNotUsedAsLock(t *testing.T) {
	for name, args := range map[string]amqp.Table{
		"classic": nil,
		"quorum without a single active consumer": {"x-queue-type": "quorum"},
		"classic with a single active consumer":   {"x-single-active-consumer": true, "x-message-ttl": int32(5000)},
	} {
		t.Run(name, func(t *testing.T) {
			v := brokertest.New(t)
			_, err := client(t, v.AMQPURL()).QueueDeclare(wire.LeaderInbox, true, false, false, false, args)
			require.NoError(t, err)
			_, err = dial(t, v.AMQPURL()).Lock(soon(t))
			if v.Features(t).ExclusiveLock {
				require.ErrorIs(t, err, broker.ErrLocked)
			} else {
				require.ErrorIs(t, err, broker.ErrForeignLock)
			}
		})
	}
}

// Sidecars of older versions use an exclusive queue as the lock. The two kinds of queue exclude
// each other, so a rolling upgrade never has two leaders.
func TestOldAndNewSidecarsNeverShareLock(t *testing.T) {
	v := brokertest.New(t)
	old := func() (*amqp.Connection, error) {
		conn, err := amqp.Dial(v.AMQPURL())
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		ch, err := conn.Channel()
		require.NoError(t, err)
		_, err = ch.QueueDeclare(wire.LeaderInbox, false, false, true, false, nil)
		return conn, err
	}
	predecessor, err := old()
	require.NoError(t, err)
	conn := dial(t, v.AMQPURL())
	for range 3 {
		_, err := conn.Lock(soon(t))
		require.ErrorIs(t, err, broker.ErrLocked)
	}
	require.NoError(t, predecessor.Close())
	lock := eventuallyLeads(t, conn)

	var refused *amqp.Error
	_, err = old()
	require.ErrorAs(t, err, &refused)
	require.Equal(t, amqp.ResourceLocked, refused.Code, "an older sidecar treats this as locked")
	require.NoError(t, conn.Close())
	if lock.Exclusive {
		return
	}
	_, err = old()
	require.ErrorAs(t, err, &refused, "the queue is refused while no new sidecar runs too")
	require.Equal(t, amqp.ResourceLocked, refused.Code)
}

var races = flag.Int("races", 30, "how often two connections race for the lock")

// Of two connections that claim the lock at the same moment, exactly one gets it.
func TestRacingConnectionsNeverShareLock(t *testing.T) {
	v := brokertest.New(t)
	const rivals = 2
	for range *races {
		conns := make([]*broker.Conn, rivals)
		for i := range conns {
			conns[i] = dial(t, v.AMQPURL())
		}
		begin, got, failed := make(chan struct{}), make([]*broker.Lock, rivals), make([]error, rivals)
		var racing sync.WaitGroup
		for i, conn := range conns {
			racing.Go(func() {
				<-begin
				got[i], failed[i] = conn.Lock(soon(t))
			})
		}
		close(begin)
		racing.Wait()
		if slices.ContainsFunc(failed, func(err error) bool { return errors.Is(err, broker.ErrLost) || broker.IsAway(err) }) {
			// RabbitMQ 3.10 may refuse or end one of two connections that race to declare a quorum
			// queue.
			for _, conn := range conns {
				_ = conn.Close()
			}
			continue
		}
		winners := 0
		for i, lock := range got {
			if lock == nil {
				require.ErrorIs(t, failed[i], broker.ErrLocked)
			} else if lock.Exclusive {
				winners++
			}
		}
		if !v.Features(t).ExclusiveLock {
			winners = pinged(t, got)
		}
		require.Equal(t, 1, winners)
		for i, conn := range conns {
			if got[i] == nil {
				require.NoError(t, conn.Close())
			}
		}
		for i, conn := range conns {
			if got[i] != nil && got[i].Exclusive {
				requireNoPhantom(t, got[i])
			}
			require.NoError(t, conn.Close())
		}
	}
}

// requireNoPhantom checks that a lock either works or is known to be lost. LavinMQ may delete the
// queue when the connection that lost the race ends.
func requireNoPhantom(t *testing.T, lock *broker.Lock) {
	t.Helper()
	err := lock.Publisher.SendMandatory(soon(t), wire.Message{Key: wire.LeaderInbox, CorrelationID: "works"})
	if err == nil {
		select {
		case d := <-lock.Inbox.Deliveries():
			require.True(t, d.CorrelationID == "works" || lock.Inbox.Cancelled())
		case <-time.After(time.Minute):
			require.FailNow(t, "the lock neither works nor is lost")
		}
		return
	}
	select {
	case <-lock.Inbox.Done(): // it shares its channel with the publisher
	case <-time.After(time.Minute):
		require.FailNow(t, "the queue was deleted and its consumer has not ended")
	}
}

// pinged sends pings through all claims, and returns how many claims got any.
func pinged(t *testing.T, locks []*broker.Lock) (active int) {
	t.Helper()
	const each = 5
	for i, lock := range locks {
		for range each {
			require.NoError(t, lock.Ping(fmt.Sprint(i)))
		}
	}
	got := make([]int, len(locks))
	for sum := 0; sum < each*len(locks); sum++ {
		select {
		case <-locks[0].Inbox.Deliveries():
			got[0]++
		case <-locks[1].Inbox.Deliveries():
			got[1]++
		case <-time.After(time.Minute):
			require.FailNow(t, "pings are missing")
		}
	}
	for _, n := range got {
		if n > 0 {
			active++
		}
	}
	return active
}

// A claim is known to the leader's streams before it has the lock. So it can publish to a stream
// that is deleted and created again meanwhile.
func TestClaimPublishesToRecreatedStreams(t *testing.T) {
	v := brokertest.New(t)
	conn := dial(t, v.AMQPURL())
	_, err := conn.Topology().Assert(t.Context())
	require.NoError(t, err)
	lock := eventuallyLeads(t, conn)
	for _, stream := range append([]string{wire.Journal}, wire.EntryStreams...) {
		require.NoError(t, conn.Queues().Delete(t.Context(), stream, false, false))
	}
	_, err = conn.Topology().Assert(t.Context())
	require.NoError(t, err)
	for _, pub := range []*broker.Publisher{lock.Publisher, lock.Scout} {
		for _, stream := range []string{wire.Journal, wire.Gated} {
			require.NoError(t, pub.Send(soon(t), wire.Message{Key: stream, Body: []byte("{}")}))
		}
	}
	require.Len(t, v.ReadStream(t, wire.Journal), 2)
	require.Len(t, v.ReadStream(t, wire.Gated), 2)
}

// After their channel is lost, pings are sent on a new one.
func TestPingsContinueOnNewChannel(t *testing.T) {
	v := brokertest.New(t)
	lock := eventuallyLeads(t, dial(t, v.AMQPURL()))
	if lock.Exclusive {
		t.Skip("an exclusive lock needs no pings")
	}
	require.NoError(t, lock.EndPings())
	require.ErrorIs(t, lock.Ping("lost"), broker.ErrLost)
	require.NoError(t, lock.RenewPings(soon(t)))
	require.True(t, leads(t, lock, time.Minute))
}

// A claim that succeeds after its context ended is given up. Otherwise no sidecar would lead.
func TestLateLockIsReleased(t *testing.T) {
	v := brokertest.New(t)
	proxy := brokertest.NewProxy(t, v.AMQPURL())
	late, rival := dial(t, proxy.URL()), dial(t, v.AMQPURL())
	proxy.Slow(t, 150*time.Millisecond)
	// Each step takes at least 300 ms. So the deadline comes after the channel is open and the lock
	// is claimed, and before the consumer is confirmed.
	ctx, cancel := context.WithTimeout(context.Background(), 700*time.Millisecond)
	defer cancel()
	_, err := late.Lock(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	eventuallyLeads(t, rival)
	require.NoError(t, late.Err())
}

func TestAnswerQueueIsExclusive(t *testing.T) {
	v := brokertest.New(t)
	asker, leader := dial(t, v.AMQPURL()), dial(t, v.AMQPURL())
	name, answers, err := asker.Answers(soon(t))
	require.NoError(t, err)
	require.Regexp(t, `^amq\.`, name)
	require.NoError(t, publisher(t, leader).Reply(soon(t), wire.Delivery{ReplyTo: name, CorrelationID: "7"}, []byte(`{}`)))
	require.Equal(t, "7", next(t, answers).CorrelationID)
	_, err = leader.Consume(soon(t), name, 1, false)
	requireReason(t, err, broker.ReasonExclusive)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, _, err = asker.Answers(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

// The lock of LavinMQ is the exclusive consumer, because LavinMQ may give an exclusive queue to two
// connections.
func TestExclusiveLockIsConsumedExclusively(t *testing.T) {
	v := brokertest.New(t)
	conn := dial(t, v.AMQPURL())
	conn.LockExclusively()
	lock, err := conn.Lock(soon(t))
	require.NoError(t, err)
	require.True(t, lock.Exclusive)
	ch, err := conn.AMQP().Channel()
	require.NoError(t, err)
	_, err = ch.Consume(wire.LeaderInbox, "", false, false, false, false, nil)
	var refused *amqp.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, amqp.AccessRefused, refused.Code)
}
