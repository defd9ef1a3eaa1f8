package scheduler

import (
	"sync"
	"time"
)

const (
	// pingEvery is how often a sidecar sends a ping through the lock.
	pingEvery = 500 * time.Millisecond
	// leaseLasts is how long a leader may publish after it sent the newest ping that came back. It
	// is shorter than wire.LeaderWait, for which a successor waits that cannot know whether the
	// leader before has ended.
	leaseLasts = 2500 * time.Millisecond
	// pingsLost is how long the active consumer waits for a ping before it sends the next ones on
	// another channel.
	pingsLost = 1200 * time.Millisecond
	// leaseEnds is how long a leader waits for a ping to come back before it resigns.
	leaseEnds = 10 * time.Second
)

// lease says how long a leader may act on what it last heard from the lock. A ping that came back
// proves that the sidecar had the lock after the ping was sent, so the lease runs from the sending.
// It is safe for concurrent use.
type lease struct {
	clock func() time.Time // monotonic

	mu     sync.Mutex
	number int64
	sent   []sentPing // not back yet, the oldest first
	heard  time.Time  // when the newest ping that came back was sent; zero if none did
	silent time.Time  // since when nothing has prevented pings from coming back
}

type sentPing struct {
	number int64
	at     time.Time
}

func newLease(clock func() time.Time) *lease { return &lease{clock: clock, silent: clock()} }

// Send notes that a ping is being sent, and returns its number.
func (l *lease) Send() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock()
	for len(l.sent) > 0 && now.Sub(l.sent[0].at) > leaseEnds { // it would renew nothing
		l.sent = l.sent[1:]
	}
	l.number++
	l.sent = append(l.sent, sentPing{l.number, now})
	return l.number
}

// Back notes that a ping came back. Those that were sent before it no longer matter.
func (l *lease) Back(number int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.sent) > 0 && l.sent[0].number <= number {
		if l.sent[0].number == number {
			l.heard = l.sent[0].at
		}
		l.sent = l.sent[1:]
	}
}

// Begin notes that the sidecar has the lock: from now on silence counts.
func (l *lease) Begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = l.clock()
}

// Unanswered returns for how long a ping has been on its way since one came back, zero if none is.
func (l *lease) Unanswered() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.sent) == 0 {
		return 0
	}
	return l.clock().Sub(l.sent[0].at)
}

// Fresh reports whether the leader may publish.
func (l *lease) Fresh() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.heard.IsZero() && l.clock().Sub(l.heard) < leaseLasts
}

// HeardSince reports whether a ping came back that was sent after a time.
func (l *lease) HeardSince(t time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.heard.After(t)
}

// Age is how long ago the newest ping that came back was sent.
func (l *lease) Age() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clock().Sub(l.heard)
}

// Lost reports whether the leader should resign. While the broker blocks the connection, no ping
// can come back, for any sidecar.
func (l *lease) Lost(blocked bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock()
	if blocked {
		l.silent = now
	}
	return now.Sub(l.heard) > leaseEnds && now.Sub(l.silent) > leaseEnds
}
