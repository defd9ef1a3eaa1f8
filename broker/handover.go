package broker

import (
	"context"

	amqp "github.com/rabbitmq/amqp091-go"
	"golang.org/x/sync/errgroup"

	"github.com/millrace-jobs/millrace/wire"
)

// handAtOnce is how many publishes HandOver has in flight at a time.
const handAtOnce = 32

// HandOver takes up to most messages from the head of a queue, by its full name, and publishes the
// message that become makes of each.
//
// When the broker has confirmed a publish and a queue has taken it, HandOver acknowledges the
// original message. It returns the values that become made with those messages. All other messages
// go back to the queue. After the loss of a connection a message may be in both places.
func HandOver[T any](ctx context.Context, c *Conn, name string, most int, become func(wire.Delivery) (wire.Message, *T)) ([]T, error) {
	pub, err := c.Publisher(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = pub.Close() }()
	return onQueue(ctx, c, name, func(ch *amqp.Channel) (handed []T, err error) {
		taken, err := take(ch, name, most)
		if err != nil {
			return nil, err
		}
		given, faults := make([]*T, len(taken)), make([]error, len(taken))
		var g errgroup.Group
		g.SetLimit(handAtOnce)
		for i, d := range taken {
			var m wire.Message
			m, given[i] = become(d)
			g.Go(func() error {
				faults[i] = pub.SendMandatory(ctx, m)
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
				return handed, fault
			}
			if given[i] != nil {
				handed = append(handed, *given[i])
			}
		}
		return handed, err
	})
}
