package scheduler

import (
	"context"
	"sync"
)

// terms are how this sidecar's term and epoch are ended. They are safe for concurrent use.
type terms struct {
	mu     sync.Mutex
	leave  context.CancelCauseFunc // ends the term; nil if there is none
	resign context.CancelCauseFunc // ends the epoch in order; nil if there is none
	lease  *lease                  // of the epoch; nil if it has none
}

// inTerm notes how the term is ended, nil if there is none.
func (t *terms) inTerm(leave context.CancelCauseFunc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave = leave
}

// resignFor ends the epoch in order, if there is one, and reports whether it does.
func (t *terms) resignFor(why error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.resign == nil {
		return false
	}
	t.resign(why)
	return true
}

// inEpoch notes the lease of the epoch and how it is ended in order, nil if there is none.
func (t *terms) inEpoch(l *lease, resign context.CancelCauseFunc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lease, t.resign = l, resign
}

// epochLease returns the lease of the epoch; nil if there is none.
func (t *terms) epochLease() *lease {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lease
}

// endTerm ends the term, unless its lease is fresh, and reports whether it does.
func (t *terms) endTerm(why error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.leave == nil || t.lease != nil && t.lease.Fresh() {
		return false
	}
	t.leave(why)
	return true
}
