package broker

import (
	"context"
	"fmt"
	"maps"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// CheckMove returns an error if a queue cannot be moved to another type on this broker.
func (f Features) CheckMove(q QueueInfo, to QueueType) error {
	switch {
	case to == QueueQuorum && !f.QuorumPriorities:
		return fmt.Errorf("%s %s has no quorum queues with strict priorities, so jobs cannot be in quorum queues: this needs RabbitMQ 4.3 or later",
			f.Product, f.Version)
	case q.Type != string(QueueClassic) && q.Type != string(QueueQuorum):
		return fmt.Errorf("it is a queue of type %s, and not classic or quorum", q.Type)
	case !q.Durable || q.Exclusive:
		return fmt.Errorf("it is not durable, or exclusive: only a durable queue that any client can use is moved")
	case q.State == "down" || q.State == "stopped":
		return fmt.Errorf("it is %s: its node is away", q.State)
	}
	return nil
}

// ArgumentsOf returns the arguments of a job queue of a type, where queues have this type by
// default.
func ArgumentsOf(t QueueType) map[string]any {
	if t == QueueQuorum {
		return maps.Clone(quorumArguments)
	}
	return maps.Clone(classicArguments)
}

// Unbind unbinds queue.<name> from jobs.direct and jobs.route. From then on, jobs that are
// published for it become entries of jobs.gated.
func (q Queues) Unbind(ctx context.Context, name string) error {
	queue := wire.QueuePrefix + name
	for _, exchange := range []string{wire.ExchangeDirect, wire.ExchangeRoute} {
		err := q.request(ctx, queue, func(ch *amqp.Channel) error { return ch.QueueUnbind(queue, name, exchange, nil) })
		if err != nil && reasonOf(err) != ReasonMissing {
			return err
		}
	}
	return nil
}

// Queue returns one queue, by its full name. counted reports whether the broker has counted its
// messages. Without a count the queue need not be empty: it is new, or the broker collects no
// statistics.
func (m *Management) Queue(ctx context.Context, name string) (q QueueInfo, counted bool, err error) {
	var said struct {
		queueObject
		Messages *number `json:"messages"`
		Unacked  *number `json:"messages_unacknowledged"`
	}
	if err := m.get(ctx, "/api/queues/"+segment(m.vhost)+"/"+segment(name), &said); err != nil {
		return q, false, err
	}
	q = said.info(m.features)
	if counted = said.Messages != nil && said.Unacked != nil; counted {
		q.Messages, q.Unacked = int64(*said.Messages), int64(*said.Unacked)
	}
	return q, counted, nil
}

// BoundElsewhere returns the other exchanges to which a queue is bound: not jobs.direct, jobs.route
// or the default exchange.
func (m *Management) BoundElsewhere(ctx context.Context, name string) (exchanges []string, err error) {
	var said []struct {
		Source string `json:"source"`
		Key    string `json:"routing_key"`
	}
	if err := m.get(ctx, "/api/queues/"+segment(m.vhost)+"/"+segment(name)+"/bindings", &said); err != nil {
		return nil, err
	}
	for _, b := range said {
		own := b.Source == wire.ExchangeDirect || b.Source == wire.ExchangeRoute
		if own = own && wire.QueuePrefix+b.Key == name; b.Source != "" && !own {
			exchanges = append(exchanges, b.Source)
		}
	}
	slices.Sort(exchanges)
	return slices.Compact(exchanges), nil
}
