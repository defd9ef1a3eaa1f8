package view

import "time"

// lagEstimator estimates how far the view is behind a stream, and how late records are folded. It
// compares the time at which the broker stored a record with the time of folding. The smallest
// difference so far is the offset between the two clocks; the rest is delay.
//
// A clock that is set must not look like a delay. So lagEstimator measures with two clocks and uses
// the smaller result. The wall clock is set together with the broker's clock if both run on one
// machine. The monotonic clock is never set. When the broker's clock goes back, both measurements
// start again.
type lagEstimator struct {
	begun      time.Time
	caughtUpAt time.Time // when the view was last known to be caught up
	foldedAt   time.Time
	stored     time.Time // when the newest record was stored, by the broker's clock
	wall       minFilter
	steady     minFilter
	late       time.Duration
}

func (l *lagEstimator) begin(now time.Time) { l.begun, l.caughtUpAt = now, now }

// folded adds a record that was folded now, and was stored at another time.
func (l *lagEstimator) folded(now, stored time.Time, caughtUp bool) {
	l.foldedAt = now
	l.note(now, now.Sub(l.begun), stored)
	if caughtUp {
		l.caughtUpAt = now
	}
}

// setBack is how much older than its predecessor a record must seem to show that the broker's clock
// was set.
const setBack = time.Second

// note measures how late a record is. now is the wall clock, and since is the time since the view
// began.
func (l *lagEstimator) note(now time.Time, since time.Duration, stored time.Time) {
	if stored.IsZero() {
		return
	}
	if stored.Before(l.stored.Add(-setBack)) {
		l.wall, l.steady = minFilter{}, minFilter{}
	}
	l.stored = stored
	l.late = min(l.wall.over(now.Sub(stored)), l.steady.over(since-time.Duration(stored.UnixNano())))
}

// lag returns the time since the stream was last known to be caught up. While records flow, it
// returns the age that the newest one had when it was folded.
func (l *lagEstimator) lag(now time.Time, caughtUp bool) time.Duration {
	switch {
	case !caughtUp:
		return now.Sub(l.caughtUpAt)
	case now.Sub(l.foldedAt) > time.Second:
		return 0
	}
	return l.late
}

// minFilter measures how far a value is above the smallest one so far.
type minFilter struct {
	least time.Duration
	known bool
}

func (m *minFilter) over(d time.Duration) time.Duration {
	if !m.known || d < m.least {
		m.least, m.known = d, true
	}
	return d - m.least
}
