package scheduler

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

// If a client deletes a queue, its unacknowledged messages are gone with it, and RabbitMQ calls a
// queue empty that has nothing else. What a relay has not acknowledged is nowhere else then.

const (
	// askWithin is how long a question about the queue may take: a broker that is short of
	// resources answers late.
	askWithin = 3 * time.Second
	// rescueWithin is how long it may take to keep what was in it, while the epoch may end.
	rescueWithin = 30 * time.Second
	// cancelWithin is how long the broker may take to cancel a consumer whose queue is gone.
	cancelWithin = time.Second
	// rescueAtOnce is how many messages wait for their confirms at once.
	rescueAtOnce = 32
)

// orphan is a message whose queue is gone, and what it becomes.
type orphan struct {
	wire.Delivery
	as wire.Message
}

// rescue publishes what a relay that has ended had not acknowledged, if its queue is gone. become
// returns what a message becomes, or false if nothing.
func (r *relay) rescue(ctx context.Context, s *Scheduler, conn *broker.Conn, become func(wire.Delivery) (m wire.Message, some bool)) error {
	ctx = context.WithoutCancel(ctx)
	if gone, err := r.isQueueGone(ctx, conn); !gone {
		return err
	}
	_ = r.retire() // what is confirmed is safe
	var all []orphan
	for _, d := range r.allUnacked() {
		if m, some := become(d); some {
			all = append(all, orphan{d, m})
		}
	}
	if len(all) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, rescueWithin)
	defer cancel()
	for left, atOnce := all, rescueAtOnce; ; atOnce = 1 { // one at a time shows which of them ends the channel
		var err error
		if left, err = r.keepAll(ctx, s, conn, left, atOnce); len(left) == 0 {
			s.log.Warn("scheduler: a client deleted a queue: its messages at hand are kept", "queue", r.queue, "messages", len(all))
			return nil
		}
		if conn.Err() != nil || pause.For(ctx, ledger.AgainAfter) != nil {
			s.log.Error("scheduler: a client deleted a queue, and its messages at hand are lost", "queue", r.queue, "messages", len(left), "error", err)
			return err
		}
		if err := s.prepare(ctx, conn); err != nil { // the other queue may be gone too
			s.log.Warn("scheduler: cannot assert the topology", "error", err)
		}
	}
}

// isQueueGone reports whether the unacknowledged messages stand in no queue any more. The broker
// ends the consumers of a queue that is gone or out of reach.
func (r *relay) isQueueGone(ctx context.Context, conn *broker.Conn) (bool, error) {
	asking, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	stand, _, err := conn.QueueDepth(asking, r.queue)
	switch {
	case broker.IsMissing(err):
		r.awaitCancel(ctx)
		return true, nil
	case err != nil || !r.from.Cancelled():
		return false, err
	}
	return stand < len(r.allUnacked()), nil // it was made again, or it is back with all that it had
}

// awaitCancel waits until the consumer knows that its queue is gone, and has gathered what it had.
func (r *relay) awaitCancel(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, cancelWithin)
	defer cancel()
	select {
	case <-r.from.Done():
	case <-ctx.Done():
	}
}

// allUnacked is what came and was not acknowledged, in that order.
func (r *relay) allUnacked() (all []wire.Delivery) {
	for _, tag := range slices.Sorted(maps.Keys(r.unacked)) {
		all = append(all, r.unacked[tag])
	}
	return append(all, r.from.Left()...)
}

// keepAll publishes what messages become, and returns those that no queue has taken. What ends the
// channel twice is listed instead.
func (r *relay) keepAll(ctx context.Context, s *Scheduler, conn *broker.Conn, all []orphan, atOnce int) (left []orphan, err error) {
	pub, err := conn.Publisher(ctx)
	if err != nil {
		return all, err
	}
	defer func() { _ = pub.Close() }()
	faults := make([]error, len(all))
	var g errgroup.Group
	g.SetLimit(atOnce)
	for i, c := range all {
		if r.bad.isBad(c.Delivery) {
			c.as = s.rejection(r.queue, errRefusedTwice.Error(), c.Body)
		}
		g.Go(func() error {
			faults[i] = pub.SendMandatory(ctx, c.as)
			return nil
		})
	}
	_ = g.Wait() // each has its outcome
	if atOnce == 1 {
		r.blame(all, faults)
	}
	for i, c := range all {
		if faults[i] != nil {
			left = append(left, c)
		} else {
			r.bad.forgive(c.Delivery)
		}
	}
	return left, errors.Join(faults...)
}

// blame notes which message ended the channel, if they were sent one at a time: the first that was
// lost.
func (r *relay) blame(all []orphan, faults []error) {
	if at := slices.IndexFunc(faults, broker.Provoked); at >= 0 {
		r.bad.blame(all[at].Delivery)
	}
}
