package broker

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// Purge deletes the messages that wait in a queue, by its full name, and returns how many there
// were.
func (q Queues) Purge(ctx context.Context, name string) (dropped int, err error) {
	return onQueue(ctx, q.conn, name, func(ch *amqp.Channel) (int, error) { return ch.QueuePurge(name, false) })
}

// Peek takes up to n messages from the head of a queue, by its full name, and puts them back. From
// then on they are marked as redelivered, and a queue with a delivery limit counts the delivery.
func (q Queues) Peek(ctx context.Context, name string, n int) ([]wire.Delivery, error) {
	return onQueue(ctx, q.conn, name, func(ch *amqp.Channel) (found []wire.Delivery, err error) {
		for len(found) < n {
			d, ok, err := ch.Get(name, false)
			if err != nil {
				return nil, err
			}
			if !ok {
				break
			}
			found = append(found, delivery(d))
		}
		if len(found) == 0 {
			return nil, nil
		}
		return found, ch.Nack(found[len(found)-1].Tag, true, true)
	})
}

// onQueue runs a request about one queue on its own channel.
func onQueue[T any](ctx context.Context, c *Conn, name string, do func(*amqp.Channel) (T, error)) (T, error) {
	found, err := ask(ctx, c, do)
	if err = queueError(name, err); err != nil && reasonOf(err) == "" {
		err = fmt.Errorf("broker: queue %q: %w", name, err)
	}
	return found, err
}
