package streams

import (
	"fmt"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	streamamqp "github.com/rabbitmq/rabbitmq-stream-go-client/pkg/amqp"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/stream"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

const benchRecords = 200_000

// BenchmarkRead reads 200,000 records of 300 bytes, with the transports and with the client
// libraries alone.
func BenchmarkRead(b *testing.B) {
	broker := newTestBroker(b)
	name := broker.stream(b)
	messages := make([]amqp.Publishing, benchRecords)
	for i := range messages {
		messages[i] = amqp.Publishing{Body: make([]byte, 300), Headers: amqp.Table{"millrace-op": "fired", "millrace-seq": int64(i)}}
	}
	broker.publish(b, name, messages...)
	for _, c := range broker.transports() {
		b.Run("transport="+c.name, func(b *testing.B) {
			tr := c.open(b, broker, Config{})
			perSecond(b, func() { readAll(b, tr, name) })
		})
	}
	b.Run("raw=native", func(b *testing.B) { perSecond(b, func() { rawNative(b, broker, name) }) })
	b.Run("raw=amqp", func(b *testing.B) { perSecond(b, func() { rawAMQP(b, broker, name) }) })
}

func perSecond(b *testing.B, read func()) {
	for b.Loop() {
		read()
	}
	b.ReportMetric(float64(b.N)*benchRecords/b.Elapsed().Seconds(), "records/s")
}

func readAll(b *testing.B, tr Transport, name string) {
	n := 0
	err := tr.Read(b.Context(), name, First, func(batch []wire.Record) error {
		if n += len(batch); n == benchRecords {
			return errEnough
		}
		return nil
	})
	require.ErrorIs(b, err, errEnough)
}

func rawNative(b *testing.B, broker *testBroker, name string) {
	to, err := parseStreamURL(broker.streamURL)
	require.NoError(b, err)
	var port int
	_, err = fmt.Sscanf(to.hostPort, to.host+":%d", &port)
	require.NoError(b, err)
	env, err := stream.NewEnvironment(stream.NewEnvironmentOptions().SetHost(to.host).SetPort(port).SetUser(to.user).SetPassword(to.password).
		SetVHost(to.vhost).SetAddressResolver(stream.AddressResolver{Host: to.host, Port: port}).
		SetReadBuffer(socketBuffer).SetWriteBuffer(socketBuffer))
	require.NoError(b, err)
	defer env.Close()
	done, n := make(chan struct{}), 0
	_, err = env.NewConsumer(name, func(stream.ConsumerContext, *streamamqp.Message) {
		if n++; n == benchRecords {
			close(done)
		}
	}, stream.NewConsumerOptions().SetOffset(stream.OffsetSpecification{}.First()))
	require.NoError(b, err)
	<-done
}

func rawAMQP(b *testing.B, broker *testBroker, name string) {
	conn, err := amqp.Dial(broker.amqpURL)
	require.NoError(b, err)
	defer conn.Close()
	ch, err := conn.Channel()
	require.NoError(b, err)
	require.NoError(b, ch.Qos(mostPrefetch, 0, false))
	deliveries, err := ch.Consume(name, "", false, false, false, false, amqp.Table{"x-stream-offset": "first"})
	require.NoError(b, err)
	n := 0
	for d := range deliveries {
		if n++; n%250 == 0 {
			require.NoError(b, d.Ack(true))
		}
		if n == benchRecords {
			return
		}
	}
}
