package brokertest

import (
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

const (
	// silence is how long a stream must send nothing before the reader concludes that it has no
	// more records: no broker reports the length of a stream over AMQP.
	silence = 300 * time.Millisecond

	// streamLimit limits reading one stream, and openLimit limits opening it: after a restart,
	// RabbitMQ reports for some tenths of a second that the stream does not exist.
	streamLimit = 30 * time.Second
	openLimit   = 5 * time.Second
)

// DeclareStream declares a stream without additional arguments.
func (v *Vhost) DeclareStream(t T, name string) {
	t.Helper()
	v.withChannel(t, func(ch *amqp.Channel) {
		_, err := ch.QueueDeclare(name, true, false, false, false, amqp.Table{"x-queue-type": "stream"})
		require.NoError(t, err)
	})
}

// ReadStream reads all records that are in a stream now, over AMQP 0-9-1.
func (v *Vhost) ReadStream(t T, name string) []amqp.Delivery {
	t.Helper()
	last, found := v.lastOffset(t, name)
	if !found {
		return nil
	}
	var records []amqp.Delivery
	limit := time.After(streamLimit)
	v.follow(t, name, "first", func(deliveries <-chan amqp.Delivery) {
		for {
			select {
			case d, open := <-deliveries:
				require.True(t, open, "the broker closed the channel while %s was read", name)
				require.NoError(t, d.Ack(false))
				records = append(records, d)
				if Offset(d) >= last {
					return
				}
			case <-limit:
				require.FailNow(t, "reading a stream takes too long", "%s: offset %d not seen", name, last)
			}
		}
	})
	return records
}

// Offset returns the offset of a record in its stream, or -1 if the message is not from a stream.
func Offset(d amqp.Delivery) int64 {
	offset, ok := d.Headers["x-stream-offset"].(int64)
	if !ok {
		return -1
	}
	return offset
}

// lastOffset finds the newest record. "last" begins at the newest chunk (RabbitMQ) or segment
// (LavinMQ), which then comes without a pause. Records that are published meanwhile may count or
// not.
func (v *Vhost) lastOffset(t T, name string) (offset int64, found bool) {
	t.Helper()
	v.follow(t, name, "last", func(deliveries <-chan amqp.Delivery) {
		enough := time.After(10 * silence) // if records come without a pause
		for {
			select {
			case <-enough:
				return
			case d, open := <-deliveries:
				require.True(t, open, "the broker closed the channel while %s was read", name)
				require.NoError(t, d.Ack(false))
				offset, found = max(offset, Offset(d)), true
			case <-time.After(silence):
				return
			}
		}
	})
	return offset, found
}

// follow reads a stream until use returns.
func (v *Vhost) follow(t T, name, from string, use func(<-chan amqp.Delivery)) {
	t.Helper()
	var err error
	for begin := time.Now(); time.Since(begin) < openLimit; <-time.After(100 * time.Millisecond) {
		conn, deliveries, failed := v.open(name, from)
		if failed == nil {
			defer conn.Close()
			use(deliveries)
			return
		}
		err = failed
	}
	require.NoError(t, err)
}

func (v *Vhost) open(name, from string) (*amqp.Connection, <-chan amqp.Delivery, error) {
	conn, err := amqp.Dial(v.AMQPURL())
	if err != nil {
		return nil, nil, fmt.Errorf("brokertest: connecting: %w", err)
	}
	deliveries, err := consume(conn, name, from)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("brokertest: reading %s: %w", name, err), conn.Close())
	}
	return conn, deliveries, nil
}

func consume(conn *amqp.Connection, name, from string) (<-chan amqp.Delivery, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	if err := ch.Qos(1000, 0, false); err != nil {
		return nil, err
	}
	return ch.Consume(name, "", false, false, false, false, amqp.Table{"x-stream-offset": from})
}
