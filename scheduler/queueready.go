package scheduler

import (
	"errors"
	"time"
)

// A queue is declared and bound before the first job is fired to it.

// prepareAhead is how long before its first entry is due a queue is declared.
const prepareAhead = time.Minute

// isReady reports whether a queue is known to exist and to be bound. If it is not, it has the queue
// declared and bound.
func (qs *dueQueues) isReady(now time.Time, q *dueQueue) bool {
	switch {
	case q.moving != "":
		qs.hold(q, now, q.moving, maxAway)
		return false
	case q.bound || q.asked:
		return q.bound
	case !q.recheck && qs.setup.isBound(q.name):
		qs.bound(now, q.name, nil)
		return true
	}
	q.asked = true
	if err := qs.setup.bind(q.name); err != nil {
		qs.bound(now, q.name, err)
	}
	return false
}

// bound takes in whether a queue is bound now; err says why it is not.
func (qs *dueQueues) bound(now time.Time, queue string, err error) {
	q := qs.of(queue)
	q.asked, q.bound, q.recheck, q.unmade = false, err == nil, err != nil, err != nil
	for _, fn := range q.waiting {
		qs.ledger.NextStep(func() error { return fn(err) })
	}
	q.waiting = nil
	switch {
	case err == nil:
		q.boundAt = now
		qs.wakeAt(q, time.Time{})
	case errors.Is(err, errTooMany):
		qs.hold(q, now, err.Error(), maxHold)
	default:
		qs.hold(q, now, err.Error(), maxAway)
	}
}

// whenBound calls fn when it is known whether a queue is bound.
func (qs *dueQueues) whenBound(now time.Time, queue string, fn func(error) error) error {
	q := qs.of(queue)
	switch {
	case qs.isReady(now, q):
		return fn(nil)
	case !q.asked || q.moving != "":
		return fn(errors.New(q.held))
	}
	q.waiting = append(q.waiting, fn)
	return nil
}

// maxAway is the longest time until it is tried again to bind a queue.
const maxAway = 5 * time.Second

// boundFor is how long a queue counts as bound although jobs come back for which it was not.
const boundFor = time.Second

// notBound notes that a job found no queue. A queue whose own fire came back is held.
func (qs *dueQueues) notBound(now time.Time, q *dueQueue, returned bool) {
	if returned && q.held == "" {
		q.bound, q.recheck = false, true
		qs.hold(q, now, "no queue was bound for it when a job was fired", maxAway)
	} else if now.Sub(q.boundAt) >= boundFor || now.Before(q.boundAt) {
		q.bound, q.recheck = false, true
	}
}

// holdForMove stops firing to a queue, and returns how many fires it has not confirmed.
func (qs *dueQueues) holdForMove(now time.Time, queue, reason string) (open int) {
	q := qs.of(queue)
	q.moving, q.bound = reason, false
	qs.hold(q, now, reason, maxAway)
	if q.asked { // it is being bound
		return max(q.unconfirmed, 1)
	}
	return q.unconfirmed
}

// endMove starts firing to a queue again that was moved.
func (qs *dueQueues) endMove(queue string) {
	q := qs.of(queue)
	q.moving, q.held, q.backoff, q.since = "", "", 0, time.Time{}
	qs.wakeAt(q, time.Time{})
}
