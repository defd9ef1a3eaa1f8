package streams

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// A reader of a quiet stream acknowledges after some time, because a broker closes a consumer that
// does not.
func TestIdleReadersAcknowledge(t *testing.T) {
	require.Less(t, ackInterval, 30*time.Second)
	b := brokertest.New(t)
	b.DeclareStream(t, "s")
	ch := &amqpChannel{Channel: b.Channel(t)}
	require.NoError(t, ch.Qos(1, 0, false))
	// Each is confirmed alone: a broker that begins a chunk delivers all of it.
	for _, body := range []string{"1", "2"} {
		b.Publish(t, "", "s", amqp.Publishing{Body: []byte(body)})
	}
	deliveries, err := ch.Consume("s", "", false, false, false, false, amqp.Table{"x-stream-offset": "first"})
	require.NoError(t, err)
	acks := acker{ch: ch, every: 100}
	d := <-deliveries
	require.NoError(t, acks.add(d.DeliveryTag))
	select {
	case <-deliveries:
		require.FailNow(t, "it was acknowledged at once")
	case <-time.After(200 * time.Millisecond):
	}
	require.NoError(t, acks.flush()) // as after each ackInterval
	require.Equal(t, "2", string((<-deliveries).Body))
	require.NoError(t, acks.flush(), "there is nothing to acknowledge")
}
