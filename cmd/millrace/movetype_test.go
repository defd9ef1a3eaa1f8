package main

import (
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// A queue is moved to another type from the command line, through a sidecar that does not lead.
func TestMoveType(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	start(t, beside(v)).leads(t)
	s := start(t, beside(v))
	s.ready(t)
	says := func(args ...string) string {
		r := millrace(t, append(append([]string{"queues"}, args...), s.flags...)...)
		return r.out + r.err
	}
	require.Equal(t, "queue \"q\" exists\n", says("make", "q"))
	v.Publish(t, wire.ExchangeDirect, "q", amqp.Publishing{Body: []byte(`{"class":"C","jid":"a"}`)}, amqp.Publishing{Body: []byte(`{"class":"C","jid":"b"}`)})
	require.Contains(t, says("move-type", "missing", "classic"), "no such queue")
	require.Equal(t, "queue \"q\" is a classic queue already\n", says("move-type", "q", "classic"))
	if f := v.Features(t); !f.QuorumPriorities {
		require.Contains(t, says("move-type", "q", "quorum"), "has no quorum queues with strict priorities")
		require.Contains(t, says("move-type", "q", "quorum", "--yes"), "this needs RabbitMQ 4.3 or later")
		require.Contains(t, says("peek", "q"), `"jid":"b"`)
		return
	}
	plan := says("move-type", "q", "quorum", "--dry-run")
	require.Contains(t, plan, "queue \"q\": a classic queue on ")
	require.Contains(t, plan, "ready jobs:     2, ")
	require.Contains(t, plan, "new arguments:  x-queue-type=quorum\n")
	require.Contains(t, says("move-type", "q", "quorum"), "Make it a quorum queue? Its jobs wait meanwhile, at least 12 seconds. There is no terminal to ask on: add --yes")
	did := says("move-type", "q", "quorum", "--yes", "--reason", "a third node")
	require.Contains(t, did, "queue \"q\" is a quorum queue now, 2 jobs went through jobs.gated\n")
	require.Contains(t, did, "0 unacknowledged")
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.q") == 2 }, "they are in it")
	brokertest.Eventually(t, func() bool {
		journal := millrace(t, append([]string{"journal"}, s.flags...)...).out
		return strings.Contains(journal, "retyped") && strings.Contains(journal, "a third node")
	}, "the journal has it")
}
