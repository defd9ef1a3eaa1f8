package brokertest

import (
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// Dial connects as the owner. The connection is closed at the end of the test, if not before.
func (v *Vhost) Dial(t T) *amqp.Connection {
	t.Helper()
	return v.Owner.Dial(t)
}

// Dial connects as this user. The connection is closed at the end of the test, if not before.
func (u *User) Dial(t T) *amqp.Connection {
	t.Helper()
	conn, err := amqp.Dial(u.AMQPURL())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // the test may have closed it already
	return conn
}

// Channel opens a channel on its own connection, so that an error on it disturbs nothing else.
func (v *Vhost) Channel(t T) *amqp.Channel {
	t.Helper()
	ch, err := v.Dial(t).Channel()
	require.NoError(t, err)
	return ch
}

// withChannel calls do with a channel on a connection that it closes afterwards.
func (v *Vhost) withChannel(t T, do func(*amqp.Channel)) {
	t.Helper()
	conn, err := amqp.Dial(v.AMQPURL())
	require.NoError(t, err)
	defer conn.Close()
	ch, err := conn.Channel()
	require.NoError(t, err)
	do(ch)
}

// Publish publishes as the owner, and waits until the broker has confirmed all messages.
func (v *Vhost) Publish(t T, exchange, key string, messages ...amqp.Publishing) {
	t.Helper()
	v.withChannel(t, func(ch *amqp.Channel) {
		require.NoError(t, ch.Confirm(false))
		confirms := make([]*amqp.DeferredConfirmation, len(messages))
		for i, m := range messages {
			c, err := ch.PublishWithDeferredConfirmWithContext(t.Context(), exchange, key, false, false, m)
			require.NoError(t, err)
			confirms[i] = c
		}
		for _, c := range confirms {
			ok, err := c.WaitContext(t.Context())
			require.NoError(t, err)
			require.True(t, ok, "the broker refused a message to %q, %q", exchange, key)
		}
	})
}

// QueueLength returns the number of ready messages in a queue. RabbitMQ reports 0 for every stream.
func (v *Vhost) QueueLength(t T, queue string) int {
	t.Helper()
	var n int
	v.withChannel(t, func(ch *amqp.Channel) {
		q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
		require.NoError(t, err)
		n = q.Messages
	})
	return n
}

// Get takes one message from a queue. ok is false if the queue is empty.
func (v *Vhost) Get(t T, queue string) (d amqp.Delivery, ok bool) {
	t.Helper()
	v.withChannel(t, func(ch *amqp.Channel) {
		var err error
		d, ok, err = ch.Get(queue, true)
		require.NoError(t, err)
	})
	return d, ok
}

// HasQueue reports whether a queue exists.
func (v *Vhost) HasQueue(t T, queue string) (has bool) {
	t.Helper()
	conn := v.Dial(t)
	defer conn.Close()
	ch, err := conn.Channel()
	if err == nil {
		_, err = ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	}
	return err == nil
}
