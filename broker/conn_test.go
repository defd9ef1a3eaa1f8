package broker_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

func requireEnds(t *testing.T, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(time.Minute):
		require.FailNow(t, "the connection has not ended")
	}
}

// built is everything that can be built on a connection.
type built struct {
	conn  *broker.Conn
	pub   *broker.Publisher
	inbox *broker.Consumer
	work  *broker.Consumer
}

func build(t *testing.T, url string) built {
	t.Helper()
	var b built
	b.conn = dial(t, url)
	_, err := b.conn.Topology().Assert(soon(t))
	require.NoError(t, err)
	require.NoError(t, b.conn.Topology().EnsureRouting(soon(t)))
	require.NoError(t, b.conn.Queues().Ensure(soon(t), "a"))
	b.pub = publisher(t, b.conn)
	lock, err := b.conn.Lock(soon(t))
	require.NoError(t, err)
	b.inbox = lock.Inbox
	b.work = consumer(t, b.conn, "queue.a", 100)
	return b
}

// requireAllEnds checks that everything ends with the given reason, and that no part can be used
// afterwards.
func (b built) requireAllEnds(t *testing.T, reason error) {
	t.Helper()
	requireEnds(t, b.conn.Done())
	rest(t, b.pub)
	requireEnds(t, b.inbox.Done())
	requireEnds(t, b.work.Done())
	for _, err := range []error{b.conn.Err(), b.pub.Err(), b.inbox.Err(), b.work.Err()} {
		require.ErrorIs(t, err, reason)
	}
	require.False(t, b.inbox.Cancelled())
	_, err := b.pub.Publish(wire.Message{})
	require.Error(t, err)
	require.Error(t, b.pub.Send(soon(t), wire.Message{}))
	_, err = b.conn.Publisher(soon(t))
	require.ErrorIs(t, err, reason)
	_, err = b.conn.Lock(soon(t))
	require.ErrorIs(t, err, reason)
	_, err = b.conn.Topology().Assert(soon(t))
	require.ErrorIs(t, err, reason)
	require.ErrorIs(t, b.conn.Queues().Ensure(soon(t), "b"), reason)
	require.NoError(t, b.conn.Close())
}

func TestCutConnectionEndsEverythingOnIt(t *testing.T) {
	v := brokertest.New(t)
	proxy := brokertest.NewProxy(t, v.AMQPURL())
	b := build(t, proxy.URL())
	sent := 0
	for range 2000 {
		_, err := b.pub.Publish(wire.Message{Exchange: wire.ExchangeFire, Key: "a"})
		require.NoError(t, err)
		sent++
	}
	proxy.Cut(t)
	b.requireAllEnds(t, broker.ErrLost)
	_, err := broker.Dial(soon(t), broker.Config{AMQPURL: proxy.URL()})
	require.Error(t, err)
	proxy.Heal(t)
	eventuallyLeads(t, dial(t, proxy.URL()))
}

// A connection whose peer vanished silently ends after one and a half heartbeats, although a
// blocked write holds the locks that amqp091-go needs for that.
func TestVanishedPeerIsDetectedDuringBlockedWrite(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	relay := newRelay(t, v.AMQPURL())
	b := build(t, relay.url)
	relay.stop(t)
	stuck := make(chan error, 1)
	go func() {
		for {
			if _, err := b.pub.Publish(wire.Message{Exchange: wire.ExchangeFire, Key: "a", Body: make([]byte, 1<<20)}); err != nil {
				stuck <- err
				return
			}
		}
	}()
	b.requireAllEnds(t, broker.ErrLost)
	require.ErrorIs(t, <-stuck, broker.ErrLost)
}

func TestCloseDoesNotWaitForBlockedWrite(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	relay := newRelay(t, v.AMQPURL())
	b := build(t, relay.url)
	relay.stop(t)
	var count atomic.Int64
	stuck := make(chan error, 1)
	go func() {
		for {
			if _, err := b.pub.Publish(wire.Message{Exchange: wire.ExchangeFire, Key: "a", Body: make([]byte, 1<<20)}); err != nil {
				stuck <- err
				return
			}
			count.Add(1)
		}
	}()
	last := int64(-1)
	brokertest.EventuallyWithin(t, 5*time.Second, func() bool {
		now := count.Load()
		defer func() { last = now }()
		return now == last
	}, "a write is blocked")
	require.NoError(t, b.conn.Close())
	require.Error(t, <-stuck)
	b.requireAllEnds(t, broker.ErrClosed)
}

func TestCallsOnFrozenConnectionEndWithContext(t *testing.T) {
	v := brokertest.New(t)
	proxy := brokertest.NewProxy(t, v.AMQPURL())
	b := build(t, proxy.URL())
	proxy.Freeze(t)
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	calls := map[string]func() error{
		"Publisher":      func() error { _, err := b.conn.Publisher(ctx); return err },
		"Consume":        func() error { _, err := b.conn.Consume(ctx, "queue.a", 1, false); return err },
		"Lock":           func() error { _, err := b.conn.Lock(ctx); return err },
		"AssertTopology": func() error { _, err := b.conn.Topology().Assert(ctx); return err },
		"EnsureRouting":  func() error { return b.conn.Topology().EnsureRouting(ctx) },
		"EnsureQueue":    func() error { return b.conn.Queues().Ensure(ctx, "x") },
		"QueueExists":    func() error { _, err := b.conn.Queues().Exists(ctx, "x"); return err },
		"QueueDepth":     func() error { _, _, err := b.conn.Queues().Depth(ctx, "x"); return err },
		"DeclareWitness": func() error { return b.conn.Witnesses().DeclareTransient(ctx, "x") },
		"DeleteQueue":    func() error { return b.conn.Queues().Delete(ctx, "x", true, true) },
		"Send":           func() error { return b.pub.Send(ctx, wire.Message{}) },
		"SendMandatory":  func() error { return b.pub.SendMandatory(ctx, wire.Message{}) },
	}
	var all sync.WaitGroup
	for name, call := range calls {
		all.Go(func() {
			if err := call(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	all.Wait()
	require.NoError(t, b.conn.Close(), "Close never hangs")
	b.requireAllEnds(t, broker.ErrClosed)
}

func TestCloseEndsEverythingOnConnection(t *testing.T) {
	b := build(t, brokertest.New(t).AMQPURL())
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if err := b.conn.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	b.requireAllEnds(t, broker.ErrClosed)
	require.NoError(t, b.pub.Close())
	require.NoError(t, b.work.Close())
}

func TestKilledBrokerEndsEverythingAndLeavesNoLock(t *testing.T) {
	t.Parallel()
	v := brokertest.Own(t)
	b := build(t, v.AMQPURL())
	require.NoError(t, b.conn.Witnesses().DeclareTransient(soon(t), wire.WitnessPrefix+"x"))
	v.Sync(t)
	v.Kill(t)
	b.requireAllEnds(t, broker.ErrLost)
	v.Restart(t)
	again := dial(t, v.AMQPURL())
	top, err := again.Topology().Assert(soon(t))
	require.NoError(t, err)
	require.Equal(t, broker.TopologyReport{}, top, "a restart is not a lost journal")
	exists, err := again.Queues().Exists(soon(t), wire.WitnessPrefix+"x")
	require.NoError(t, err)
	require.False(t, exists, "the witness ended with the broker")
	eventuallyLeads(t, again)
}

// An alarm makes the broker stop reading. That does not end the connection, however long it lasts
// and however much is unsent.
func TestBlockedConnectionStaysOpen(t *testing.T) {
	t.Parallel()
	v := brokertest.OwnErlang(t)
	b := build(t, v.AMQPURL())
	_, _, blocked := b.conn.Blocked()
	require.False(t, blocked)
	require.NoError(t, b.pub.Send(soon(t), wire.Message{Exchange: wire.ExchangeFire, Key: "a"}))
	v.Eval(t, "vm_memory_monitor:set_vm_memory_high_watermark(0.00001).")
	const n = 40
	published := make(chan error, 1)
	go func() {
		for range n {
			if _, err := b.pub.Publish(wire.Message{Exchange: wire.ExchangeFire, Key: "a", Body: make([]byte, 1<<20)}); err != nil {
				published <- err
				return
			}
		}
		published <- nil
	}()
	brokertest.Eventually(t, func() bool { _, _, blocked = b.conn.Blocked(); return blocked }, "the connection is blocked")
	reason, since, _ := b.conn.Blocked()
	require.Contains(t, reason, "memory")
	require.WithinDuration(t, time.Now(), since, 20*time.Second)
	// By itself the library would end the connection within 11.5 s: it writes a heartbeat, and
	// blocks, after 4 s at most, and its deadline for reads ends 7.5 s later.
	select {
	case <-b.conn.Done():
		require.FailNow(t, "the connection ended", "%v", b.conn.Err())
	case <-time.After(12 * time.Second):
	}
	v.Eval(t, "vm_memory_monitor:set_vm_memory_high_watermark(0.8).")
	brokertest.Eventually(t, func() bool { _, _, blocked = b.conn.Blocked(); return !blocked }, "the connection is no longer blocked")
	require.NoError(t, <-published)
	for tag, ack := range collect(t, b.pub, n) {
		require.True(t, ack, tag)
	}
	require.NoError(t, b.conn.Err())
}

func TestDialFails(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	at := strings.LastIndexByte(v.AMQPURL(), '@')
	for name, url := range map[string]string{
		"malformed":     "amqp://user:secret%@h",
		"not amqp":      "http://user:secret@h",
		"refused":       "amqp://user:secret@127.0.0.1:1/",
		"wrong user":    "amqp://user:secret" + v.AMQPURL()[at:],
		"unknown vhost": v.AMQPURL() + "-not",
		"silent":        "amqp://user:secret@" + silent.Addr().String(),
	} {
		within := time.Minute // each but one ends earlier by itself
		if name == "silent" {
			within = time.Second
		}
		ctx, cancel := context.WithTimeout(t.Context(), within)
		_, err := broker.Dial(ctx, broker.Config{AMQPURL: url})
		cancel()
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), "secret", name)
		require.NotContains(t, err.Error(), v.Owner.Password, name)
		require.Equal(t, name == "silent", errors.Is(err, context.DeadlineExceeded), "%s: %v", name, err)
	}
}
