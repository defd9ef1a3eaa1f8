package broker_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// filled returns a broker with these messages in a queue.
func filled(t *testing.T, queue string, bodies ...string) (*brokertest.Vhost, *broker.Conn) {
	t.Helper()
	v := brokertest.New(t)
	_, err := v.Channel(t).QueueDeclare(queue, true, false, false, false, nil)
	require.NoError(t, err)
	for _, body := range bodies {
		v.Publish(t, "", queue, amqp.Publishing{Body: []byte(body)})
	}
	return v, dial(t, v.AMQPURL())
}

func texts(deliveries []wire.Delivery) (found []string) {
	for _, d := range deliveries {
		found = append(found, string(d.Body))
	}
	return found
}

func TestPeekRequeues(t *testing.T) {
	v, conn := filled(t, "queue.a", "1", "2", "3")
	for range 2 {
		found, err := conn.Queues().Peek(soon(t), "queue.a", 2)
		require.NoError(t, err)
		require.Equal(t, []string{"1", "2"}, texts(found))
	}
	found, err := conn.Queues().Peek(soon(t), "queue.a", 9)
	require.NoError(t, err)
	require.Equal(t, []string{"1", "2", "3"}, texts(found))
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.a") == 3 }, "all are in the queue again")
}

func TestPurge(t *testing.T) {
	v, conn := filled(t, "queue.a", "1", "2", "3")
	dropped, err := conn.Queues().Purge(soon(t), "queue.a")
	require.NoError(t, err)
	require.Equal(t, 3, dropped)
	require.Zero(t, v.QueueLength(t, "queue.a"))
	found, err := conn.Queues().Peek(soon(t), "queue.a", 9)
	require.NoError(t, err)
	require.Empty(t, found)
}

func TestMissingQueue(t *testing.T) {
	_, conn := filled(t, "queue.a")
	_, err := conn.Queues().Purge(soon(t), "queue.b")
	requireReason(t, err, broker.ReasonMissing)
	_, err = conn.Queues().Peek(soon(t), "queue.b", 1)
	requireReason(t, err, broker.ReasonMissing)
	_, err = conn.Queues().Move(soon(t), "queue.b", 1, nil)
	requireReason(t, err, broker.ReasonMissing)
	require.NoError(t, conn.Err(), "a missing queue ends a channel, not the connection")
}

// into returns a function that turns a delivery into a message for another queue.
func into(queue string) func(wire.Delivery) wire.Message {
	return func(d wire.Delivery) wire.Message { return wire.Message{Key: queue, Body: d.Body} }
}

func TestMoveKeepsOrder(t *testing.T) {
	v, conn := filled(t, "queue.a", "1", "2", "3")
	_, err := v.Channel(t).QueueDeclare("queue.b", true, false, false, false, nil)
	require.NoError(t, err)
	moved, err := conn.Queues().Move(soon(t), "queue.a", 2, into("queue.b"))
	require.NoError(t, err)
	require.Equal(t, 2, moved)
	moved, err = conn.Queues().Move(soon(t), "queue.a", 9, into("queue.b"))
	require.NoError(t, err)
	require.Equal(t, 1, moved, "Move stops when the queue is empty")
	require.Zero(t, v.QueueLength(t, "queue.a"))
	found, err := conn.Queues().Peek(soon(t), "queue.b", 9)
	require.NoError(t, err)
	require.Equal(t, []string{"1", "2", "3"}, texts(found))
}

func TestMoveKeepsRefusedMessages(t *testing.T) {
	v, conn := filled(t, "queue.a", "1", "2", "3")
	_, err := v.Channel(t).QueueDeclare("queue.b", true, false, false, false, amqp.Table{"x-max-length": 1, "x-overflow": "reject-publish"})
	require.NoError(t, err)
	moved, err := conn.Queues().Move(soon(t), "queue.a", 9, into("queue.b"))
	require.ErrorContains(t, err, "refused")
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.a")+moved == 3 }, "a message that was not moved stays in its queue")
}

func TestMoveEndsWithContext(t *testing.T) {
	v, conn := filled(t, "queue.a", "1", "2")
	ctx, cancel := context.WithCancel(soon(t))
	moved, err := conn.Queues().Move(ctx, "queue.a", 2, func(d wire.Delivery) wire.Message {
		cancel()
		return into("queue.a")(d)
	})
	if err != nil {
		require.ErrorIs(t, err, context.Canceled)
	}
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.a") >= 2 }, "%d were moved, and none is lost", moved)
}

// PauseQueue pauses a queue on a broker that can do that, and sends no request to any other broker.
func TestPauseQueue(t *testing.T) {
	var asked []string
	product := `{"lavinmq_version":"2.9.1"}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/overview" {
			_, _ = w.Write([]byte(product))
			return
		}
		asked = append(asked, r.Method+" "+r.URL.EscapedPath())
	}))
	defer server.Close()
	lavin := open(t, server.URL, "v")
	require.NoError(t, lavin.PauseQueue(soon(t), "queue.a/b", true))
	require.NoError(t, lavin.PauseQueue(soon(t), "queue.a/b", false))
	product = `{"rabbitmq_version":"4.3.0"}`
	require.NoError(t, open(t, server.URL, "v").PauseQueue(soon(t), "queue.a", true))
	require.Equal(t, []string{"PUT /api/queues/v/queue.a%2Fb/pause", "PUT /api/queues/v/queue.a%2Fb/resume"}, asked)
}

func TestAlarmsAreListed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := `{"rabbitmq_version":"4.3.0"}`
		if r.URL.Path == "/api/nodes" {
			answer = `[{"name":"a","running":true,"mem_alarm":true,"partitions":["b"]},{"name":"b","running":true,"disk_free_alarm":true}]`
		}
		_, _ = w.Write([]byte(answer))
	}))
	defer server.Close()
	alarms, err := open(t, server.URL, "v").Alarms(soon(t))
	require.NoError(t, err)
	require.Equal(t, []string{"memory alarm on a", "a is partitioned from b", "disk alarm on b"}, alarms)
}

func TestCausedByClient(t *testing.T) {
	for err, want := range map[error]bool{
		&amqp.Error{Code: amqp.PreconditionFailed, Server: true}:                                        true,
		&amqp.Error{Code: amqp.ConnectionForced, Server: true}:                                          false, // it is shutting down
		&amqp.Error{Code: amqp.ChannelError}:                                                            false, // the client's own
		errors.New("something else"):                                                                    false,
		fmt.Errorf("%w: %w", broker.ErrAlarm, &amqp.Error{Code: amqp.PreconditionFailed, Server: true}): false,
	} {
		require.Equal(t, want, broker.CausedByClient(err), err)
	}
}

func TestConnectionReportsUserAndVHost(t *testing.T) {
	v := brokertest.New(t)
	conn := dial(t, v.AMQPURL())
	require.Equal(t, []string{v.Owner.Name, v.Name}, []string{conn.User(), conn.VHost()})
}

// Transfer removes the messages that some queue has taken. The others stay where they were.
func TestTransfer(t *testing.T) {
	v, conn := filled(t, "queue.a", "1", "2", "3", "4")
	_, err := v.Channel(t).QueueDeclare("queue.b", true, false, false, false, nil)
	require.NoError(t, err)
	to := func(queue func(text string) string) broker.Transform[string] {
		return func(d wire.Delivery) (*wire.Message, *string, error) {
			text := string(d.Body)
			m := &wire.Message{Key: queue(text), Body: d.Body}
			if text == "2" {
				return m, nil, nil
			}
			return m, &text, nil
		}
	}
	handed, err := broker.Transfer(soon(t), conn, "queue.a", 3, to(func(string) string { return "queue.b" }))
	require.NoError(t, err)
	require.Equal(t, []string{"1", "3"}, handed)
	require.Equal(t, 3, v.QueueLength(t, "queue.b"))
	handed, err = broker.Transfer(soon(t), conn, "queue.a", 9, to(func(string) string { return "queue.nowhere" }))
	require.ErrorIs(t, err, broker.ErrReturned)
	require.Empty(t, handed)
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.a") == 1 }, "the message stays in its queue")

	wrong := errors.New("not now")
	_, err = broker.Transfer(soon(t), conn, "queue.a", 9, func(wire.Delivery) (*wire.Message, *string, error) { return nil, nil, wrong })
	require.ErrorIs(t, err, wrong)
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.a") == 1 }, "the message goes back to its queue")
	handed, err = broker.Transfer(soon(t), conn, "queue.a", 9, func(wire.Delivery) (*wire.Message, *string, error) { return nil, nil, nil })
	require.NoError(t, err)
	require.Empty(t, handed)
	require.Zero(t, v.QueueLength(t, "queue.a"), "the message is dropped")
	_, err = broker.Transfer(soon(t), conn, "queue.nowhere", 9, to(func(string) string { return "queue.b" }))
	requireReason(t, err, broker.ReasonMissing)
}

// RabbitMQ forgets what is acknowledged to a quorum queue beyond 32 messages when the channel
// closes. What was moved then came again.
func TestQuorumQueueForgetsNoAcknowledgement(t *testing.T) {
	v, conn := filled(t, "queue.b")
	const n = 100
	for name, move := range map[string]func(queue string) (int, error){
		"Move": func(queue string) (int, error) {
			return conn.Queues().Move(soon(t), queue, n, into("queue.b"))
		},
		"Transfer": func(queue string) (int, error) {
			all, err := broker.Transfer(soon(t), conn, queue, n, func(d wire.Delivery) (*wire.Message, *string, error) {
				text, m := string(d.Body), into("queue.b")(d)
				return &m, &text, nil
			})
			return len(all), err
		},
	} {
		queue := "queue." + name
		ch := v.Channel(t)
		_, err := ch.QueueDeclare(queue, true, false, false, false, amqp.Table{"x-queue-type": "quorum"})
		require.NoError(t, err)
		for range 5 {
			for i := range n {
				v.Publish(t, "", queue, amqp.Publishing{Body: []byte(fmt.Sprint(i))})
			}
			moved, err := move(queue)
			require.NoError(t, err)
			require.Equal(t, n, moved)
			left, ok, err := ch.Get(queue, true)
			require.NoError(t, err)
			require.False(t, ok, "%s: %s came again", name, left.Body)
		}
	}
}
