package scheduler

import (
	"errors"
	"time"
)

// A queue is made, and bound, before the first job is fired to it. Whether that was done is a flag of its lane.

// prepareAhead is how long before its first entry is due a queue is made.
const prepareAhead = time.Minute

// isReady reports whether a lane's queue is known to be there and bound. If it is not, the leader is asked to see to that.
func (l *lanes) isReady(now time.Time, ln *lane) bool {
	switch {
	case ln.moving != "":
		l.hold(ln, now, ln.moving, maxAway)
		return false
	case ln.bound || ln.asked:
		return ln.bound
	case !ln.recheck && l.setup.isBound(ln.queue):
		l.bound(now, ln.queue, nil)
		return true
	}
	ln.asked = true
	if err := l.setup.bind(ln.queue); err != nil {
		l.bound(now, ln.queue, err)
	}
	return false
}

// bound is called when it is known whether a lane's queue is there and bound; err says why it is not.
func (l *lanes) bound(now time.Time, queue string, err error) {
	ln := l.of(queue)
	ln.asked, ln.bound, ln.recheck, ln.unmade = false, err == nil, err != nil, err != nil
	for _, fn := range ln.waiting {
		l.ledger.NextStep(func() error { return fn(err) })
	}
	ln.waiting = nil
	switch {
	case err == nil:
		ln.boundAt = now
		l.rouse(ln, time.Time{})
	case errors.Is(err, errTooMany):
		l.hold(ln, now, err.Error(), maxHold)
	default:
		l.hold(ln, now, err.Error(), maxAway)
	}
}

// whenBound has something done when it is known whether a queue is there and bound.
func (l *lanes) whenBound(now time.Time, queue string, fn func(error) error) error {
	ln := l.of(queue)
	switch {
	case l.isReady(now, ln):
		return fn(nil)
	case !ln.asked || ln.moving != "":
		return fn(errors.New(ln.held))
	}
	ln.waiting = append(ln.waiting, fn)
	return nil
}

// maxAway is how long at most until it is looked again whether a queue is there.
const maxAway = 5 * time.Second

// boundFor is how long it is believed that a queue is bound while jobs come for which it was not.
const boundFor = time.Second

// unbound notes that a queue was not bound for a job that came. A lane whose own fire came back is held.
func (l *lanes) unbound(now time.Time, ln *lane, returned bool) {
	if returned && ln.held == "" {
		ln.bound, ln.recheck = false, true
		l.hold(ln, now, "no queue was bound for it when a job was fired", maxAway)
	} else if now.Sub(ln.boundAt) >= boundFor || now.Before(ln.boundAt) {
		ln.bound, ln.recheck = false, true
	}
}

// holdForMove has nothing more fired to a queue, and returns how much is still under way to it.
func (l *lanes) holdForMove(now time.Time, queue, reason string) (open int) {
	ln := l.of(queue)
	ln.moving, ln.bound = reason, false
	l.hold(ln, now, reason, maxAway)
	if ln.asked { // it is being bound
		return max(ln.flying, 1)
	}
	return ln.flying
}

// letGo has jobs fired again to a queue that was moved.
func (l *lanes) letGo(queue string) {
	ln := l.of(queue)
	ln.moving, ln.held, ln.backoff, ln.since = "", "", 0, time.Time{}
	l.rouse(ln, time.Time{})
}
