package broker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// Topology is what was found on the broker and done there.
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

// Fault is something that Millrace wants on the broker, and that it does not have or cannot reach now. Jobs fire without it.
type Fault struct {
	Subject string // such as "queue heartbeats"
	Costs   string // what does not work meanwhile
	Err     error
}

// How long one step may take. A thing whose node is down, as that of a stream is for a moment after a restart, is waited for that long.
const (
	neededWithin = 5 * time.Second
	wantedWithin = 3 * time.Second
	patience     = 30 * time.Second // for all that MakeWay does
)

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

	// needed are the streams without which nothing can be fired. The exchanges that fires take are made by MakeWay.
	needed = streamSteps(append([]string{wire.Journal}, wire.EntryStreams...)...)
)

// SubjectDirect is the subject of a fault of jobs.direct: clients cannot publish jobs.
const SubjectDirect = "exchange " + wire.ExchangeDirect

// want is something that Millrace fires without.
type want struct {
	step
	costs string // what does not work without it
}

// wanted lists what Millrace fires without. jobs.direct comes first, apart: only a leader may make it.
func wanted(leads bool) []want {
	first := want{direct.lookStep(), "clients cannot publish jobs"}
	if leads {
		first.step = direct.step()
	}
	const rejected = "jobs that workers reject, or that expire, may be lost"
	return []want{
		first,
		{exchange{name: wire.ExchangeDead, kind: amqp.ExchangeFanout}.step(), rejected},
		{lettersStep(), rejected},
		{binding{wire.ExchangeDead, wire.DeadLetters, true}.step(), rejected},
		{exchange{name: wire.Control, kind: amqp.ExchangeFanout}.step(), "workers do not hear commands, such as to pause a queue"},
		{stream(wire.Heartbeats, false).step(), "the list of worker processes is out of date"},
		{stream(wire.JobMetrics, false).step(), "workers cannot report how long jobs took and which failed"},
		{stream(wire.Rollups, true).step(), "metrics cannot be stored for long"},
		{stream(wire.JobBegins, false).step(), "workers cannot recognise a job that kills its process"},
	}
}

// lettersStep asserts the queue of dead letters. Where the broker has quorum queues it is one, on a single node too: the loss of a node
// then loses no letter, and a cluster that grows needs no other queue, only more members. Letters are never dropped for being given out
// often, which RabbitMQ 4 would do after 20 times; the limit is one that every version takes.
func lettersStep() step {
	return step{"queue " + wire.DeadLetters, func(ctx context.Context, a *assertion) error {
		q := queue{name: wire.DeadLetters}
		if a.conn.features.QuorumQueues {
			q.args = amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": int32(math.MaxInt32)}
		}
		return a.queue(ctx, q)
	}}
}

// RetireDeadLetters has dead letters go to jobs.letters alone: it binds that queue, and then unbinds the one that earlier versions had. It
// can be repeated. The other queue is still to be emptied.
func (c *Conn) RetireDeadLetters(ctx context.Context) error {
	return c.request(ctx, func(ch *amqp.Channel) error {
		if err := (binding{wire.ExchangeDead, wire.DeadLetters, true}).bind(ch); err != nil {
			return err
		}
		if err := ch.QueueUnbind(wire.OldDeadLetters, "", wire.ExchangeDead, nil); err != nil {
			return fmt.Errorf("broker: unbind %s from %s: %w", wire.OldDeadLetters, wire.ExchangeDead, err)
		}
		return nil
	})
}

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
	return q.answered(ch, func() error {
		_, err := ch.QueueDeclare(q.name, true, false, false, q.stream, q.args)
		return err
	})
}

func (q queue) exists(ch *amqp.Channel) error {
	return q.answered(ch, func() error {
		_, err := ch.QueueDeclarePassive(q.name, true, false, false, q.stream, nil)
		return err
	})
}

// answered declares a queue and returns the broker's answer. A stream is declared without one, which would have its length: RabbitMQ asks
// the stream's leader for that, and waits for seconds while the leader's node is frozen.
func (q queue) answered(ch *amqp.Channel, declare func() error) error {
	if q.stream {
		return unanswered(ch, declare)
	}
	return declare()
}

// AssertTopology makes what is missing of the streams that Millrace cannot fire without, and reports what is otherwise than it should
// be. It may be called at any time, also beside a leader that fires. Each stream has five seconds to answer. An error says that one is
// not there, cannot be reached, or is a different thing.
func (c *Conn) AssertTopology(ctx context.Context) (Topology, error) {
	a := &assertion{conn: c, within: neededWithin}
	err := a.runAll(ctx, needed)
	return a.top, err
}

// AssertWanted makes what is missing of what Millrace wants and fires without, and lists what it could not make or reach. It may be
// called at any time; only a leader makes jobs.direct. Each thing has three seconds to answer. It works on connections of its own: some
// refusals end the connection, and must not end the one that fires. An error says that there is no connection.
func AssertWanted(ctx context.Context, cfg Config, leads bool) (top Topology, faults []Fault, err error) {
	a := &assertion{within: wantedWithin}
	defer func() {
		if a.conn != nil {
			_ = a.conn.Close()
		}
	}()
	for _, w := range wanted(leads) {
		if a.conn == nil {
			if a.conn, err = Dial(ctx, cfg); err != nil {
				return a.top, faults, err
			}
		}
		err := a.run(ctx, w.step)
		if ctx.Err() != nil {
			return a.top, faults, ctx.Err()
		}
		if err != nil {
			faults = append(faults, Fault{w.subject, w.costs, err})
		}
		if errors.Is(err, ErrLost) {
			_ = a.conn.Close()
			a.conn = nil
		}
	}
	return a.top, faults, nil
}

type binding struct {
	source, destination string
	queue               bool // destination is a queue
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
