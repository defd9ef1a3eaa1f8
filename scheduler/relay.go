package scheduler

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/wire"
)

// relay takes messages from a queue, publishes each elsewhere, and acknowledges it when that is
// confirmed. So a crash repeats a message and never loses one.
type relay struct {
	queue   string
	from    *broker.Consumer
	to      *broker.Publisher
	unacked map[uint64]wire.Delivery // what came and is not acknowledged, by delivery tag
	flight  map[uint64]wire.Delivery // what of it was published, by publish tag
	nacked  func(wire.Delivery)
	bad     badBodies
}

// badBodies are bodies that were in flight when the broker closed the channel or connection over a
// message, with how often. While there are any, messages go one at a time. What ends a channel
// twice is not sent again.
type badBodies map[[sha256.Size]byte]int

func (b badBodies) isBad(d wire.Delivery) bool {
	return len(b) > 0 && b[sha256.Sum256(d.Body)] >= maxKills
}

// blame counts one of them once more.
func (b badBodies) blame(d wire.Delivery) {
	if len(b) < maxBad {
		b[sha256.Sum256(d.Body)]++
	}
}

// forgive forgets one: the broker has borne it.
func (b badBodies) forgive(d wire.Delivery) {
	if len(b) > 0 {
		delete(b, sha256.Sum256(d.Body))
	}
}

// maxBad bounds how many are remembered.
const maxBad = 4096

func openRelay(ctx context.Context, conn *broker.Conn, queue string, bad badBodies) (*relay, error) {
	to, err := conn.StrictPublisher(ctx)
	if err != nil {
		return nil, err
	}
	from, err := conn.Consume(ctx, queue, broker.AtOnce, false)
	if err != nil {
		_ = to.Close()
		return nil, err
	}
	return &relay{queue: queue, from: from, to: to, unacked: map[uint64]wire.Delivery{}, flight: map[uint64]wire.Delivery{}, bad: bad}, nil
}

func (r *relay) close() {
	if broker.CausedByClient(r.to.Err()) {
		for _, d := range r.flight {
			r.bad.blame(d)
		}
	}
	_ = r.from.Close()
	_ = r.to.Close()
}

// forward publishes what a delivery became.
func (r *relay) forward(d wire.Delivery, m wire.Message) error {
	tag, err := r.to.Publish(m)
	if err != nil {
		return err
	}
	r.flight[tag] = d
	return nil
}

// run passes deliveries to take until ctx or a channel ends, and calls tick when it is due. When
// ctx ends, it waits for what is in flight.
func (r *relay) run(ctx context.Context, take func(wire.Delivery) error, ticks <-chan struct{}, tick func() error) error {
	for {
		var err error
		deliveries := r.from.Deliveries()
		if len(r.bad) > 0 && len(r.flight) > 0 {
			deliveries = nil // one at a time
		}
		select {
		case <-ctx.Done():
			return r.retire()
		case <-r.to.Done():
			return r.to.Err()
		case confirms := <-r.to.Confirms():
			err = r.confirmed(confirms)
		case <-ticks:
			err = tick()
		case d, open := <-deliveries:
			if !open {
				return errors.Join(fmt.Errorf("scheduler: consumer ended: %w", r.from.Err()), r.retire())
			}
			r.unacked[d.Tag] = d
			err = take(d)
		}
		if err != nil {
			return err
		}
	}
}

// retire acknowledges what is published and not confirmed yet, when it is. Otherwise the queue
// would have it again, and the next leader publish it once more: a broker shows a job to workers
// before it writes it to the disk and confirms it.
func (r *relay) retire() error {
	deadline := time.NewTimer(retireWithin)
	defer deadline.Stop()
	for len(r.flight) > 0 {
		select {
		case confirms := <-r.to.Confirms():
			if err := r.confirmed(confirms); err != nil {
				return err
			}
		case <-r.to.Done():
			return r.to.Err()
		case <-deadline.C:
			return nil
		}
	}
	return nil
}

func (r *relay) confirmed(confirms []broker.Confirm) error {
	for _, c := range confirms {
		if err := r.answered(c); err != nil {
			return err
		}
	}
	return nil
}

// answered acknowledges a message that was published. One that was refused goes back to its queue.
// One that no queue took ends the relay.
func (r *relay) answered(c broker.Confirm) error {
	d, ok := r.flight[c.Tag]
	if !ok {
		return nil
	}
	delete(r.flight, c.Tag)
	r.bad.forgive(d)
	switch {
	case c.Ack:
		return r.ack(d)
	case c.Returned:
		return fmt.Errorf("scheduler: %s: what became of a message: %w", r.queue, broker.ErrReturned)
	}
	r.nacked(d)
	return nil
}

// ack takes a message off the queue: what it became is safe, or it became nothing.
func (r *relay) ack(d wire.Delivery) error {
	delete(r.unacked, d.Tag)
	if r.from.Cancelled() {
		return nil // its queue is gone
	}
	return r.from.Ack(d.Tag, false)
}

// requeue has a message delivered again, if its queue still exists.
func (r *relay) requeue(d wire.Delivery) {
	if r.from.Cancelled() {
		return // it stays at hand
	}
	delete(r.unacked, d.Tag)
	_ = r.from.Reject(d.Tag, true)
}

// keepRunning runs a part of a leadership again and again, as long as its connection lives.
func (s *Scheduler) keepRunning(ctx context.Context, conn *broker.Conn, what string, part func(context.Context) error) error {
	retry := pause.Growing(longestPause)
	for {
		err := part(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-conn.Done():
			return nil // the loop that fires ends the epoch
		default:
		}
		level := slog.LevelWarn
		if broker.IsAway(err) { // watchWanted logs that, once
			level = slog.LevelDebug
		}
		s.log.Log(ctx, level, "scheduler: "+what+" begins again", "error", err)
		if broker.IsUnroutable(err) { // a client deleted what it needs
			if err := s.prepare(ctx, conn); err != nil {
				s.log.Warn("scheduler: cannot assert the topology", "error", err)
			}
		}
		s.assertSoon()
		if pause.For(ctx, retry.NextBackOff()) != nil {
			return nil
		}
	}
}

func now() float64 { return wire.Seconds(time.Now()) }

// rejection returns a journal record about a message that is no job.
func (s *services) rejection(queue, reason string, body []byte) wire.Message {
	const kept = 64 << 10
	epoch, _ := s.entries.Progress()
	r := wire.JournalRecord{Type: wire.TypeRejected, At: now(), Epoch: epoch, Queue: queue, Reason: reason,
		Count: int64(len(body)), Body: body[:min(len(body), kept)]}
	return r.Append(wire.Journal, 0, 0)
}
