package broker

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// The route of fires and burials, and of jobs whose queue does not exist. It may be repaired only
// while nothing is fired, and after the fault is journaled. So it is not part of the topology that
// every sidecar asserts.
var (
	wayExchanges = []exchange{
		{name: wire.Unrouted, kind: amqp.ExchangeFanout, own: true},
		{name: wire.ExchangeRoute, kind: amqp.ExchangeDirect, args: amqp.Table{"alternate-exchange": wire.Unrouted}, own: true},
		{name: wire.ExchangeFire, kind: amqp.ExchangeFanout, own: true},
		{name: wire.ExchangeBury, kind: amqp.ExchangeFanout, own: true},
	}

	toGated = []binding{{wire.Unrouted, wire.Gated, true}}
	// jobs.route comes before the journal: LavinMQ asks an alternate exchange only while no queue
	// has matched.
	ofFire = []binding{{wire.ExchangeFire, wire.ExchangeRoute, false}, {wire.ExchangeFire, wire.Journal, true}}
	// Without the journal, a burial would be repeated. Without dead_jobs, it would be lost. The
	// leader checks for both.
	ofBury = []binding{{wire.ExchangeBury, wire.DeadJobs, true}, {wire.ExchangeBury, wire.Journal, true}}
)

// MakeWay declares what is missing of the route that fires take, in the right order. Only the
// holder of the lock may call it, and it must fire nothing meanwhile.
func (c *Conn) MakeWay(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a := &assertion{conn: c}
	if err := a.all(ctx, wayExchanges, nil, append(toGated, ofBury...)); err != nil {
		return err
	}
	return c.rebuildFire(ctx)
}

// rebuildFire binds jobs.fire again, in the right order.
func (c *Conn) rebuildFire(ctx context.Context) error {
	return c.request(ctx, func(ch *amqp.Channel) error {
		if err := ch.QueueUnbind(wire.Journal, "", wire.ExchangeFire, nil); err != nil {
			return fmt.Errorf("broker: unbind %s from %s: %w", wire.Journal, wire.ExchangeFire, err)
		}
		return bindAll(ch, ofFire)
	})
}

// BindJournal repeats bindings of streams, which normally exist. Without these bindings no job is
// lost, but many are delivered twice, or wait. An error that IsMissing means that the route is
// broken.
func (c *Conn) BindJournal(ctx context.Context) error {
	return c.request(ctx, func(ch *amqp.Channel) error { return bindAll(ch, append([]binding{toGated[0], ofFire[1]}, ofBury...)) })
}

// UnbindOldQueue unbinds jobs.unrouted, the queue that earlier versions had in place of jobs.gated.
// It does nothing if that queue does not exist.
func (c *Conn) UnbindOldQueue(ctx context.Context) error {
	err := c.queueRequest(ctx, wire.Unrouted, func(ch *amqp.Channel) error { return ch.QueueUnbind(wire.Unrouted, "", wire.Unrouted, nil) })
	if reasonOf(err) == ReasonMissing {
		return nil
	}
	return err
}

// AssertDirect declares jobs.direct if no client has. From then on clients publish, and an
// unroutable job needs a place to go. So MakeWay must come first.
func (c *Conn) AssertDirect(ctx context.Context) (Topology, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a := &assertion{conn: c}
	err := a.exchange(ctx, direct)
	return a.top, err
}

// FollowProbes consumes a queue of this connection at the end of the route. An error that IsMissing
// means that the route is broken.
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

// IsUnroutable reports whether a probe was misrouted: its exchange is missing, or no queue took it.
func IsUnroutable(err error) bool { return errors.Is(err, ErrReturned) || IsMissing(err) }

func bindAll(ch *amqp.Channel, all []binding) error {
	for _, b := range all {
		if err := b.bind(ch); err != nil {
			return err
		}
	}
	return nil
}
