package broker

import (
	"context"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// Topology is what AssertTopology found and did.
type Topology struct {
	JournalCreated bool      // the journal did not exist: this is a first start, or it was deleted
	Created        []string  // exchanges and queues that did not exist
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
		{name: wire.ExchangeDead, kind: amqp.ExchangeFanout},
		{name: wire.Control, kind: amqp.ExchangeFanout},
	}
	queues = []queue{
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

// AssertTopology makes what is missing of Millrace's exchanges and queues, but for the way that fires take, and reports what is otherwise
// than it should be. It can be called at any time and as often as one likes, also beside a leader that fires. An error says that something
// Millrace cannot do without is not there, or is a different thing.
func (c *Conn) AssertTopology(ctx context.Context) (Topology, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a := &assertion{conn: c}
	err := a.all(ctx, exchanges, queues, bindings)
	return a.top, err
}

type binding struct {
	source, destination string
	queue               bool // destination is a queue
}

var bindings = []binding{{wire.ExchangeDead, wire.DeadLetters, true}}

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
