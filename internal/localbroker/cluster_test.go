package localbroker

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/pause"
)

func startCluster(t *testing.T, cfg ClusterConfig) *Cluster {
	t.Helper()
	cfg.Dir = t.TempDir()
	began := time.Now()
	c, err := StartCluster(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Stop()) })
	t.Logf("the cluster was up after %v", time.Since(began).Round(time.Millisecond))
	return c
}

// eventually waits for an effect for which a cluster needs some time.
func eventually(t *testing.T, holds func() bool, what string) {
	t.Helper()
	for until := time.Now().Add(2 * time.Minute); !holds(); {
		require.True(t, time.Now().Before(until), what)
		require.NoError(t, pause.For(t.Context(), 100*time.Millisecond))
	}
}

// runningNodes returns how many running nodes a node reports. A paused node does not know.
func runningNodes(t *testing.T, b *Broker) string {
	t.Helper()
	out, err := b.Eval(t.Context(), "length(rabbit_nodes:all_running()).")
	if err != nil {
		return ""
	}
	return out
}

// A cluster survives that its nodes are killed, stopped, frozen and cut off, one after another.
func TestCluster(t *testing.T) {
	c := startCluster(t, ClusterConfig{})
	replicated := amqp.Table{"x-queue-type": "quorum"}
	_, err := channel(t, c.Nodes[0]).QueueDeclare("kept", true, false, false, false, replicated)
	require.NoError(t, err)
	putAgain := func(b *Broker, body string) {
		eventually(t, func() bool { return tryPut(t.Context(), b, body) == nil }, "a message is confirmed by the majority")
	}
	putAgain(c.Nodes[2], "one")

	pid := c.Nodes[2].Pid()
	require.NoError(t, c.Nodes[2].Kill())
	requireGone(t, pid)
	putAgain(c.Nodes[0], "two")
	require.NoError(t, c.Nodes[2].Restart(t.Context()))

	require.NoError(t, c.Nodes[1].Stop(t.Context()))
	putAgain(c.Nodes[2], "three")
	require.NoError(t, c.Nodes[1].Restart(t.Context()))
	require.NotZero(t, c.Nodes[1].Pid())
	eventually(t, func() bool { return runningNodes(t, c.Nodes[0]) == "3" }, "all are back")

	require.NoError(t, c.Nodes[0].Freeze())
	require.Error(t, probeManagement(within(t, 500*time.Millisecond), c.Nodes[0].ManagementURL()))
	require.NoError(t, c.Nodes[0].Thaw())
	eventually(t, func() bool { return probeManagement(t.Context(), c.Nodes[0].ManagementURL()) == nil }, "it answers again")

	require.NoError(t, c.Cut(t.Context(), 0))
	eventually(t, func() bool { return runningNodes(t, c.Nodes[1]) == "2" }, "one is cut off")
	putAgain(c.Nodes[1], "four")
	require.Error(t, tryPut(within(t, 3*time.Second), c.Nodes[0], "unconfirmed"), "the node alone has no majority")
	require.NoError(t, c.Heal(t.Context(), 0))
	eventually(t, func() bool { return runningNodes(t, c.Nodes[0]) == "3" && runningNodes(t, c.Nodes[1]) == "3" }, "it is back")

	cut := false
	require.NoError(t, c.Blip(t.Context(), 0, 1, 100*time.Millisecond, func() { cut = true }))
	require.True(t, cut)
	eventually(t, func() bool { return runningNodes(t, c.Nodes[0]) == "3" && runningNodes(t, c.Nodes[1]) == "3" }, "the link is back")

	var all []string
	eventually(t, func() bool { all = append(all, get(t, c.Nodes[1], "kept")...); return len(all) >= 4 }, "what was confirmed is there")
	require.Subset(t, all, []string{"one", "two", "three", "four"})
}

// If a cluster cannot start, the error says why.
func TestClusterErrors(t *testing.T) {
	_, err := StartCluster(t.Context(), ClusterConfig{})
	require.ErrorContains(t, err, "ClusterConfig.Dir is empty")
	_, err = StartCluster(t.Context(), ClusterConfig{Dir: t.TempDir(), RabbitMQ: t.TempDir()})
	require.ErrorContains(t, err, "there is no")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = StartCluster(canceled, ClusterConfig{Dir: t.TempDir()})
	require.ErrorIs(t, err, context.Canceled)
}

// A LavinMQ cluster can be started, and its nodes can be killed, if a LavinMQ is named.
func TestLavinMQCluster(t *testing.T) {
	const name = "MILLRACE_TEST_LAVINMQ"
	program := os.Getenv(name)
	if program == "" {
		t.Skip(name + " names no program")
	}
	c := startCluster(t, ClusterConfig{LavinMQ: program})
	require.Len(t, c.Etcds(), 3)
	leader := c.Leading(t.Context())
	require.NotEqual(t, -1, leader)
	for i, b := range c.Nodes {
		require.Contains(t, b.AMQPURL(), "@"+host(i)+":")
		require.Empty(t, b.StreamURL())
		for _, addr := range listeners(t, b.Pid()) {
			require.True(t, strings.HasPrefix(addr, host(i)+":"), addr)
		}
	}
	put(t, c.Nodes[(leader+1)%3], "kept", "one")
	require.NoError(t, c.Nodes[leader].Kill())
	eventually(t, func() bool { l := c.Leading(t.Context()); return l != -1 && l != leader }, "another one leads")
	other := c.Nodes[c.Leading(t.Context())]
	eventually(t, func() bool { return probeManagement(t.Context(), other.ManagementURL()) == nil }, "it answers")
	requireGet(t, other, "kept", "one")
	require.NoError(t, c.Nodes[leader].Restart(t.Context()))

	require.NoError(t, c.Etcds()[0].Kill())
	put(t, c.Nodes[leader], "kept", "two")
	requireGet(t, other, "kept", "two")
	require.NoError(t, c.Etcds()[0].Start())
}

func within(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// tryPut puts a message into the queue "kept". It may fail.
func tryPut(ctx context.Context, b *Broker, body string) error {
	conn, err := amqp.DialConfig(b.AMQPURL(), amqp.Config{Dial: amqp.DefaultDial(probeLimit)})
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.CloseDeadline(time.Now()) })()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := ch.Confirm(false); err != nil {
		return err
	}
	confirm, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", "kept", false, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(body)})
	if err != nil {
		return err
	}
	ok, err := confirm.WaitContext(ctx)
	if err == nil && !ok {
		err = context.DeadlineExceeded
	}
	return err
}

// get takes all messages that are in a queue now.
func get(t *testing.T, b *Broker, queue string) (all []string) {
	t.Helper()
	ch := channel(t, b)
	for {
		d, ok, err := ch.Get(queue, true)
		if err != nil || !ok {
			return all
		}
		all = append(all, string(d.Body))
	}
}
