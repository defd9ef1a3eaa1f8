package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/internal/pause"
)

// pulse records when the broker confirmed a message of a client that has nothing to do with
// Millrace. It shows how long the broker itself served no client. On RabbitMQ, it uses a stream
// with its leader on one node.
type pulse struct {
	queue string

	mu sync.Mutex
	at []time.Time
}

const (
	pulseEvery = 200 * time.Millisecond
	// pulseWithin is how long a confirm may take before another connection is tried.
	pulseWithin = time.Second
	// pulsesOf is how many streams each node of RabbitMQ leads. After a fault, one may wait longer
	// for a new leader than another.
	pulsesOf = 3
)

// beginPulses starts some pulses for each node of RabbitMQ, and one for LavinMQ, which has one
// leader for everything.
func (w *world) beginPulses(ctx context.Context) error {
	args, pulses := amqp.Table{"x-queue-type": "stream", "x-queue-leader-locator": "client-local"}, pulsesOf*len(w.nodes.Nodes)
	if w.nodes.kind == lavinMQ {
		args, pulses = amqp.Table{"x-max-length": int32(1)}, 1
	}
	for i := range pulses {
		p := &pulse{queue: fmt.Sprintf("pulse%d", i+1)}
		if err := w.declareOn(i%len(w.nodes.Nodes), p.queue, args); err != nil {
			return err
		}
		w.pulses = append(w.pulses, p)
		w.all.Go(func() { p.feel(ctx, w) })
	}
	return nil
}

func (w *world) declareOn(node int, queue string, args amqp.Table) error {
	conn, err := w.dialNode(node)
	if err != nil {
		return err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	_, err = ch.QueueDeclare(queue, true, false, false, false, args)
	return err
}

// feel publishes until ctx ends, through any node that answers.
func (p *pulse) feel(ctx context.Context, w *world) {
	for ctx.Err() == nil {
		conn, err := w.dialSoon(ctx, rand.IntN(len(w.nodes.Nodes))) //nolint:gosec // no secret
		if err != nil {
			return
		}
		p.feelOn(ctx, conn)
		_ = conn.CloseDeadline(time.Now())
	}
}

func (p *pulse) feelOn(ctx context.Context, conn *amqp.Connection) {
	// The calls of the client library take no context.
	stuck := time.AfterFunc(pulseWithin, func() { _ = conn.CloseDeadline(time.Now()) })
	defer stuck.Stop()
	ch, err := conn.Channel()
	if err != nil || ch.Confirm(false) != nil {
		return
	}
	for ctx.Err() == nil {
		stuck.Reset(pulseWithin)
		confirm, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", p.queue, false, false, amqp.Publishing{DeliveryMode: amqp.Persistent})
		if err != nil {
			return
		}
		within, cancel := context.WithTimeout(ctx, pulseWithin)
		ok, err := confirm.WaitContext(within)
		cancel()
		if err != nil || !ok {
			return
		}
		p.note(time.Now())
		_ = pause.For(ctx, pulseEvery)
	}
}

func (p *pulse) note(at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = append(p.at, at)
}

// brokerAway returns the longest time in which the broker confirmed nothing of one pulse.
func (w *world) brokerAway(from, to time.Time) (longest time.Duration) {
	for _, p := range w.pulses {
		longest = max(longest, p.away(from, to))
	}
	return longest
}

func (p *pulse) away(from, to time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return longestGap(p.at, from, to, true)
}
