package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// AfterFold has fn called as soon as the view has folded everything up to a number of this epoch:
// now, or in a step. What was folded since the last step is busy no more then.
func (l *Ledger) AfterFold(seq int64, fn func() error) error {
	epoch, folded := l.cfg.View.Progress()
	if epoch != l.epoch || folded < seq {
		l.after(seq, fn)
		return nil
	}
	if err := l.Release(folded); err != nil {
		return err
	}
	return fn()
}

// RecordThen publishes a record to the journal, and has then called once the view has folded it.
func (l *Ledger) RecordThen(now time.Time, r wire.JournalRecord, about EntryID, then func() error) error {
	p := l.NewRecord(now, r, about)
	p.Folded = then
	return l.Send(p)
}

// Step takes in how far the view has folded the records of this epoch. It frees their entries,
// publishes again what was refused, and does what waited for the step or for the fold.
func (l *Ledger) Step(folded int64) error {
	if err := l.Release(folded); err != nil {
		return err
	}
	if err := l.publishAgain(); err != nil {
		return err
	}
	return l.run(folded)
}

// Busy returns what is under way about an entry; nil if nothing is.
func (l *Ledger) Busy(id EntryID) *Publish { return l.busy[id] }

// AllBusy returns how many entries are busy.
func (l *Ledger) AllBusy() int { return len(l.busy) }

// Hold has entries busy with a publish that was sent. Those of one without a number stay so until
// they are freed, the others until its record was folded.
func (l *Ledger) Hold(p *Publish, ids ...EntryID) {
	for _, id := range ids {
		l.busy[id] = p
	}
	if !p.Plain {
		p.more = append(p.more, ids...)
	}
}

// Free ends that an entry is busy.
func (l *Ledger) Free(id EntryID) { delete(l.busy, id) }

// ErrLost ends the epoch: the broker had confirmed a record, and the journal does not have it.
// RabbitMQ 3.10 loses some when the node of the journal's leader dies. The next leader begins with
// what the journal has. No client gets an answer that rests on a lost record.
var ErrLost = errors.New("scheduler: the journal has lost a record that the broker had confirmed")

// Release frees the entries whose records were folded: from here on the view says what they are.
func (l *Ledger) Release(folded int64) (err error) {
	n := 0 // a view that lags leaves much behind it, which is not looked at
	for n < len(l.folding) && (l.folding[n].seq <= folded || l.folding[n].nacks > 0) {
		n++
	}
	waiting := slices.DeleteFunc(l.folding[:n], func(p *Publish) bool {
		freed, fault := l.releaseOne(p, folded)
		err = cmp.Or(err, fault)
		return freed
	})
	freed := n - len(waiting)
	copy(l.folding[freed:n], waiting)
	clear(l.folding[:freed])
	l.folding = l.folding[freed:]
	return err
}

// releaseOne frees what one publish is about, if it is known what became of it.
func (l *Ledger) releaseOne(p *Publish, folded int64) (freed bool, err error) {
	newest := p // what the view must have for it to be known
	if p.void != nil {
		newest = p.void
	}
	if !newest.Settled(folded) {
		return false, nil
	}
	if l.cfg.View.Lacks(l.epoch, newest.seq) {
		if epoch, _ := l.cfg.View.Progress(); epoch != l.epoch { // another leader has followed
			return false, nil
		}
		return false, fmt.Errorf("%w: number %d", ErrLost, newest.seq)
	}
	for _, id := range append(p.more, p.Entry) {
		if l.busy[id] == p {
			delete(l.busy, id)
		}
	}
	if p.void != nil {
		l.pass(p.seq)
		if p.Freed != nil {
			p.Freed()
		}
	}
	return true, nil
}

// Suspects are entries that were in flight when a connection died, with how often that was. The
// next epoch of this process begins with them.
func (l *Ledger) Suspects() map[EntryID]int { return l.cfg.Suspects }

// Alone reports whether a suspect is in flight. Nothing else is until it is known what becomes of
// it.
func (l *Ledger) Alone() bool {
	if len(l.cfg.Suspects) == 0 {
		return false
	}
	for _, p := range l.open {
		if p.Dispatch && !p.aside && l.cfg.Suspects[p.Entry] > 0 {
			return true
		}
	}
	return false
}
