package broker

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
	"golang.org/x/sync/errgroup"

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
	return onQueue(ctx, q.conn, name, func(ch *amqp.Channel) ([]wire.Delivery, error) {
		found, err := take(ch, name, n)
		if err != nil || len(found) == 0 {
			return nil, err
		}
		return found, ch.Nack(found[len(found)-1].Tag, true, true)
	})
}

// AtOnce is how many messages may be taken over one channel before they are acknowledged. RabbitMQ
// holds back what is acknowledged to a quorum queue while 32 acknowledgements are on their way, and
// forgets that when the channel closes: those messages would come again.
const AtOnce = 24

// errNotTaken is returned when the broker refused a message that Move published.
var errNotTaken = errors.New("broker: the queue to which a message was moved refused it")

// Move takes up to most messages from the head of a queue, by its full name. It publishes, in the
// same order, the message that transform makes of each. A message goes back to its queue if the
// broker does not confirm the publish, or if the connection is lost first. In the second case it
// may be in both places.
func (q Queues) Move(ctx context.Context, name string, most int, transform func(wire.Delivery) wire.Message) (moved int, err error) {
	pub, err := q.conn.Publisher(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = pub.Close() }()
	for moved < most && ctx.Err() == nil {
		n, err := onQueue(ctx, q.conn, name, func(ch *amqp.Channel) (int, error) {
			taken, err := take(ch, name, min(most-moved, AtOnce))
			if err != nil {
				return 0, err
			}
			return passOn(ctx, ch, pub, taken, transform)
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
func passOn(ctx context.Context, ch *amqp.Channel, pub *Publisher, taken []wire.Delivery, transform func(wire.Delivery) wire.Message) (moved int, err error) {
	open := map[uint64]wire.Delivery{}
	for _, d := range taken {
		tag, err := pub.Publish(transform(d))
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

// Transform makes a message of another, with a value about it. If it returns no message, the other
// one is dropped. If it returns an error, the other one goes back to its queue.
type Transform[T any] func(wire.Delivery) (*wire.Message, *T, error)

// Transfer takes up to most messages from the head of a queue, by its full name, and publishes the
// message that transform makes of each. It transforms several at once.
//
// When the broker has confirmed a publish and a queue has taken it, Transfer acknowledges the
// original message. It returns the values that transform made with those messages. All other
// messages go back to the queue. After the loss of a connection a message may be in both places.
func Transfer[T any](ctx context.Context, c *Conn, name string, most int, transform Transform[T]) ([]T, error) {
	pub, err := c.Publisher(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = pub.Close() }()
	var all []T
	for taken := 0; taken < most; taken += AtOnce {
		some, more, err := transfer(ctx, c, pub, name, min(most-taken, AtOnce), transform)
		all = append(all, some...)
		if err != nil || !more {
			return all, err
		}
	}
	return all, nil
}

// transfer is Transfer over one channel. more is false if the queue had fewer messages.
func transfer[T any](ctx context.Context, c *Conn, pub *Publisher, name string, most int, transform Transform[T]) (_ []T, more bool, _ error) {
	all, err := onQueue(ctx, c, name, func(ch *amqp.Channel) (transferred []T, err error) {
		taken, err := take(ch, name, most)
		if err != nil {
			return nil, err
		}
		more = len(taken) == most
		given, faults := make([]*T, len(taken)), make([]error, len(taken))
		var g errgroup.Group
		for i, d := range taken {
			g.Go(func() error {
				var m *wire.Message
				if m, given[i], faults[i] = transform(d); m != nil {
					faults[i] = pub.SendMandatory(ctx, *m)
				}
				return nil
			})
		}
		_ = g.Wait() // faults has the errors
		for i, d := range taken {
			if faults[i] != nil {
				err = faults[i] // continue with the others
				continue
			}
			if fault := ch.Ack(d.Tag, false); fault != nil {
				return transferred, fault
			}
			if given[i] != nil {
				transferred = append(transferred, *given[i])
			}
		}
		return transferred, err
	})
	return all, more, err
}
