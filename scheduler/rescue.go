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

// A queue that somebody deletes takes with it what is not acknowledged, and RabbitMQ calls a queue empty that has nothing else. What a relay
// has at hand then is nowhere else.

const (
	// askWithin bounds how long it may take to ask for the queue: a broker that is short of something lets everybody wait.
	askWithin = 3 * time.Second
	// rescueWithin bounds how long keeping what was in it may take, while the epoch may end.
	rescueWithin = 30 * time.Second
	// cancelWithin is how long the broker may take to tell a consumer that the queue is gone which it has told others of.
	cancelWithin = time.Second
	// rescueAtOnce is how many messages wait for their confirms at once.
	rescueAtOnce = 32
)

// orphan is a message whose queue is gone, and what becomes of it.
type orphan struct {
	wire.Delivery
	as wire.Message
}

// rescue publishes what a relay that has ended had at hand, if its queue is gone. become gives what becomes of each; nothing, if it says so.
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
	for left, atOnce := all, rescueAtOnce; ; atOnce = 1 { // one at a time shows which of them the broker does not bear
		var err error
		if left, err = r.keepAll(ctx, s, conn, left, atOnce); len(left) == 0 {
			s.log.Warn("scheduler: somebody deleted a queue: what was at hand of it is kept all the same", "queue", r.queue, "messages", len(all))
			return nil
		}
		if conn.Err() != nil || pause.For(ctx, ledger.AgainAfter) != nil {
			s.log.Error("scheduler: somebody deleted a queue, and what was at hand of it is lost", "queue", r.queue, "messages", len(left), "error", err)
			return err
		}
		if err := s.prepare(ctx, conn); err != nil { // what it is to become may have no queue either
			s.log.Warn("scheduler: cannot assert the topology", "error", err)
		}
	}
}

// isQueueGone tells whether what is at hand stands in no queue any more. The broker ends the consumers of a queue that is gone or out of reach.
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

// keepAll publishes what becomes of messages, and gives those that no queue has taken. What ends the channel twice is listed instead.
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

// blame notes which of messages that were sent one at a time ended the channel: the first that was lost.
func (r *relay) blame(all []orphan, faults []error) {
	if at := slices.IndexFunc(faults, broker.Provoked); at >= 0 {
		r.bad.blame(all[at].Delivery)
	}
}
