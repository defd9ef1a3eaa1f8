package scheduler

import (
	"time"

	"github.com/millrace-jobs/millrace/tracker"
)

// lateLinger is how long a late fire stays in doubt: its leader may still journal that it was
// confirmed.
const lateLinger = time.Second

// lateFires settles fires of earlier leaders that reached the journal after this epoch began.
type lateFires struct {
	base
	reconciler *reconciler
	seen       int64     // how many the view had at the last step
	at         time.Time // when there were more; zero if all are settled
	open       []tracker.Doubt
}

// step settles late fires; most often there are none. The witness was checked before they were
// fired, and their leader may be cut off. So only a broker of one node proves that they arrived, or
// a copy in jobs.gated.
func (l *lateFires) step(now time.Time) error {
	if seen := l.entries.Late(); seen != l.seen {
		l.seen, l.at = seen, now
	}
	settled := l.reconciler.verdict != undecided && len(l.reconciler.open)+len(l.reconciler.waiting) == 0
	if l.at.IsZero() || now.Sub(l.at) < lateLinger || !settled {
		return nil
	}
	if len(l.open) == 0 {
		all, err := l.entries.Doubts()
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
