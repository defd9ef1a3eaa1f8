package broker_test

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

var streamArgs = amqp.Table{"x-queue-type": "stream"}

// declareAsClient is the topology as the specification has every client write it.
func declareAsClient(t *testing.T, ch *amqp.Channel) {
	t.Helper()
	require.NoError(t, ch.ExchangeDeclare("jobs.direct", "direct", true, false, false, false, nil))
	_, err := ch.QueueDeclare("queue.mail", true, false, false, false, amqp.Table{"x-max-priority": 10})
	require.NoError(t, err)
	require.NoError(t, ch.QueueBind("queue.mail", "mail", "jobs.direct", false, nil))
	for _, name := range []string{"scheduled_jobs", "retries", "dead_jobs", "heartbeats", "job_metrics"} {
		_, err := ch.QueueDeclare(name, true, false, false, false, streamArgs)
		require.NoError(t, err, name)
	}
}

func TestTopologyIsMadeOnceAndFitsClients(t *testing.T) {
	v := brokertest.New(t)
	conn := dial(t, v.AMQPURL())
	first, err := conn.AssertTopology(soon(t))
	require.NoError(t, err)
	require.True(t, first.JournalCreated)
	require.Len(t, first.Created, 11)
	require.Empty(t, first.Findings)
	require.NoError(t, conn.MakeWay(soon(t)))

	declareAsClient(t, client(t, v.AMQPURL()))
	require.NoError(t, conn.EnsureQueue(soon(t), "mail"))
	require.NoError(t, conn.EnsureQueue(soon(t), "other"))
	declareAsClient(t, client(t, v.AMQPURL()))

	again, err := conn.AssertTopology(soon(t))
	require.NoError(t, err)
	require.Equal(t, broker.Topology{}, again)
	require.NoError(t, conn.MakeWay(soon(t)))
	again, err = conn.AssertDirect(soon(t))
	require.NoError(t, err)
	require.Equal(t, broker.Topology{}, again)
	require.NoError(t, conn.Err())
}

func TestTopologyAfterClients(t *testing.T) {
	v := brokertest.New(t)
	ch := client(t, v.AMQPURL())
	declareAsClient(t, ch)
	_, err := ch.QueueDelete("heartbeats", false, false, false)
	require.NoError(t, err)
	_, err = ch.QueueDeclare("heartbeats", true, false, false, false, amqp.Table{"x-queue-type": "stream", "x-max-age": "1h"})
	require.NoError(t, err)

	conn := dial(t, v.AMQPURL())
	top, err := conn.AssertTopology(soon(t))
	require.NoError(t, err)
	require.Len(t, top.Created, 6)
	require.Len(t, top.Findings, 1)
	require.Equal(t, "queue heartbeats", top.Findings[0].Subject)
	if conn.Features().RefusalsNameArguments {
		require.Contains(t, top.Findings[0].Problem, "x-max-age")
	}
	require.Contains(t, top.Findings[0].Problem, "was declared otherwise")

	_, err = ch.QueueDeclare("heartbeats", true, false, false, false, amqp.Table{"x-queue-type": "stream", "x-max-age": "1h"})
	require.NoError(t, err, "it must still be the client's own")
}

func TestJournalCreatedOnlyWhenItWas(t *testing.T) {
	v := brokertest.New(t)
	conn := dial(t, v.AMQPURL())
	top, err := conn.AssertTopology(soon(t))
	require.NoError(t, err)
	require.True(t, top.JournalCreated)
	require.NoError(t, conn.DeleteQueue(soon(t), wire.Retries, false, false))
	top, err = conn.AssertTopology(soon(t))
	require.NoError(t, err)
	require.False(t, top.JournalCreated)
	require.Equal(t, []string{"queue retries"}, top.Created)
	require.NoError(t, conn.DeleteQueue(soon(t), wire.Journal, false, false))
	top, err = conn.AssertTopology(soon(t))
	require.NoError(t, err)
	require.True(t, top.JournalCreated)
}

func TestTopologyRefusesWhatItCannotUse(t *testing.T) {
	v := brokertest.New(t)
	ch := client(t, v.AMQPURL())
	_, err := ch.QueueDeclare("scheduled_jobs", true, false, false, false, nil)
	require.NoError(t, err)
	require.NoError(t, ch.Confirm(false))
	confirm, err := ch.PublishWithDeferredConfirm("", "scheduled_jobs", false, false, amqp.Publishing{Body: []byte("kept")})
	require.NoError(t, err)
	require.True(t, confirm.Wait())
	require.NoError(t, ch.ExchangeDeclare("jobs.route", "direct", true, false, false, false, nil))
	conn := dial(t, v.AMQPURL())
	_, err = conn.AssertTopology(soon(t))
	require.ErrorContains(t, err, "scheduled_jobs is not a stream")
	require.ErrorContains(t, conn.MakeWay(soon(t)), "jobs.route")
	require.NoError(t, conn.Err())
	messages, consumers, err := conn.QueueDepth(soon(t), "scheduled_jobs")
	require.NoError(t, err)
	require.Equal(t, []int{1, 0}, []int{messages, consumers}, "what is in it is left alone")
}
