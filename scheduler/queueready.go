package scheduler

import (
	"errors"
	"time"
)

// A queue is made, and bound, before the first job is fired to it. Whether that was done is a flag of its lane.

// prepareAhead is how long before its first entry is due a queue is made.
const prepareAhead = time.Minute

// isReady reports whether a lane's queue is known to be there and bound. If it is not, the leader is asked to see to that.
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

// bound is called when it is known whether a lane's queue is there and bound; err says why it is not.
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

// whenBound has something done when it is known whether a queue is there and bound.
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

// maxAway is how long at most until it is looked again whether a queue is there.
const maxAway = 5 * time.Second

// boundFor is how long it is believed that a queue is bound while jobs come for which it was not.
const boundFor = time.Second

// notBound notes that a queue was not bound for a job that came. A lane whose own fire came back is held.
func (qs *dueQueues) notBound(now time.Time, q *dueQueue, returned bool) {
	if returned && q.held == "" {
		q.bound, q.recheck = false, true
		qs.hold(q, now, "no queue was bound for it when a job was fired", maxAway)
	} else if now.Sub(q.boundAt) >= boundFor || now.Before(q.boundAt) {
		q.bound, q.recheck = false, true
	}
}

// holdForMove has nothing more fired to a queue, and returns how much is still under way to it.
func (qs *dueQueues) holdForMove(now time.Time, queue, reason string) (open int) {
	q := qs.of(queue)
	q.moving, q.bound = reason, false
	qs.hold(q, now, reason, maxAway)
	if q.asked { // it is being bound
		return max(q.unconfirmed, 1)
	}
	return q.unconfirmed
}

// endMove has jobs fired again to a queue that was moved.
func (qs *dueQueues) endMove(queue string) {
	q := qs.of(queue)
	q.moving, q.held, q.backoff, q.since = "", "", 0, time.Time{}
	qs.wakeAt(q, time.Time{})
}
