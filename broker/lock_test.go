package broker_test

import (
	"context"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

func TestOneConnectionHasTheLock(t *testing.T) {
	v := brokertest.New(t)
	leader, rival := dial(t, v.AMQPURL()), dial(t, v.AMQPURL())
	inbox, err := leader.Lock(soon(t))
	require.NoError(t, err)
	for range 3 {
		_, err = rival.Lock(soon(t))
		require.ErrorIs(t, err, broker.ErrLocked)
	}
	require.NoError(t, rival.Err(), "a refusal costs no connection")

	sender := publisher(t, rival)
	require.NoError(t, sender.SendMandatory(soon(t), wire.Message{Key: wire.LeaderInbox, CorrelationID: "7", Body: []byte("{}")}))
	d := <-inbox.Deliveries()
	require.Equal(t, v.Owner.Name, d.UserID)
	require.Equal(t, "7", d.CorrelationID)
	require.NoError(t, inbox.Ack(d.Tag, false))

	require.NoError(t, inbox.Close())
	require.ErrorIs(t, inbox.Err(), broker.ErrClosed)
	_, err = rival.Lock(soon(t))
	require.ErrorIs(t, err, broker.ErrLocked, "the lock is the connection's")

	require.NoError(t, leader.Close())
	require.Eventually(t, func() bool {
		_, err = rival.Lock(soon(t))
		return err == nil
	}, time.Minute, time.Millisecond)
}

func TestALeaderLearnsThatItsLockIsGone(t *testing.T) {
	v := brokertest.New(t)
	leader := dial(t, v.AMQPURL())
	inbox, err := leader.Lock(soon(t))
	require.NoError(t, err)
	require.False(t, inbox.Cancelled())
	// RabbitMQ lets nobody else delete an exclusive queue but by rabbitmqctl; the owner may.
	require.NoError(t, leader.DeleteQueue(soon(t), wire.LeaderInbox, false, false))
	_, open := <-inbox.Deliveries()
	require.False(t, open)
	require.True(t, inbox.Cancelled())
	require.ErrorIs(t, inbox.Err(), broker.ErrCancelled)
	require.NoError(t, leader.Err())
	require.NoError(t, inbox.Close())
}

func TestAnOrdinaryQueueInTheLocksPlaceLocks(t *testing.T) {
	v := brokertest.New(t)
	_, err := client(t, v.AMQPURL()).QueueDeclare(wire.LeaderInbox, true, false, false, false, amqp.Table{})
	require.NoError(t, err)
	_, err = dial(t, v.AMQPURL()).Lock(soon(t))
	require.ErrorIs(t, err, broker.ErrLocked)
}

// A lock that comes when nobody waits for it any more must not be kept: nobody would lead.
func TestALockThatCameTooLateIsGivenBack(t *testing.T) {
	v := brokertest.New(t)
	proxy := brokertest.NewProxy(t, v.AMQPURL())
	late, rival := dial(t, proxy.URL()), dial(t, v.AMQPURL())
	proxy.Slow(t, 150*time.Millisecond)
	// Each step takes at least 300 ms: the channel is open, the lock asked for or taken, the consumer not confirmed.
	ctx, cancel := context.WithTimeout(context.Background(), 700*time.Millisecond)
	defer cancel()
	_, err := late.Lock(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	brokertest.Eventually(t, func() bool {
		_, err = rival.Lock(soon(t))
		return err == nil
	}, "the lock is free")
	require.NoError(t, late.Err())
}

func TestAnswers(t *testing.T) {
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
