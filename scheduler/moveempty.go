package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/wire"
)

// empty moves what is in the queue to jobs.gated until nothing is left of it, neither in it nor at
// workers, and deletes it. again is true where something came into it meanwhile.
func (mv *typeMove) empty(ctx context.Context) (again bool, err error) {
	l := mv.m.l
	relay, err := openRelay(ctx, l.conn, mv.full, mv.bad)
	if broker.IsMissing(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer relay.close()
	relay.nacked = relay.requeue
	watch := emptyWatch{mv: mv, relay: relay, opened: time.Now()}
	rescue := func() error { return relay.rescue(ctx, l.s, l.conn, mv.rescued) }
	if err = watch.run(ctx); err != nil || ctx.Err() != nil {
		return false, errors.Join(err, ctx.Err(), rescue())
	}
	if err := mv.step(ctx, "replacing the queue"); err != nil { // only a leader gets on
		return false, err
	}
	if mv.from == broker.QueueQuorum { // it cannot be deleted "if empty"
		return false, errors.Join(l.conn.Queues().Delete(ctx, mv.full, false, false), rescue())
	}
	relay.close()
	err = l.conn.Queues().Delete(ctx, mv.full, watch.consumers == 0, true)
	var refusal *broker.QueueError
	if errors.As(err, &refusal) && (refusal.Reason == broker.ReasonNotEmpty || refusal.Reason == broker.ReasonInUse) {
		return true, nil
	}
	return false, err
}

// asEntry is a message of the queue as a record of jobs.gated. One that cannot be an entry stays in
// the queue.
func (mv *typeMove) asEntry(d wire.Delivery) (wire.Message, error) {
	d.Exchange, d.Key = wire.ExchangeRoute, mv.cmd.Queue
	m := mv.m.l.asGated(d)
	if _, err := wire.ParseEntry(wire.Gated, 0, m.Body); err != nil {
		return m, notMoved("a message in it cannot be kept in %s meanwhile: %w", wire.Gated, err)
	}
	return m, nil
}

// rescued is what becomes of a message of the queue when that is gone.
func (mv *typeMove) rescued(d wire.Delivery) (wire.Message, bool) {
	entry, err := mv.asEntry(d)
	if err != nil {
		entry = mv.m.l.s.rejection(mv.full, err.Error(), d.Body)
	}
	return entry, true
}

// emptyWatch finds out when a queue that is unbound has nothing any more.
type emptyWatch struct {
	mv        *typeMove
	relay     *relay
	opened    time.Time
	known     time.Duration // how long the management API took to know the consumers
	since     time.Time     // since then it is empty; zero while it is not
	moved     int64
	consumers int // that are not the relay's
}

// run moves what is in the queue, and what comes from workers, until nothing is left.
func (w *emptyWatch) run(ctx context.Context) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	var why error
	err := w.relay.run(running, func(d wire.Delivery) error {
		entry, err := w.mv.asEntry(d)
		if err != nil {
			why = err
			w.relay.requeue(d)
			stop()
			return nil
		}
		w.moved++
		return w.relay.forward(d, entry)
	}, every(running, moveLookEvery), func() error {
		done, err := w.look(ctx)
		if errors.As(err, &errMove{}) { // what is in flight is waited for
			why, err = err, nil
			done = true
		}
		if done {
			stop()
		}
		return err
	})
	return errors.Join(err, why)
}

// look reports whether the queue has been empty for long enough. It is an errMove that there is no
// more time for that.
func (w *emptyWatch) look(ctx context.Context) (bool, error) {
	l, now := w.mv.m.l, time.Now()
	ready, consumers, err := l.conn.Queues().Depth(ctx, w.mv.full)
	if err != nil {
		return false, err
	}
	w.consumers = consumers - 1
	asking, cancel := context.WithTimeout(ctx, movePlanWithin)
	defer cancel()
	q, counted, err := l.s.mgmt.Queue(asking, w.mv.full)
	agrees := err == nil && counted && q.Consumers == int64(consumers)
	if agrees && w.known == 0 {
		w.known = time.Since(w.opened)
	}
	if !agrees || q.Messages+q.Unacked > 0 || ready > 0 || len(w.relay.unacked) > 0 {
		w.since = time.Time{}
	} else if w.since.IsZero() {
		w.since = now
	}
	if w.since.IsZero() && now.After(w.mv.deadline) {
		return false, w.timedOut(ready, q, counted, err)
	}
	err = w.mv.m.inLoop(ctx, func() error {
		w.mv.shown.Moved = w.moved
		w.mv.shown.Step = fmt.Sprintf("waiting until nothing is left in it: %d ready, %d unacknowledged, %s",
			ready, q.Unacked, wire.Counted(int64(w.consumers), "consumer"))
		return nil
	})
	return err == nil && !w.since.IsZero() && now.Sub(w.since) >= max(moveSettled, 2*w.known), err
}

// timedOut says what kept the queue from being moved in time.
func (w *emptyWatch) timedOut(ready int, q broker.QueueInfo, counted bool, err error) error {
	switch {
	case err != nil || !counted:
		return notMoved("the management API did not say how many jobs are unacknowledged in time: %v", err)
	case q.Unacked > 0:
		return notMoved("%s still unacknowledged at workers when the time was over: stop them, or give it more time", wire.Counted(q.Unacked, "job"))
	}
	return notMoved("the queue was not seen to be empty in time: %d ready, %s", ready, wire.Counted(int64(w.consumers), "consumer"))
}

// declare makes the queue as one of the new type. A worker may have been quicker.
func (mv *typeMove) declare(ctx context.Context) error {
	l, to := mv.m.l, broker.QueueType(mv.cmd.Type)
	err := l.conn.Queues().DeclareAs(ctx, mv.full, to)
	asking, cancel := context.WithTimeout(ctx, movePlanWithin)
	defer cancel()
	if q, _, asked := l.s.mgmt.Queue(asking, mv.full); asked == nil && q.Type != mv.cmd.Type {
		return notMoved("a client declared it again as %s before it was declared as %s, and it is used so: stop its workers, and run the command again",
			q.Type, mv.cmd.Type)
	}
	return err
}
