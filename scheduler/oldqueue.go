package scheduler

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/wire"
)

// Up to format 1 the exchange jobs.unrouted led to a classic queue of the same name. The first
// leader with a newer format moves its messages to jobs.gated. The stream is bound before the queue
// is unbound, so a message that is published in between is in both. It is known as a repeated
// publish while both are pending. So nothing of jobs.gated is fired until the queue is empty.

const (
	// oldQueueAway is after how long out of reach the old queue is given up, and jobs.gated is
	// fired.
	oldQueueAway = 10 * time.Second
	// oldQueueAgain is how often it is looked again whether it is empty.
	oldQueueAgain = 100 * time.Millisecond
)

// oldQueue takes over the queue of an older version.
type oldQueue struct {
	l     *leadership
	ends  chan struct{} // closed when it is taken over, or given up
	taken sync.Once
}

func newOldQueue(l *leadership) *oldQueue { return &oldQueue{l: l, ends: make(chan struct{})} }

// exists reports whether the old queue is there, or may be.
func (q *oldQueue) exists(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	_, _, err := q.l.conn.Queues().Depth(ctx, wire.Unrouted)
	return !broker.IsMissing(err)
}

// takeOver moves what is in the old queue, and ends the hold.
func (q *oldQueue) takeOver(ctx context.Context) error {
	limit := time.AfterFunc(oldQueueAway, q.endHold)
	defer limit.Stop()
	bad := badBodies{}
	return q.l.s.keepRunning(ctx, q.l.conn, "emptying the queue jobs.unrouted", func(ctx context.Context) error {
		if err := q.l.conn.Topology().UnbindOldQueue(ctx); err != nil {
			return err
		}
		moved, err := q.empty(ctx, bad, limit)
		if err != nil || ctx.Err() != nil {
			return err
		}
		q.endHold()
		if err := q.delete(ctx); err != nil {
			return err
		}
		q.l.s.log.Info("scheduler: the queue jobs.unrouted of an older version is empty and deleted", "moved", moved)
		<-ctx.Done()
		return nil
	})
}

// delete deletes the old queue, which is unbound. Where it is a quorum queue, as the virtual
// host's default may have made it, that cannot depend on its being empty: it has just been.
func (q *oldQueue) delete(ctx context.Context) error {
	err := broker.DeleteIdle(ctx, q.l.s.cfg.Broker, wire.Unrouted)
	if !errors.Is(err, broker.ErrNoConditions) {
		return err
	}
	if messages, consumers, err := q.l.conn.Queues().Depth(ctx, wire.Unrouted); err != nil || messages > 0 || consumers > 0 {
		return err
	}
	return q.l.conn.Queues().Delete(ctx, wire.Unrouted, false, false)
}

// endHold has the loop fire what is in jobs.gated.
func (q *oldQueue) endHold() { q.taken.Do(func() { close(q.ends) }) }

// empty moves what is in the old queue until it is empty. While it can be reached the hold lasts.
func (q *oldQueue) empty(ctx context.Context, bad badBodies, limit *time.Timer) (moved int, err error) {
	relay, err := openRelay(ctx, q.l.conn, wire.Unrouted, bad)
	if broker.IsMissing(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer relay.close()
	relay.nacked = relay.requeue
	limit.Stop()
	defer limit.Reset(oldQueueAway) // its node may be away from now on
	running, stop := context.WithCancel(ctx)
	defer stop()
	err = relay.run(running, func(d wire.Delivery) error {
		moved++
		return relay.forward(d, q.l.asGated(d))
	}, every(running, oldQueueAgain), func() error {
		left, _, err := q.l.conn.Queues().Depth(ctx, wire.Unrouted)
		if err == nil && left == 0 && len(relay.unacked) == 0 {
			stop()
		}
		return err
	})
	become := func(d wire.Delivery) (wire.Message, bool) { return q.l.asGated(d), true }
	return moved, errors.Join(err, relay.rescue(ctx, q.l.s, q.l.conn, become))
}

// asGated returns a message of the old queue as a record of jobs.gated. A fire that found no queue
// keeps its headers.
func (l *leadership) asGated(d wire.Delivery) wire.Message {
	r := wire.Record{Stream: wire.Gated, UserID: d.UserID, Exchange: d.Exchange, Key: d.Key, Priority: d.Priority, Body: d.Body}
	m := wire.Message{Key: wire.Gated, MessageID: d.MessageID, Timestamp: d.Timestamp, Headers: wire.TraceHeaders(wire.TraceOf(d.Headers)), Body: d.Body}
	if body, err := wire.EntryBody(&r); err == nil {
		m.Body = body // else the stream rejects it as it is
	}
	if !l.s.entries.Trusts(&r) {
		return m
	}
	if sent, fired := wire.DispatchOf(d.Headers); fired {
		m.Headers = sent.Headers()
		wire.ProvenanceOf(d.Headers, d.UserID, true).AddTo(m.Headers)
	} else if _, probe := wire.ProbeOf(d.Headers); probe {
		m.Headers = map[string]any{wire.HeaderOp: wire.OpProbe}
	}
	return m
}

// every ticks until ctx ends.
func every(ctx context.Context, d time.Duration) <-chan struct{} {
	ticks := make(chan struct{})
	go func() {
		for pause.For(ctx, d) == nil {
			select {
			case ticks <- struct{}{}:
			case <-ctx.Done():
			}
		}
	}()
	return ticks
}
