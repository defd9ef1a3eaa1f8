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

// Topology is the exchanges, streams and bindings that Millrace needs on the broker.
type Topology struct{ conn *Conn }

// Topology returns the topology of the virtual host, as this connection reaches it.
func (c *Conn) Topology() Topology { return Topology{c} }

// Fault is something that Millrace wants on the broker, and does not have or cannot reach now.
// Millrace fires jobs without it.
type Fault struct {
	Subject string // such as "queue heartbeats"
	Costs   string // what does not work meanwhile
	Err     error
}

// Limits of one step. A step waits that long for a queue whose node is down. The node of a stream
// is down for a moment after a restart.
const (
	neededWithin = 5 * time.Second
	wantedWithin = 3 * time.Second
	patience     = 30 * time.Second // for a whole EnsureRouting
)

// needed are the streams without which nothing can be fired. EnsureRouting declares the
// exchanges that fires use.
var needed = streamSteps(append([]string{wire.Journal}, wire.EntryStreams...)...)

// SubjectDirect is the subject of the fault that jobs.direct is missing. Clients cannot publish
// jobs then.
const SubjectDirect = "exchange " + wire.ExchangeDirect

// want is something that Millrace wants, and can fire without.
type want struct {
	step
	costs string // what does not work without it
}

// wanted returns what Millrace wants and can fire without. jobs.direct comes first, and only a
// leader declares it.
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
		{stream(wire.JobEnds, false).step(), "workers cannot report that jobs with limits have ended, so no more of these begin"},
	}
}

// lettersStep asserts the queue of dead letters.
//
// It is a quorum queue where the broker has those, even on a single node. Then the loss of a node
// loses no letter, and a cluster that grows needs no other queue, only more members.
//
// A letter must not be dropped because it was delivered often, as RabbitMQ 4 does by default after
// 20 times. The limit in its place is one that every version accepts.
func lettersStep() step {
	return step{"queue " + wire.DeadLetters, func(ctx context.Context, a *assertion) error {
		q := queue{name: wire.DeadLetters}
		if a.conn.features.QuorumQueues {
			q.args = amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": int32(math.MaxInt32)}
		}
		return a.queue(ctx, q)
	}}
}

// RetireDeadLetters sends dead letters to jobs.letters alone. It binds that queue, and then unbinds
// the queue of earlier versions, which remains to be emptied. It can be repeated.
func (t Topology) RetireDeadLetters(ctx context.Context) error {
	return t.conn.request(ctx, func(ch *amqp.Channel) error {
		if err := (binding{wire.ExchangeDead, wire.DeadLetters, true}).bind(ch); err != nil {
			return err
		}
		if err := ch.QueueUnbind(wire.OldDeadLetters, "", wire.ExchangeDead, nil); err != nil {
			return fmt.Errorf("broker: unbind %s from %s: %w", wire.OldDeadLetters, wire.ExchangeDead, err)
		}
		return nil
	})
}

// Assert creates what is missing of the streams that Millrace needs to fire, and reports
// those that differ. It may be called at any time, also while a leader fires. Each stream has five
// seconds to answer. An error names the streams that do not exist, cannot be reached, or are
// something else.
func (t Topology) Assert(ctx context.Context) (TopologyReport, error) {
	a := &assertion{conn: t.conn, within: neededWithin}
	err := a.runAll(ctx, needed)
	return a.top, err
}

// AssertWanted creates what is missing of the things that Millrace wants and can fire without. It
// returns a fault for each thing that it could not create or reach. It may be called at any time,
// but only a leader creates jobs.direct. Each thing has three seconds to answer.
//
// AssertWanted uses its own connections: some refusals end the connection, and must not end the one
// that fires. It returns an error if it cannot connect.
func AssertWanted(ctx context.Context, cfg Config, leads bool) (top TopologyReport, faults []Fault, err error) {
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
