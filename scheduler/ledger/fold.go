package ledger

import (
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// continuation is something to be done once the view has folded a record of this epoch. What a
// client is told then stands, whatever happens after: the record comes before anything that a later
// leader writes.
type continuation struct {
	seq int64
	fn  func() error
}

// AfterFold has fn called as soon as the view has folded everything up to a number of this epoch:
// now, or in a step. What was folded since the last step is busy no more then.
func (l *Ledger) AfterFold(seq int64, fn func() error) error {
	epoch, folded := l.cfg.View.Progress()
	if epoch != l.epoch || folded < seq {
		l.waiting = append(l.waiting, continuation{seq, fn})
		return nil
	}
	l.release(folded)
	return fn()
}

// NextStep has fn called in the next step.
func (l *Ledger) NextStep(fn func() error) { l.next = append(l.next, fn) }

// RecordThen publishes a record to the journal, and has then called once the view has folded it.
func (l *Ledger) RecordThen(now time.Time, r wire.JournalRecord, about EntryID, then func() error) error {
	p := l.NewRecord(now, r, about)
	p.Folded = then
	return l.Send(p)
}

// Step takes in how far the view has folded the records of this epoch. It frees their entries,
// publishes again what was refused, and does what waited for the step or for the fold.
func (l *Ledger) Step(folded int64) error {
	l.release(folded)
	if err := l.publishAgain(); err != nil {
		return err
	}
	next := l.next
	l.next = nil
	for _, fn := range next {
		if err := fn(); err != nil {
			return err
		}
	}
	waiting := l.waiting
	l.waiting = nil
	for _, w := range waiting {
		if w.seq > folded {
			l.waiting = append(l.waiting, w)
		} else if err := w.fn(); err != nil {
			return err
		}
	}
	return nil
}
