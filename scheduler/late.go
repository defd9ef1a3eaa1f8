package scheduler

import (
	"time"

	"github.com/millrace-jobs/millrace/tracker"
)

// lateLinger is how long a late fire stays in doubt before it is settled: its leader may yet say that it was confirmed.
const lateLinger = time.Second

// lateFires are fires of earlier leaders that came into the journal behind the beginning of this epoch.
type lateFires struct {
	base
	reconciler *reconciler
	seen       int64     // how many the view had when it was looked at last
	at         time.Time // when there were more; zero if all of them are settled
	open       []tracker.Doubt
}

// step settles late fires. Most often there are none. Whether the witness stands was asked before they were fired, and a leader
// that fires late may be cut off: only a broker of one node proves that they arrived, or a copy in jobs.gated.
func (l *lateFires) step(now time.Time) error {
	if seen := l.entries.Late(); seen != l.seen {
		l.seen, l.at = seen, now
	}
	begun := l.reconciler.verdict != undecided && len(l.reconciler.open)+len(l.reconciler.waiting) == 0 // what was in doubt at the beginning is settled
	if l.at.IsZero() || now.Sub(l.at) < lateLinger || !begun {
		return nil
	}
	if len(l.open) == 0 {
		all, err := l.entries.Doubtful()
		if err != nil {
			return err
		}
		if l.reconciler.copied, err = l.reconciler.copies.readCopies(); err != nil {
			return err
		}
		for i := range all {
			if d := &all[i]; d.Epoch < l.ledger.Epoch() && d.Late && !d.Returned && l.ledger.Busy(entryOf(d)) == nil {
				l.open = append(l.open, *d)
			}
		}
	}
	for len(l.open) > 0 && l.ledger.Room() {
		d := l.open[0]
		l.open = l.open[1:]
		if open, err := l.entries.InDoubt(d.Epoch, d.Seq); err != nil || !open {
			if err != nil {
				return err
			}
			continue
		}
		settle := func() error { return l.reconciler.refire(now, &d, false) }
		if l.reconciler.proof.alone || l.reconciler.isCopied(&d) {
			settle = func() error { return l.reconciler.reconcileOne(now, &d) }
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
