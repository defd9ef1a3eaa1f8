package broker_test

import (
	"fmt"
	"sync"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// governedVhost returns a virtual host where jobs.direct has its alternate exchange.
func governedVhost(t *testing.T) (*brokertest.Vhost, *broker.Conn) {
	v := brokertest.New(t)
	conn := dial(t, v.AMQPURL())
	makeAll(t, v.AMQPURL(), conn)
	has, err := publisher(t, conn).HasAlternate(soon(t))
	require.NoError(t, err)
	require.False(t, has, "no policy is set yet")
	_, err = management(t, v).Policies(soon(t))
	require.NoError(t, err)
	brokertest.Eventually(t, func() bool {
		has, err := publisher(t, conn).HasAlternate(soon(t))
		return err == nil && has
	}, "the policy is in effect")
	return v, conn
}

// Jobs that clients publish while a queue is switched back and forth are in one place each.
func TestSwitchOfGovernedQueueLosesAndDoublesNothing(t *testing.T) {
	v, conn := governedVhost(t)
	require.NoError(t, conn.Queues().Ensure(soon(t), "a"))
	before := len(v.ReadStream(t, wire.Gated))
	var all sync.WaitGroup
	done := make(chan struct{})
	sent := make([]int, 3)
	for i := range sent {
		p := publisher(t, conn)
		all.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := p.Send(soon(t), wire.Message{Exchange: wire.ExchangeDirect, Key: "a", MessageID: fmt.Sprint(i, " ", sent[i])}); err != nil {
					t.Error(err)
					return
				}
				sent[i]++
			}
		})
	}
	for range 20 {
		require.NoError(t, conn.Queues().Direct(soon(t), broker.Route{Queue: "a", To: wire.Gated}))
		require.NoError(t, conn.Queues().Direct(soon(t), broker.Route{Queue: "a", To: "queue.a"}))
	}
	close(done)
	all.Wait()
	want := sent[0] + sent[1] + sent[2]
	require.NotZero(t, want)
	gated := len(v.ReadStream(t, wire.Gated)) - before
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.a")+gated == want }, "each job is in one place")
	require.NotZero(t, gated)
}

// jobs.full refuses what clients publish, and what Millrace fires does not go there.
func TestFullQueueRefusesJobs(t *testing.T) {
	_, conn := governedVhost(t)
	require.NoError(t, conn.Queues().EnsureRouted(soon(t), "a"))
	require.NoError(t, conn.Topology().EnsureFull(soon(t)))
	require.NoError(t, conn.Topology().EnsureFull(soon(t)), "it can be repeated")
	require.NoError(t, conn.Queues().Direct(soon(t), broker.Route{Queue: "a", To: wire.Full, Capped: true}))
	p := publisher(t, conn)
	for range 3 {
		err := p.SendMandatory(soon(t), wire.Message{Exchange: wire.ExchangeDirect, Key: "a"})
		require.Error(t, err)
	}
	require.NoError(t, p.SendMandatory(soon(t), wire.Message{Exchange: wire.ExchangeRoute, Key: "a"}))
	require.NoError(t, conn.Queues().Direct(soon(t), broker.Route{Queue: "a", To: wire.Gated, Capped: true}))
	require.NoError(t, p.SendMandatory(soon(t), wire.Message{Exchange: wire.ExchangeDirect, Key: "a"}))
}

func TestDirected(t *testing.T) {
	v, conn := governedVhost(t)
	require.NoError(t, conn.Queues().Ensure(soon(t), "a"))
	require.NoError(t, conn.Queues().EnsureRouted(soon(t), "b"))
	require.NoError(t, conn.Queues().Direct(soon(t), broker.Route{Queue: "b", To: wire.Gated}))
	require.NoError(t, client(t, v.AMQPURL()).QueueBind("queue.b", "b", wire.ExchangeDirect, false, amqp.Table(nil)))
	all, err := management(t, v).Directed(soon(t))
	require.NoError(t, err)
	require.Equal(t, []string{"queue.a"}, all["a"])
	require.ElementsMatch(t, []string{"queue.b", wire.Gated}, all["b"])
	require.NoError(t, conn.Queues().Direct(soon(t), broker.Route{Queue: "gone", To: "queue.gone"}), "a queue that does not exist is left out")
}
