package broker

import (
	"context"
	"crypto/rand"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// What clients publish to jobs.direct for a queue goes to the queue. If the queue is governed,
// nothing is bound, and it goes to jobs.gated through the alternate exchange. A client that binds
// the queue has jobs go to that queue, and not to two places. While the alternate exchange cannot
// be relied on, jobs.gated is bound. If too many jobs of the queue wait, jobs.full is.

// Route is where jobs go that clients publish for a queue.
type Route struct {
	Queue  string
	To     string // the only one that is bound; empty leaves the jobs to the alternate exchange
	Capped bool   // jobs.full may be bound; if it may not, it does not matter that its node is away
	Bare   bool   // there is no alternate exchange, so that jobs would be lost while nothing is bound
}

// Direct sends what clients publish for a queue to one destination alone. The others are unbound
// first: a message for which two are bound would be there twice. If the alternate exchange is gone,
// they are unbound afterwards. A queue that does not exist is left out, and bound when it is made.
func (q Queues) Direct(ctx context.Context, r Route) error {
	if r.Bare && r.To != "" {
		if err := q.lead(ctx, r); err != nil {
			return err
		}
	}
	for _, other := range []string{wire.QueuePrefix + r.Queue, wire.Gated, wire.Full} {
		if other == r.To {
			continue
		}
		err := q.Undirect(ctx, r.Queue, other)
		unused := other == wire.Full && !r.Capped && IsAway(err)
		if err != nil && reasonOf(err) != ReasonMissing && !unused {
			return err
		}
	}
	if r.Bare || r.To == "" {
		return nil
	}
	return q.lead(ctx, r)
}

func (q Queues) lead(ctx context.Context, r Route) error {
	err := q.bindDirect(ctx, r.To, r.Queue)
	if r.To == wire.QueuePrefix+r.Queue && reasonOf(err) == ReasonMissing {
		return nil
	}
	return err
}

// Catch binds jobs.gated for a queue, beside what is bound.
func (q Queues) Catch(ctx context.Context, name string) error {
	return q.bindDirect(ctx, wire.Gated, name)
}

// Undirect removes one destination, by its full name, of what clients publish for a queue.
func (q Queues) Undirect(ctx context.Context, name, destination string) error {
	return q.request(ctx, destination, func(ch *amqp.Channel) error { return ch.QueueUnbind(destination, name, wire.ExchangeDirect, nil) })
}

// HasAlternate reports whether a message to jobs.direct for which nothing is bound is kept. It
// sends one that looks like a job for a queue that does not exist.
func (p *Publisher) HasAlternate(ctx context.Context) (bool, error) {
	err := p.SendMandatory(ctx, wire.DirectProbe("millrace.probe."+rand.Text()))
	if IsUnroutable(err) {
		return false, nil
	}
	return err == nil, err
}

// EnsureFull makes sure that jobs.full exists and can be reached. It refuses every message.
func (t Topology) EnsureFull(ctx context.Context) error {
	args := amqp.Table{"x-queue-type": "classic", "x-max-length": int32(0), "x-overflow": "reject-publish"}
	if !t.conn.features.QuorumQueues { // LavinMQ has no types of queues
		delete(args, "x-queue-type")
	}
	return t.conn.Queues().request(ctx, wire.Full, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(wire.Full, true, false, false, false, args)
		return err
	})
}

// Directed returns to which queues messages of jobs.direct go, by routing key.
func (m *Management) Directed(ctx context.Context) (map[string][]string, error) {
	var said []boundQueue
	if err := m.get(ctx, "/api/exchanges/"+segment(m.vhost)+"/"+segment(wire.ExchangeDirect)+"/bindings/source", &said); err != nil {
		return nil, fmt.Errorf("broker: bindings of %s: %w", wire.ExchangeDirect, err)
	}
	all := map[string][]string{}
	for _, b := range said {
		if b.Type == "queue" {
			all[b.Key] = append(all[b.Key], b.Destination)
		}
	}
	return all, nil
}
