package scheduler

import (
	"context"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/scheduler/ledger"
)

func TestProofOfQueues(t *testing.T) {
	for name, c := range map[string]struct {
		queue broker.QueueInfo
		alone bool
		want  bool
		open  int
	}{
		"classic, one node":  {broker.QueueInfo{Name: "queue.q", Type: "classic"}, true, true, ledger.MaxOpen},
		"classic, a cluster": {broker.QueueInfo{Name: "queue.q", Type: "classic"}, false, true, maxOpenClassic},
		"quorum, one node":   {broker.QueueInfo{Name: "queue.q", Type: "quorum"}, true, false, maxOpenUnproven},
		"quorum, a cluster":  {broker.QueueInfo{Name: "queue.q", Type: "quorum"}, false, false, maxOpenUnproven},
		"stream, one node":   {broker.QueueInfo{Name: "queue.q", Type: "stream"}, true, false, maxOpenUnproven},
		"unknown, one node":  {broker.QueueInfo{Name: "queue.other", Type: "classic"}, true, true, ledger.MaxOpen},
		"unknown, a cluster": {broker.QueueInfo{Name: "queue.other", Type: "classic"}, false, false, maxOpenClassic},
		"mirrored":           {broker.QueueInfo{Name: "queue.q", Type: "classic", Mirrored: true}, false, false, maxOpenUnproven},
		"its node is away":   {broker.QueueInfo{Name: "queue.q", Type: "classic", State: "down"}, false, false, maxOpenUnproven},
	} {
		t.Run(name, func(t *testing.T) {
			p := proof{alone: c.alone, known: map[string]bool{c.queue.Name: proves(c.queue)}}
			require.Equal(t, c.want, p.of("q"))
			require.Equal(t, c.open, p.window("q"))
		})
	}
}

// A queue that is created while a sidecar leads has the window of its type.
func TestWindowsOfNewQueues(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	if v.Features(t).OneNodeServes {
		t.Skip("this broker has no quorum queues")
	}
	s, _ := runner(t, v)
	var err error
	s.mgmt, err = broker.OpenManagement(t.Context(), v.ManagementURL(), v.Name, s.log)
	require.NoError(t, err)
	defer s.mgmt.Close()
	l := &leadership{s: s, evidence: evidence{proof: proof{alone: true, known: map[string]bool{}}, newer: newNewerProof()},
		background: background{beside: func(do func(context.Context)) { go do(t.Context()) }}}
	l.core = newCore(s.entries, nil, setup{window: func(queue string) int { return l.proof.window(queue) }})
	q := l.core.queues.of("new")
	q.limit = l.proof.window("new")
	require.Equal(t, ledger.MaxOpen, q.limit)

	_, err = v.Channel(t).QueueDeclare("queue.new", true, false, false, false, amqp.Table{"x-queue-type": "quorum"})
	require.NoError(t, err)
	l.newer.ask(l, "new")
	l.newer.ask(l, "new") // also one that is bound meanwhile
	for range 2 {
		l.newer.take(l, <-l.newer.found)
		require.Equal(t, maxOpenUnproven, q.limit)
		if !l.newer.asking {
			break
		}
	}
	l.newer.ask(l, "new")
	require.False(t, l.newer.asking, "it is known")

	l.proof, q.limit = l.s.readProof(t.Context(), true, 0), ledger.MaxOpen // the broker takes too long
	require.True(t, l.proof.unread)
	l.newer.read(l)
	l.newer.take(l, <-l.newer.found)
	require.False(t, l.proof.unread)
	require.Equal(t, maxOpenUnproven, q.limit, "it is read later")
}
