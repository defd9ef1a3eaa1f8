package broker

import (
	"context"

	amqp "github.com/rabbitmq/amqp091-go"
	"golang.org/x/sync/errgroup"

	"github.com/millrace-jobs/millrace/wire"
)

// handAtOnce is how many messages wait for their confirms at once.
const handAtOnce = 32

// HandOver takes up to so many messages from the head of a queue, by its full name, and publishes what become makes of each. What the broker
// has confirmed and some queue has taken is acknowledged, and what become gave with it, if anything, is returned; all else is the queue's
// again. A connection that is lost in between leaves a message in both places.
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
		_ = g.Wait() // each has its outcome
		for i, d := range taken {
			if faults[i] != nil {
				err = faults[i] // the others go on
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
