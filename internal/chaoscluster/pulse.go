package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/internal/pause"
)

// pulse is when the broker confirmed a message of a client that has nothing to do with Millrace. It
// shows for how long the broker itself served nobody.
type pulse struct {
	mu sync.Mutex
	at []time.Time
}

const (
	pulseEvery  = 100 * time.Millisecond
	pulseWithin = time.Second // a broker that has not confirmed by then is tried over another connection
)

// feel publishes until the context ends, through whichever node answers.
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
	// The client library's calls know no context.
	stuck := time.AfterFunc(pulseWithin, func() { _ = conn.CloseDeadline(time.Now()) })
	defer stuck.Stop()
	ch, err := conn.Channel()
	if err != nil || ch.Confirm(false) != nil {
		return
	}
	q, err := ch.QueueDeclare("pulse", true, false, false, false, amqp.Table{"x-max-length": int32(1)})
	if err != nil {
		return
	}
	for ctx.Err() == nil {
		stuck.Reset(pulseWithin)
		confirm, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", q.Name, false, false, amqp.Publishing{DeliveryMode: amqp.Persistent})
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

// away is for how long the broker confirmed nothing, at most.
func (p *pulse) away(from, to time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return longestGap(p.at, from, to, true)
}
