package broker

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// What clients publish to jobs.direct for a queue goes to one of three: to the queue, to
// jobs.gated if the queue is governed, or to jobs.full if too many of its jobs wait. While none of
// them is bound, it goes to jobs.gated through the alternate exchange.

// Direct sends what clients publish for a queue to one destination alone. The others are unbound
// first: a message for which two are bound would be there twice. A queue that does not exist is
// left out, and bound when it is made. capped says whether jobs.full may be bound: if it is not,
// it does not matter that its node is away.
func (q Queues) Direct(ctx context.Context, name, destination string, capped bool) error {
	for _, other := range []string{wire.QueuePrefix + name, wire.Gated, wire.Full} {
		if other == destination {
			continue
		}
		err := q.request(ctx, other, func(ch *amqp.Channel) error { return ch.QueueUnbind(other, name, wire.ExchangeDirect, nil) })
		unused := other == wire.Full && !capped && IsAway(err)
		if err != nil && reasonOf(err) != ReasonMissing && !unused {
			return err
		}
	}
	err := q.bindDirect(ctx, destination, name)
	if destination == wire.QueuePrefix+name && reasonOf(err) == ReasonMissing {
		return nil
	}
	return err
}

// HasAlternate reports whether a message to jobs.direct for which nothing is bound is kept. It
// sends one that looks like a job for a queue that does not exist.
func (p *Publisher) HasAlternate(ctx context.Context, queue string) (bool, error) {
	err := p.SendMandatory(ctx, wire.DirectProbe(queue))
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
