package broker

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// The route of fires and burials, and of jobs whose queue does not exist. It may be repaired only
// while nothing is fired, and after the fault is journaled. So it is not part of the topology that
// every sidecar asserts.
var (
	routingExchanges = []exchange{
		{name: wire.Unrouted, kind: amqp.ExchangeFanout, own: true},
		{name: wire.ExchangeRoute, kind: amqp.ExchangeDirect, args: amqp.Table{"alternate-exchange": wire.Unrouted}, own: true},
		{name: wire.ExchangeFire, kind: amqp.ExchangeFanout, own: true},
		{name: wire.ExchangeBury, kind: amqp.ExchangeFanout, own: true},
	}
	unroutedFires = exchange{name: wire.UnroutedFires, kind: amqp.ExchangeHeaders, own: true}

	toGated  = []binding{{wire.Unrouted, wire.Gated, true}}
	toLeader = binding{wire.Unrouted, wire.UnroutedFires, false}
	// jobs.route comes before the journal: LavinMQ asks an alternate exchange only while no queue
	// has matched.
	ofFire = []binding{{wire.ExchangeFire, wire.ExchangeRoute, false}, {wire.ExchangeFire, wire.Journal, true}}
	// Without the journal, a burial would be repeated. Without dead_jobs, it would be lost. The
	// leader checks for both.
	ofBury = []binding{{wire.ExchangeBury, wire.DeadJobs, true}, {wire.ExchangeBury, wire.Journal, true}}
)

// EnsureRouting declares what is missing of the route that fires take, in the right order. Only the
// holder of the lock may call it, and it must fire nothing meanwhile.
func (t Topology) EnsureRouting(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a := &assertion{conn: t.conn}
	if err := a.all(ctx, routingExchanges, nil, append(toGated, ofBury...)); err != nil {
		return err
	}
	return t.rebuildFire(ctx)
}

// rebuildFire binds jobs.fire again, in the right order.
func (t Topology) rebuildFire(ctx context.Context) error {
	return t.conn.request(ctx, func(ch *amqp.Channel) error {
		if err := ch.QueueUnbind(wire.Journal, "", wire.ExchangeFire, nil); err != nil {
			return fmt.Errorf("broker: unbind %s from %s: %w", wire.Journal, wire.ExchangeFire, err)
		}
		return bindAll(ch, ofFire)
	})
}

// BindJournal repeats bindings of streams, which normally exist. Without these bindings no job is
// lost, but many are delivered twice, or wait. An error that IsMissing means that the route is
// broken.
func (t Topology) BindJournal(ctx context.Context) error {
	return t.conn.request(ctx, func(ch *amqp.Channel) error { return bindAll(ch, append([]binding{toGated[0], ofFire[1]}, ofBury...)) })
}

// UnbindOldQueue unbinds jobs.unrouted, the queue that earlier versions had in place of jobs.gated.
// It does nothing if that queue does not exist.
func (t Topology) UnbindOldQueue(ctx context.Context) error {
	err := t.conn.Queues().request(ctx, wire.Unrouted, func(ch *amqp.Channel) error { return ch.QueueUnbind(wire.Unrouted, "", wire.Unrouted, nil) })
	if reasonOf(err) == ReasonMissing {
		return nil
	}
	return err
}

// AssertDirect declares jobs.direct if no client has. From then on clients publish, and an
// unroutable job needs a place to go. So EnsureRouting must come first.
func (t Topology) AssertDirect(ctx context.Context) (TopologyReport, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a := &assertion{conn: t.conn}
	err := a.exchange(ctx, direct)
	return a.top, err
}

func bindAll(ch *amqp.Channel, all []binding) error {
	for _, b := range all {
		if err := b.bind(ch); err != nil {
			return err
		}
	}
	return nil
}
