package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// Topology is what AssertTopology found and did.
type Topology struct {
	JournalCreated bool      // the journal did not exist: this is a first start, or it was deleted
	Created        []string  // exchanges and queues that did not exist
	FireRepaired   bool      // jobs.fire was not bound to jobs.route, and is again: what was fired before may be in the journal alone
	FireUnrouted   bool      // jobs.fire is not bound to jobs.route, and stays so: RebuildFire mends it while nothing is fired
	Findings       []Finding // what exists, but not as Millrace would have made it
}

// Finding is something on the broker that is not as it should be, in words for a person.
type Finding struct {
	Subject string // the thing's name
	Problem string // what is wrong and what it costs
	Remedy  string // what to do
}

// patience is how long a thing may be out of reach, as streams are for a moment after a restart, before that is an error.
const patience = 30 * time.Second

// exchange and queue say how a thing is declared. An own thing is Millrace's alone, and is an error if it is not as declared.
type exchange struct {
	name, kind string
	args       amqp.Table
	own        bool
}

type queue struct {
	name   string
	args   amqp.Table
	own    bool
	stream bool
}

var (
	direct = exchange{name: wire.ExchangeDirect, kind: amqp.ExchangeDirect}

	exchanges = []exchange{
		{name: wire.Unrouted, kind: amqp.ExchangeFanout, own: true},
		{name: wire.ExchangeDead, kind: amqp.ExchangeFanout},
		{name: wire.ExchangeRoute, kind: amqp.ExchangeDirect, args: amqp.Table{"alternate-exchange": wire.Unrouted}, own: true},
		{name: wire.ExchangeFire, kind: amqp.ExchangeFanout, own: true},
		{name: wire.ExchangeBury, kind: amqp.ExchangeFanout, own: true},
		{name: wire.Control, kind: amqp.ExchangeFanout},
	}
	queues = []queue{
		{name: wire.Unrouted, own: true},
		{name: wire.DeadLetters, own: true},
		stream(wire.ScheduledJobs, false),
		stream(wire.Retries, false),
		stream(wire.DeadJobs, false),
		stream(wire.Heartbeats, false),
		stream(wire.JobMetrics, false),
		stream(wire.JobBegins, false),
		stream(wire.Journal, true),
		stream(wire.Rollups, true),
	}
)

func stream(name string, own bool) queue {
	return queue{name: name, args: amqp.Table{"x-queue-type": "stream"}, own: own, stream: true}
}

func (e exchange) declare(ch *amqp.Channel) error {
	return ch.ExchangeDeclare(e.name, e.kind, true, false, false, false, e.args)
}

func (e exchange) exists(ch *amqp.Channel) error {
	return ch.ExchangeDeclarePassive(e.name, e.kind, true, false, false, false, nil)
}

func (q queue) declare(ch *amqp.Channel) error {
	_, err := ch.QueueDeclare(q.name, true, false, false, false, q.args)
	return err
}

func (q queue) exists(ch *amqp.Channel) error {
	_, err := ch.QueueDeclarePassive(q.name, true, false, false, false, nil)
	return err
}

// AssertTopology makes what is missing of Millrace's exchanges, queues and bindings, and reports what is otherwise than it should be.
// It can be called at any time and as often as one likes, also beside a leader that fires. An error says that something Millrace
// cannot do without is not there, or is a different thing.
//
// Bindings are made in an order that matters: jobs.fire to jobs.route before the journal, since LavinMQ asks an alternate exchange
// only while no queue has matched yet. Where that binding has gone missing, as mgmt tells, those of jobs.fire are left as they are, for
// who leads to mend while nothing is fired. Without mgmt, which may be nil, all are made anew: fires that meet the moment in between are not
// journaled, thus fired again, while until then they were journaled and lost.
func (c *Conn) AssertTopology(ctx context.Context, mgmt *Management) (Topology, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a := &assertion{conn: c}
	var faults []error
	step := func(err error) bool {
		if err != nil {
			faults = append(faults, err)
		}
		return ctx.Err() == nil && !errors.Is(err, ErrLost)
	}
	for _, e := range exchanges {
		if !step(a.exchange(ctx, e)) {
			return a.top, errors.Join(faults...)
		}
	}
	for _, q := range queues {
		if !step(a.queue(ctx, q)) {
			return a.top, errors.Join(faults...)
		}
	}
	if unbound := a.routeWasUnbound(ctx, mgmt); unbound && mgmt != nil {
		a.unrouted()
	} else if unbound {
		a.repaired()
		if c.features.AlternateNeedsOrder && !step(c.RebuildFire(ctx)) {
			return a.top, errors.Join(faults...)
		}
	}
	for _, b := range bindings {
		if a.top.FireUnrouted && b.source == wire.ExchangeFire {
			continue
		}
		if !step(c.request(ctx, b.bind)) {
			return a.top, errors.Join(faults...)
		}
	}
	step(a.exchange(ctx, direct)) // last: from here on clients publish, and what cannot be routed must have somewhere to go
	return a.top, errors.Join(faults...)
}

type binding struct {
	source, destination string
	queue               bool // destination is a queue
}

var bindings = []binding{
	{wire.Unrouted, wire.Unrouted, true},
	{wire.ExchangeDead, wire.DeadLetters, true},
	{wire.ExchangeFire, wire.ExchangeRoute, false},
	{wire.ExchangeFire, wire.Journal, true},
	{wire.ExchangeBury, wire.DeadJobs, true},
	{wire.ExchangeBury, wire.Journal, true},
}

func (b binding) bind(ch *amqp.Channel) error {
	err := func() error {
		if b.queue {
			return ch.QueueBind(b.destination, "", b.source, false, nil)
		}
		return ch.ExchangeBind(b.destination, "", b.source, false, nil)
	}()
	if err != nil {
		return fmt.Errorf("broker: bind %s to %s: %w", b.destination, b.source, err)
	}
	return nil
}

// FireIsRouted tells whether jobs.fire is bound to jobs.route, as far as mgmt, which may be nil, can tell.
func (c *Conn) FireIsRouted(ctx context.Context, mgmt *Management) (bool, error) {
	if mgmt == nil {
		return true, nil
	}
	return mgmt.bound(ctx, wire.ExchangeFire, wire.ExchangeRoute)
}

// RebuildFire makes the bindings of jobs.fire anew in the right order. Nothing should be fired meanwhile: for a moment fires do not
// reach the journal.
func (c *Conn) RebuildFire(ctx context.Context) error {
	return c.request(ctx, func(ch *amqp.Channel) error {
		if err := ch.QueueUnbind(wire.Journal, "", wire.ExchangeFire, nil); err != nil {
			return fmt.Errorf("broker: unbind %s from %s: %w", wire.Journal, wire.ExchangeFire, err)
		}
		for _, b := range bindings {
			if b.source == wire.ExchangeFire {
				if err := b.bind(ch); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
