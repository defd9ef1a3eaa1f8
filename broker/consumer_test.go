package broker_test

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// next returns the next delivery. The test fails if there is none.
func next(t *testing.T, c *broker.Consumer) wire.Delivery {
	t.Helper()
	select {
	case d, open := <-c.Deliveries():
		require.True(t, open, "%v", c.Err())
		return d
	case <-time.After(10 * time.Second):
		t.Fatal("no delivery")
		return wire.Delivery{}
	}
}

func consumer(t *testing.T, c *broker.Conn, queue string, prefetch int) *broker.Consumer {
	t.Helper()
	consumer, err := c.Consume(soon(t), queue, prefetch, false)
	require.NoError(t, err)
	t.Cleanup(func() { consumer.Close() })
	return consumer
}

func TestDeadLettersArriveWithPlainHeaders(t *testing.T) {
	v := brokertest.New(t)
	conn := dial(t, v.AMQPURL())
	makeAll(t, v.AMQPURL(), conn)
	put(t, v, "/api/policies/"+v.Name+"/dlx", `{"pattern":"^queue\\.","definition":{"dead-letter-exchange":"jobs.dead"}}`)
	require.NoError(t, conn.Queues().Ensure(soon(t), "a"))
	p := publisher(t, conn)
	work, dead := consumer(t, conn, "queue.a", 10), consumer(t, conn, wire.DeadLetters, 10)
	var got wire.Delivery
	require.Eventually(t, func() bool { // until the policy applies
		require.NoError(t, p.Send(soon(t), wire.Message{Exchange: wire.ExchangeFire, Key: "a", MessageID: "jid", Body: []byte(`{"n":1}`),
			Headers: map[string]any{"millrace-op": "fired"}, Timestamp: time.Unix(1_800_000_000, 0), Priority: 3}))
		require.NoError(t, work.Reject(next(t, work).Tag, false))
		select {
		case got = <-dead.Deliveries():
			return true
		case <-time.After(200 * time.Millisecond):
			return false
		}
	}, time.Minute, time.Millisecond)
	deaths, isList := got.Headers["x-death"].([]any)
	require.True(t, isList)
	death, isMap := deaths[0].(map[string]any)
	require.True(t, isMap)
	require.Equal(t, "queue.a", death["queue"])
	require.Equal(t, "rejected", death["reason"])
	require.IsType(t, time.Time{}, death["time"])
	require.Equal(t, []any{"a"}, death["routing-keys"])
	require.Equal(t, "fired", got.Headers["millrace-op"])
	require.Equal(t, []string{"jid", v.Owner.Name, "a", "jobs.dead", `{"n":1}`}, []string{got.MessageID, got.UserID, got.Key, got.Exchange, string(got.Body)})
	require.EqualValues(t, 3, got.Priority)
	require.EqualValues(t, 1_800_000_000, got.Timestamp.Unix())
	require.NoError(t, dead.Ack(got.Tag, false))
}

func TestPrefetchAndRequeue(t *testing.T) {
	v := brokertest.New(t)
	ch := client(t, v.AMQPURL())
	_, err := ch.QueueDeclare("q", true, false, false, false, nil)
	require.NoError(t, err)
	conn := dial(t, v.AMQPURL())
	p := publisher(t, conn)
	for range 10 {
		require.NoError(t, p.Send(soon(t), wire.Message{Key: "q"}))
	}
	c := consumer(t, conn, "q", 3)
	ready := func() int {
		messages, _, err := conn.Queues().Depth(soon(t), "q")
		require.NoError(t, err)
		return messages
	}
	require.Eventually(t, func() bool { return ready() == 7 }, time.Minute, 5*time.Millisecond)
	next(t, c)
	second := next(t, c)
	require.NoError(t, c.Ack(second.Tag, true))
	require.Eventually(t, func() bool { return ready() == 5 }, time.Minute, 5*time.Millisecond)
	require.NoError(t, c.Reject(next(t, c).Tag, true))
	require.NoError(t, c.Close())
	require.NoError(t, c.Close())
	_, open := <-c.Deliveries()
	require.False(t, open)
	require.False(t, c.Cancelled())
	require.ErrorIs(t, c.Err(), broker.ErrClosed)
	require.Eventually(t, func() bool { return ready() == 8 }, time.Minute, 5*time.Millisecond)
	require.ErrorIs(t, c.Ack(1, false), broker.ErrLost)
	require.ErrorIs(t, c.Reject(1, false), broker.ErrLost)
}

func TestDeletedQueueEndsConsumer(t *testing.T) {
	v := brokertest.New(t)
	ch := client(t, v.AMQPURL())
	_, err := ch.QueueDeclare("q", true, false, false, false, nil)
	require.NoError(t, err)
	conn := dial(t, v.AMQPURL())
	p := publisher(t, conn)
	for range 5 {
		require.NoError(t, p.Send(soon(t), wire.Message{Key: "q"}))
	}
	c := consumer(t, conn, "q", 5)
	_, err = ch.QueueDelete("q", false, false, false)
	require.NoError(t, err)
	<-c.Done()
	require.True(t, c.Cancelled())
	require.Len(t, c.Left(), 5, "no other consumer has the deliveries")
	require.ErrorIs(t, c.Err(), broker.ErrCancelled)
	require.NoError(t, conn.Err())
}

func TestExclusiveConsumerExcludesOthers(t *testing.T) {
	v := brokertest.New(t)
	ch := client(t, v.AMQPURL())
	_, err := ch.QueueDeclare("q", true, false, false, false, nil)
	require.NoError(t, err)
	conn := dial(t, v.AMQPURL())
	c, err := conn.Consume(soon(t), "q", 1, true)
	require.NoError(t, err)
	_, err = conn.Consume(soon(t), "q", 1, false)
	requireReason(t, err, broker.ReasonAccess)
	require.NoError(t, c.Close())
}

func TestUnknownTagEndsOnlyTheConsumer(t *testing.T) {
	v := brokertest.New(t)
	ch := client(t, v.AMQPURL())
	_, err := ch.QueueDeclare("q", true, false, false, false, amqp.Table{})
	require.NoError(t, err)
	conn := dial(t, v.AMQPURL())
	c := consumer(t, conn, "q", 1)
	require.NoError(t, c.Ack(99, false))
	<-c.Done()
	require.ErrorIs(t, c.Err(), broker.ErrLost)
	require.ErrorContains(t, c.Err(), "unknown delivery tag")
	require.False(t, c.Cancelled())
	require.NoError(t, conn.Err())
}
