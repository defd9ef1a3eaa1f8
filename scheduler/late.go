package scheduler

import (
	"time"

	"github.com/millrace-jobs/millrace/tracker"
)

// lateLinger is how long a late fire stays in doubt before it is settled: its leader may yet say that it was confirmed.
const lateLinger = time.Second

// lateFires are fires of earlier leaders that came into the journal behind the beginning of this epoch.
type lateFires struct {
	seen int64     // how many the view had when it was looked at last
	at   time.Time // when there were more; zero if all of them are settled
	open []tracker.Doubt
}

// settleLate settles late fires. Most often there are none. Whether the witness stands was asked before they were fired, and a leader
// that fires late may be cut off: only a broker of one node proves that they arrived, or a copy in jobs.gated.
func (c *core) settleLate(now time.Time) error {
	l := &c.lateFires
	if seen := c.entries.Late(); seen != l.seen {
		l.seen, l.at = seen, now
	}
	begun := c.settling.verdict != undecided && len(c.settling.open)+len(c.settling.waiting) == 0 // what was in doubt at the beginning is settled
	if l.at.IsZero() || now.Sub(l.at) < lateLinger || !begun {
		return nil
	}
	if len(l.open) == 0 {
		all, err := c.entries.Doubtful()
		if err != nil {
			return err
		}
		if c.settling.copies, err = c.copies.readCopies(); err != nil {
			return err
		}
		for i := range all {
			if d := &all[i]; d.Epoch < c.ledger.Epoch() && d.Late && !d.Returned && c.ledger.Busy(spotOf(d)) == nil {
				l.open = append(l.open, *d)
			}
		}
	}
	for len(l.open) > 0 && c.ledger.Room() {
		d := l.open[0]
		l.open = l.open[1:]
		if open, err := c.entries.InDoubt(d.Epoch, d.Seq); err != nil || !open {
			if err != nil {
				return err
			}
			continue
		}
		settle := func() error { return c.refire(now, &d, false) }
		if c.settling.proof.alone || c.isCopied(&d) {
			settle = func() error { return c.settleOne(now, &d) }
		}
		if err := settle(); err != nil {
			return err
		}
	}
	if len(l.open) == 0 {
		l.open, l.at = nil, time.Time{}
	}
	return nil
}
