package broker

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// lockPrefetch is how many commands may wait in the leader's memory; the others wait on the broker.
const lockPrefetch = 256

// Lock takes the leader's lock, the exclusive queue jobs.leader, and consumes what clients send to it. ErrLocked says that another
// connection has it. Commands are to be acknowledged when they have been answered.
//
// The lock is the connection's: it is free within milliseconds once the connection is gone, and never before, so that nothing
// published on this connection can come after the next leader's first word. Closing the Consumer alone does not free it. A Consumer
// that was cancelled means that somebody deleted the queue under us and that another may lead: close the connection before
// anything else.
func (c *Conn) Lock(ctx context.Context) (*Consumer, error) {
	consumer, err := c.consume(ctx, wire.LeaderInbox, lockPrefetch, false, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(wire.LeaderInbox, false, false, true, false, nil)
		return err
	}, func(ch *amqp.Channel) {
		_, _ = ch.QueueDelete(wire.LeaderInbox, false, false, false)
	})
	switch {
	case hasCode(err, amqp.ResourceLocked):
		return nil, fmt.Errorf("broker: lock %s: %w", wire.LeaderInbox, ErrLocked)
	case err != nil:
		return nil, fmt.Errorf("broker: lock %s: %w", wire.LeaderInbox, err)
	}
	return consumer, nil
}
