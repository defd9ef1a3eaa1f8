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

var streamArgs = amqp.Table{"x-queue-type": "stream"}

// declareAsClient declares the topology as the specification requires of every client.
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

func TestTopologyMatchesClients(t *testing.T) {
	v := brokertest.New(t)
	conn := dial(t, v.AMQPURL())
	first, err := conn.Topology().Assert(soon(t))
	require.NoError(t, err)
	require.True(t, first.JournalCreated)
	require.Len(t, first.Created, 5)
	require.Empty(t, first.Findings)
	require.NoError(t, conn.Topology().EnsureRouting(soon(t)))
	first, faults := wanted(t, v.AMQPURL())
	require.Len(t, first.Created, 9)
	require.Empty(t, first.Findings)
	require.Empty(t, faults)

	declareAsClient(t, client(t, v.AMQPURL()))
	require.NoError(t, conn.Queues().Ensure(soon(t), "mail"))
	require.NoError(t, conn.Queues().Ensure(soon(t), "other"))
	declareAsClient(t, client(t, v.AMQPURL()))

	again, err := conn.Topology().Assert(soon(t))
	require.NoError(t, err)
	require.Equal(t, broker.TopologyReport{}, again)
	require.NoError(t, conn.Topology().EnsureRouting(soon(t)))
	again, faults = wanted(t, v.AMQPURL())
	require.Equal(t, broker.TopologyReport{}, again)
	require.Empty(t, faults)
	require.NoError(t, conn.Err())
}

func TestTopologyKeepsQueuesOfClients(t *testing.T) {
	v := brokertest.New(t)
	ch := client(t, v.AMQPURL())
	declareAsClient(t, ch)
	_, err := ch.QueueDelete("heartbeats", false, false, false)
	require.NoError(t, err)
	_, err = ch.QueueDeclare("heartbeats", true, false, false, false, amqp.Table{"x-queue-type": "stream", "x-max-age": "1h"})
	require.NoError(t, err)

	conn := dial(t, v.AMQPURL())
	top, err := conn.Topology().Assert(soon(t))
	require.NoError(t, err)
	require.Equal(t, broker.TopologyReport{JournalCreated: true, Created: []string{"queue job_journal", "queue jobs.gated"}}, top)
	top, faults := wanted(t, v.AMQPURL())
	require.Empty(t, faults)
	require.Len(t, top.Created, 6)
	require.Len(t, top.Findings, 1)
	require.Equal(t, "queue heartbeats", top.Findings[0].Subject)
	if conn.Features().RefusalsNameArguments {
		require.Contains(t, top.Findings[0].Problem, "x-max-age")
	}
	require.Contains(t, top.Findings[0].Problem, "was declared otherwise")

	_, err = ch.QueueDeclare("heartbeats", true, false, false, false, amqp.Table{"x-queue-type": "stream", "x-max-age": "1h"})
	require.NoError(t, err, "the stream must still be as the client declared it")
}

func TestCreationOfJournalIsReported(t *testing.T) {
	v := brokertest.New(t)
	conn := dial(t, v.AMQPURL())
	top, err := conn.Topology().Assert(soon(t))
	require.NoError(t, err)
	require.True(t, top.JournalCreated)
	require.NoError(t, conn.Queues().Delete(soon(t), wire.Retries, false, false))
	top, err = conn.Topology().Assert(soon(t))
	require.NoError(t, err)
	require.False(t, top.JournalCreated)
	require.Equal(t, []string{"queue retries"}, top.Created)
	require.NoError(t, conn.Queues().Delete(soon(t), wire.Journal, false, false))
	top, err = conn.Topology().Assert(soon(t))
	require.NoError(t, err)
	require.True(t, top.JournalCreated)
}

func TestTopologyRefusesQueueInPlaceOfStream(t *testing.T) {
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
	_, err = conn.Topology().Assert(soon(t))
	require.ErrorContains(t, err, "scheduled_jobs is not a stream")
	require.ErrorContains(t, conn.Topology().EnsureRouting(soon(t)), "jobs.route")
	require.NoError(t, conn.Err())
	messages, consumers, err := conn.Queues().Depth(soon(t), "scheduled_jobs")
	require.NoError(t, err)
	require.Equal(t, []int{1, 0}, []int{messages, consumers}, "its message stays, and it is not consumed")
}

// Each thing that Millrace wants is created again, independently of the others. Only a leader
// creates jobs.direct.
func TestTopologyPartsAreCreatedIndependently(t *testing.T) {
	v := brokertest.New(t)
	conn := dial(t, v.AMQPURL())
	makeAll(t, v.AMQPURL(), conn)
	ch := client(t, v.AMQPURL())
	for _, queue := range []string{"heartbeats", "job_metrics", "job_metrics_rollups", "jobs.begins", "jobs.ends", "jobs.letters"} {
		_, err := ch.QueueDelete(queue, false, false, false)
		require.NoError(t, err)
	}
	for _, exchange := range []string{"jobs.dead", "jobs.control", "jobs.direct"} {
		require.NoError(t, ch.ExchangeDelete(exchange, false, false))
	}
	top, faults, err := broker.AssertWanted(soon(t), broker.Config{AMQPURL: v.AMQPURL()}, false)
	require.NoError(t, err)
	require.Len(t, top.Created, 8)
	require.Len(t, faults, 1)
	require.Equal(t, broker.SubjectDirect, faults[0].Subject)
	require.True(t, broker.IsMissing(faults[0].Err), "%v", faults[0].Err)
	v.Publish(t, "jobs.dead", "", amqp.Publishing{Body: []byte("x")})
	require.Equal(t, 1, v.QueueLength(t, "jobs.letters"), "the queue is bound again")
	top, faults = wanted(t, v.AMQPURL())
	require.Empty(t, faults)
	require.Equal(t, []string{"exchange jobs.direct"}, top.Created)
}

// Something that cannot be used as it is does not keep the rest from being created.
func TestUnusablePartDoesNotBlockOthers(t *testing.T) {
	v := brokertest.New(t)
	ch := client(t, v.AMQPURL())
	_, err := ch.QueueDeclare("heartbeats", true, false, false, false, nil)
	require.NoError(t, err)
	top, faults := wanted(t, v.AMQPURL())
	require.Len(t, faults, 1)
	require.Equal(t, "queue heartbeats", faults[0].Subject)
	require.NotEmpty(t, faults[0].Costs)
	require.ErrorContains(t, faults[0].Err, "not a stream")
	require.False(t, broker.IsAway(faults[0].Err))
	require.Contains(t, top.Created, "queue jobs.ends", "the last of them")
}

// A queue whose process has crashed is unavailable. It is not created again, nor listed as missing.
// If Millrace needs it, the assertion fails within five seconds.
func TestUnavailableTopology(t *testing.T) {
	v := brokertest.Erlang(t)
	conn := dial(t, v.AMQPURL())
	makeAll(t, v.AMQPURL(), conn)
	for _, name := range []string{"jobs.letters", "retries"} {
		v.SetQueueState(t, name, "crashed")
	}
	top, faults := wanted(t, v.AMQPURL())
	require.Equal(t, broker.TopologyReport{}, top)
	require.Len(t, faults, 1)
	for _, f := range faults {
		require.True(t, broker.IsAway(f.Err), "%v", f.Err)
	}
	begun := time.Now()
	_, err := conn.Topology().Assert(soon(t))
	require.ErrorContains(t, err, "retries")
	require.True(t, broker.IsAway(err), "%v", err)
	require.Less(t, time.Since(begun), 15*time.Second)
	for _, name := range []string{"jobs.letters", "retries"} {
		v.SetQueueState(t, name, "live")
	}
	top, faults = wanted(t, v.AMQPURL())
	require.Equal(t, broker.TopologyReport{}, top)
	require.Empty(t, faults)
	top, err = conn.Topology().Assert(soon(t))
	require.NoError(t, err)
	require.Equal(t, broker.TopologyReport{}, top)
}

// The old queue of dead letters is unbound once the new one is bound. Each step can be repeated.
func TestDeadLettersMoveToNewQueue(t *testing.T) {
	v := brokertest.New(t)
	ch := client(t, v.AMQPURL())
	require.NoError(t, ch.ExchangeDeclare("jobs.dead", "fanout", true, false, false, false, nil))
	_, err := ch.QueueDeclare("jobs.deadletters", true, false, false, false, nil)
	require.NoError(t, err)
	require.NoError(t, ch.QueueBind("jobs.deadletters", "", "jobs.dead", false, nil))
	v.Publish(t, "jobs.dead", "", amqp.Publishing{Body: []byte("before")})
	conn := dial(t, v.AMQPURL())
	require.Error(t, conn.Topology().RetireDeadLetters(soon(t)), "the new queue does not exist yet")
	v.Publish(t, "jobs.dead", "", amqp.Publishing{Body: []byte("meanwhile")})
	require.Equal(t, 2, v.QueueLength(t, "jobs.deadletters"), "no dead letter is lost meanwhile")
	makeAll(t, v.AMQPURL(), conn)
	for range 2 {
		require.NoError(t, conn.Topology().RetireDeadLetters(soon(t)))
	}
	v.Publish(t, "jobs.dead", "", amqp.Publishing{Body: []byte("after")})
	require.Equal(t, 2, v.QueueLength(t, "jobs.deadletters"))
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, "jobs.letters") == 1 }, "the new queue has the dead letter")
	made := queueWith(t, management(t, v), "jobs.letters", func(q broker.QueueInfo) bool { return q.Type != "" })
	want := "classic"
	if conn.Features().QuorumQueues {
		want = "quorum"
	}
	require.Equal(t, want, made.Type)
}
