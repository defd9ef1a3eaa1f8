package garbagetest

import (
	"testing"
	"time"

	amqp10 "github.com/rabbitmq/rabbitmq-stream-go-client/pkg/amqp"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/message"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/stream"
	"github.com/stretchr/testify/require"
)

// publishNative publishes over the stream protocol, in compressed sub-batches. RabbitMQ 3.10 cannot
// deliver these over AMQP 0-9-1.
func publishNative(t *testing.T, url, name string, bodies ...string) {
	t.Helper()
	env, err := stream.NewEnvironment(stream.NewEnvironmentOptions().SetUri(url))
	require.NoError(t, err)
	defer func() { require.NoError(t, env.Close()) }()
	options := stream.NewProducerOptions().SetSubEntrySize(10).SetCompression(stream.Compression{}.Gzip())
	p, err := env.NewProducer(name, options)
	require.NoError(t, err)
	confirms := p.NotifyPublishConfirmation()
	messages := make([]message.StreamMessage, len(bodies))
	for i, body := range bodies {
		messages[i] = amqp10.NewMessage([]byte(body))
	}
	require.NoError(t, p.BatchSend(messages))
	for confirmed := 0; confirmed < len(bodies); {
		select {
		case c := <-confirms:
			confirmed += len(c)
		case <-time.After(20 * time.Second):
			require.FailNow(t, "no confirm")
		}
	}
	require.NoError(t, p.Close())
}
