package brokertest

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

func TestProxyCut(t *testing.T) {
	p := NewProxy(t, New(t).AMQPURL())
	conn, err := amqp.Dial(p.URL())
	require.NoError(t, err)
	defer conn.Close()
	closed := conn.NotifyClose(make(chan *amqp.Error, 1))
	p.Cut(t)
	require.Error(t, <-closed)
	_, err = amqp.Dial(p.URL())
	require.Error(t, err)
	p.Heal(t)
	again, err := amqp.Dial(p.URL())
	require.NoError(t, err)
	require.NoError(t, again.Close())
}

func TestProxySlow(t *testing.T) {
	p := NewProxy(t, New(t).AMQPURL())
	conn, err := amqp.Dial(p.URL())
	require.NoError(t, err)
	defer conn.Close()
	p.Slow(t, time.Second)
	begin := time.Now()
	_, err = conn.Channel()
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(begin), 2*time.Second)
	p.Heal(t)
	begin = time.Now()
	_, err = conn.Channel()
	require.NoError(t, err)
	require.Less(t, time.Since(begin), 2*time.Second)
}

func TestProxyFreeze(t *testing.T) {
	p := NewProxy(t, New(t).AMQPURL())
	conn, err := amqp.DialConfig(p.URL(), amqp.Config{Heartbeat: time.Minute})
	require.NoError(t, err)
	defer conn.Close()
	closed := conn.NotifyClose(make(chan *amqp.Error, 1))
	p.Freeze(t)
	answered := make(chan error, 1)
	go func() {
		_, err := conn.Channel()
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatal("an answer came through: ", err)
	case err := <-closed:
		t.Fatal("the connection was closed: ", err)
	case <-time.After(300 * time.Millisecond):
	}
	p.Heal(t)
	require.Error(t, <-closed)
	require.Error(t, <-answered)
	again, err := amqp.Dial(p.URL())
	require.NoError(t, err)
	require.NoError(t, again.Close())
}

// Data that a stall holds up arrives when the stall ends.
func TestProxyStall(t *testing.T) {
	v := New(t)
	declare(t, v, "q")
	p := NewProxy(t, v.AMQPURL())
	conn, err := amqp.DialConfig(p.URL(), amqp.Config{Heartbeat: time.Hour})
	require.NoError(t, err)
	defer conn.Close()
	ch, err := conn.Channel()
	require.NoError(t, err)
	p.Stall(t)
	require.NoError(t, ch.PublishWithContext(t.Context(), "", "q", false, false, message("late")))
	require.Never(t, func() bool { return v.QueueLength(t, "q") > 0 }, 300*time.Millisecond, 50*time.Millisecond)
	p.Heal(t)
	Eventually(t, func() bool { return v.QueueLength(t, "q") == 1 }, "it continues")
}

func TestProxyMute(t *testing.T) {
	t.Parallel()
	v := New(t)
	declare(t, v, "q")
	p := NewProxy(t, v.AMQPURL())
	conn, err := amqp.Dial(p.URL())
	require.NoError(t, err)
	defer conn.Close()
	ch, err := conn.Channel()
	require.NoError(t, err)
	closed := conn.NotifyClose(make(chan *amqp.Error, 1))
	p.Mute(t)
	require.NoError(t, ch.Publish("", "q", false, false, message("arrives")))
	Eventually(t, func() bool { return v.QueueLength(t, "q") == 1 }, "it arrives")
	require.Empty(t, closed)
	p.Heal(t)
	require.Error(t, <-closed)
}
