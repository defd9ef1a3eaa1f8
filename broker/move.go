package broker

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// moveAtOnce is how many messages Move has in flight at a time.
const moveAtOnce = 128

// errNotTaken is returned when the broker refused a message that Move published.
var errNotTaken = errors.New("broker: where it was to be moved to it was refused")

// Move takes up to most messages from the head of a queue, by its full name. It publishes, in the
// same order, the message that become makes of each. A message goes back to its queue if the broker
// does not confirm the publish, or if the connection is lost first. In the second case it may be in
// both places.
func (q Queues) Move(ctx context.Context, name string, most int, become func(wire.Delivery) wire.Message) (moved int, err error) {
	pub, err := q.conn.Publisher(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = pub.Close() }()
	for moved < most && ctx.Err() == nil {
		n, err := onQueue(ctx, q.conn, name, func(ch *amqp.Channel) (int, error) {
			taken, err := take(ch, name, min(most-moved, moveAtOnce))
			if err != nil {
				return 0, err
			}
			return passOn(ctx, ch, pub, taken, become)
		})
		if moved += n; err != nil || n == 0 {
			return moved, err
		}
	}
	return moved, nil
}

// take gets up to n messages. They go back to the queue when the channel ends.
func take(ch *amqp.Channel, name string, n int) (taken []wire.Delivery, err error) {
	for len(taken) < n {
		d, ok, err := ch.Get(name, false)
		if err != nil || !ok {
			return taken, err
		}
		taken = append(taken, delivery(d))
	}
	return taken, nil
}

// passOn publishes messages, and acknowledges those that the broker has confirmed.
func passOn(ctx context.Context, ch *amqp.Channel, pub *Publisher, taken []wire.Delivery, become func(wire.Delivery) wire.Message) (moved int, err error) {
	open := map[uint64]wire.Delivery{}
	for _, d := range taken {
		tag, err := pub.Publish(become(d))
		if err != nil {
			return moved, err
		}
		open[tag] = d
	}
	for len(open) > 0 {
		select {
		case confirms := <-pub.Confirms():
			for _, confirm := range confirms {
				d := open[confirm.Tag]
				delete(open, confirm.Tag)
				if !confirm.Ack {
					err = errNotTaken // continue with the others
					continue
				}
				if err := ch.Ack(d.Tag, false); err != nil {
					return moved, err
				}
				moved++
			}
		case <-pub.Done():
			return moved, fmt.Errorf("broker: move: %w", pub.Err())
		case <-ctx.Done():
			return moved, ctx.Err()
		}
	}
	return moved, err
}
