package broker

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// The way that fires and burials take, and jobs whose queue does not exist. Who mends it must know that nothing is fired meanwhile, and
// must have seen to it that what went astray is known: so it is not part of the topology that every sidecar asserts.
var (
	wayExchanges = []exchange{
		{name: wire.Unrouted, kind: amqp.ExchangeFanout, own: true},
		{name: wire.ExchangeRoute, kind: amqp.ExchangeDirect, args: amqp.Table{"alternate-exchange": wire.Unrouted}, own: true},
		{name: wire.ExchangeFire, kind: amqp.ExchangeFanout, own: true},
		{name: wire.ExchangeBury, kind: amqp.ExchangeFanout, own: true},
	}

	toGated = []binding{{wire.Unrouted, wire.Gated, true}}
	// jobs.route before the journal: LavinMQ asks an alternate exchange only while no queue has matched yet.
	ofFire = []binding{{wire.ExchangeFire, wire.ExchangeRoute, false}, {wire.ExchangeFire, wire.Journal, true}}
	// What is buried and not journaled is buried twice, what is journaled and not buried is lost: but both are looked after.
	ofBury = []binding{{wire.ExchangeBury, wire.DeadJobs, true}, {wire.ExchangeBury, wire.Journal, true}}
)

// MakeWay makes whatever is missing of the way that fires take, in the right order. Only who holds the lock may, and fires nothing meanwhile.
func (c *Conn) MakeWay(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a := &assertion{conn: c}
	if err := a.all(ctx, wayExchanges, nil, append(toGated, ofBury...)); err != nil {
		return err
	}
	return c.rebuildFire(ctx)
}

// rebuildFire makes the bindings of jobs.fire anew in the right order.
func (c *Conn) rebuildFire(ctx context.Context) error {
	return c.request(ctx, func(ch *amqp.Channel) error {
		if err := ch.QueueUnbind(wire.Journal, "", wire.ExchangeFire, nil); err != nil {
			return fmt.Errorf("broker: unbind %s from %s: %w", wire.Journal, wire.ExchangeFire, err)
		}
		return bindAll(ch, ofFire)
	})
}

// BindJournal binds again what is bound already where all is well: without these bindings nothing is lost, but much is done twice, or waits.
// An error that IsMissing says that the way is broken.
func (c *Conn) BindJournal(ctx context.Context) error {
	return c.request(ctx, func(ch *amqp.Channel) error { return bindAll(ch, append([]binding{toGated[0], ofFire[1]}, ofBury...)) })
}

// UnbindOldQueue unbinds the queue jobs.unrouted, which versions before jobs.gated had in its place. Where it is not there nothing is done.
func (c *Conn) UnbindOldQueue(ctx context.Context) error {
	err := c.queueRequest(ctx, wire.Unrouted, func(ch *amqp.Channel) error { return ch.QueueUnbind(wire.Unrouted, "", wire.Unrouted, nil) })
	if reasonOf(err) == ReasonMissing {
		return nil
	}
	return err
}

// AssertDirect makes jobs.direct, if no client has yet. From then on clients publish, and what cannot be routed must have somewhere to go:
// so the way comes first.
func (c *Conn) AssertDirect(ctx context.Context) (Topology, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a := &assertion{conn: c}
	err := a.exchange(ctx, direct)
	return a.top, err
}

// FollowProbes takes what arrives in a queue of this connection's own at the end of the way. An error that IsMissing says that the way is
// broken.
func (c *Conn) FollowProbes(ctx context.Context, queue string) (*Consumer, error) {
	consumer, err := c.consume(ctx, queue, probesAhead, true, func(ch *amqp.Channel) error {
		if _, err := ch.QueueDeclare(queue, false, true, true, false, nil); err != nil {
			return err
		}
		return ch.QueueBind(queue, queue, wire.ExchangeRoute, false, nil)
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("broker: follow probes: %w", err)
	}
	return consumer, nil
}

const probesAhead = 16

// IsAstray tells whether a probe could not even set out, or found no queue at the end of its way.
func IsAstray(err error) bool { return errors.Is(err, ErrReturned) || IsMissing(err) }

func bindAll(ch *amqp.Channel, all []binding) error {
	for _, b := range all {
		if err := b.bind(ch); err != nil {
			return err
		}
	}
	return nil
}
