package spectest

import (
	"errors"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// publish publishes a body unchanged, through pika.
func publish(t *testing.T, c *client, exchange, key, body string, expiration ...string) {
	t.Helper()
	cmd := c.command(t.Context(), "raw", append([]string{"publish", exchange, key}, expiration...)...)
	cmd.Stdin = strings.NewReader(body)
	run(t, cmd)
}

// take waits for a message and acknowledges it.
func take(t *testing.T, c *client, queue string) string {
	t.Helper()
	return c.run(t, "raw", "ack", queue)
}

// reject waits for a message and rejects it.
func reject(t *testing.T, c *client, queue string) string {
	t.Helper()
	return c.run(t, "raw", "reject", queue)
}

func hasQueue(t *testing.T, v *brokertest.Vhost, name string) bool {
	t.Helper()
	_, ok := inspect(t, v, name)
	return ok
}

// inspect returns the state of a queue. ok is false if the queue does not exist.
func inspect(t *testing.T, v *brokertest.Vhost, name string) (q amqp.Queue, ok bool) {
	t.Helper()
	conn := v.Dial(t)
	defer conn.Close()
	ch, err := conn.Channel()
	require.NoError(t, err)
	q, err = ch.QueueDeclarePassive(name, true, false, false, false, nil)
	var refusal *amqp.Error
	if errors.As(err, &refusal) && refusal.Code == amqp.NotFound {
		return q, false
	}
	require.NoError(t, err)
	return q, true
}
