package broker

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// Probes are messages that a leader sends along the route of fires, to itself.
type Probes struct{ conn *Conn }

// Probes returns the probes of this connection.
func (c *Conn) Probes() Probes { return Probes{c} }

// Declare declares the exclusive queue that Follow consumes. While the queue exists, so
// does this connection.
func (p Probes) Declare(ctx context.Context, queue string) error {
	if err := p.conn.request(ctx, declaringProbes(queue)); err != nil {
		return fmt.Errorf("broker: declare %s: %w", queue, err)
	}
	return nil
}

// Follow consumes a queue of this connection at the end of the route. An error that IsMissing
// means that the route is broken.
func (p Probes) Follow(ctx context.Context, queue string) (*Consumer, error) {
	return p.follow(ctx, queue, probesAhead, func(ch *amqp.Channel) error {
		return ch.QueueBind(queue, queue, wire.ExchangeRoute, false, nil)
	})
}

// FollowUnrouted consumes, in a queue of this connection, the fires of an epoch that find no queue.
// Other messages to jobs.unrouted do not come to it, so clients' publishes do not depend on it. An
// error that IsMissing means that the route is broken.
func (p Probes) FollowUnrouted(ctx context.Context, queue string, epoch int64) (*Consumer, error) {
	return p.follow(ctx, queue, unroutedAhead, func(ch *amqp.Channel) error {
		if err := unroutedFires.declare(ch); err != nil {
			return err
		}
		if err := toLeader.bind(ch); err != nil {
			return err
		}
		return ch.QueueBind(queue, "", wire.UnroutedFires, false, amqp.Table{"x-match": "all", wire.HeaderEpoch: epoch})
	})
}

func (p Probes) follow(ctx context.Context, queue string, ahead int, bind func(*amqp.Channel) error) (*Consumer, error) {
	consumer, err := p.conn.consume(ctx, queue, ahead, true, func(ch *amqp.Channel) error {
		if err := declaringProbes(queue)(ch); err != nil {
			return err
		}
		return bind(ch)
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("broker: follow %s: %w", queue, err)
	}
	return consumer, nil
}

const (
	probesAhead   = 16
	unroutedAhead = 256
)

// declaringProbes returns a request that declares the queue of a connection's probes.
func declaringProbes(queue string) func(*amqp.Channel) error {
	return declaring(queue, false, true, true, nil)
}

// IsUnroutable reports whether a probe was misrouted: its exchange is missing, or no queue took it.
func IsUnroutable(err error) bool { return errors.Is(err, ErrReturned) || IsMissing(err) }
