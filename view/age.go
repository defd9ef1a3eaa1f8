package view

import "time"

// age tells how late records are folded. What the broker's clock says of a record is compared with ours, and the least difference that was
// seen is taken for how far the clocks are apart. Either clock may be set. A difference that appears at once is that, and no delay: it is
// taken both by our wall clock, which is set together with the broker's where they share a machine, and by one that nobody sets; the lesser
// counts. Where the broker's clock goes back, both are taken anew.
type age struct {
	stored time.Time // when the newest record was stored, by the broker's clock
	wall   excess
	steady excess
	late   time.Duration
}

// setBack is by how much a record must seem older than the one before it for the broker's clock to have been set.
const setBack = time.Second

// note takes in that a record was folded: at which time by our wall clock, and how long after we began.
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

// excess is by how much a figure is above the least that was seen.
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
