package view

import "time"

// age estimates how late records are folded. It compares the time at which the broker stored a
// record with the time of folding. The smallest difference so far is the offset between the two
// clocks; the rest is delay.
//
// A clock that is set must not look like a delay. So age measures with two clocks and uses the
// smaller result. The wall clock is set together with the broker's clock if both run on one
// machine. The monotonic clock is never set. When the broker's clock goes back, both measurements
// start again.
type age struct {
	stored time.Time // when the newest record was stored, by the broker's clock
	wall   excess
	steady excess
	late   time.Duration
}

// lagEstimator estimates how far the view is behind a stream.
type lagEstimator struct {
	begun      time.Time
	caughtUpAt time.Time // when the view was last known to be caught up
	foldedAt   time.Time
	age        age
}

func (l *lagEstimator) begin(now time.Time) { l.begun, l.caughtUpAt = now, now }

// folded adds a record that was folded now, and was stored at another time.
func (l *lagEstimator) folded(now, stored time.Time, caughtUp bool) {
	l.foldedAt = now
	l.age.note(now, now.Sub(l.begun), stored)
	if caughtUp {
		l.caughtUpAt = now
	}
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
	return l.age.late
}

// setBack is how much older than its predecessor a record must seem to show that the broker's clock
// was set.
const setBack = time.Second

// note adds a folded record. now is the wall clock, and since is the time since the view began.
func (a *age) note(now time.Time, since time.Duration, stored time.Time) {
	if stored.IsZero() {
		return
	}
	if stored.Before(a.stored.Add(-setBack)) {
		a.wall, a.steady = excess{}, excess{}
	}
	a.stored = stored
	a.late = min(a.wall.over(now.Sub(stored)), a.steady.over(since-time.Duration(stored.UnixNano())))
}

// excess measures how far a value is above the smallest one so far.
type excess struct {
	least time.Duration
	known bool
}

func (e *excess) over(d time.Duration) time.Duration {
	if !e.known || d < e.least {
		e.least, e.known = d, true
	}
	return d - e.least
}
