package ledger

// continuation is something to be done once the view has folded a record of this epoch. What a
// client is told then stands, whatever happens after: the record comes before anything that a later
// leader writes.
type continuation struct {
	seq int64
	fn  func() error
}

// HasFolded reports whether the view has folded everything up to a number of this epoch. What was
// folded since the last step is busy no more.
func (l *Ledger) HasFolded(seq int64) bool {
	epoch, folded := l.cfg.View.Progress()
	if epoch != l.epoch || folded < seq {
		return false
	}
	l.release(folded)
	return true
}

// AfterFold has something done in the first step in which the view has folded everything up to a
// number.
func (l *Ledger) AfterFold(seq int64, fn func() error) {
	l.waiting = append(l.waiting, continuation{seq, fn})
}

// Continue does what waited for what the view has folded now.
func (l *Ledger) Continue(folded int64) error {
	all := l.waiting
	l.waiting = nil
	for _, w := range all {
		if w.seq > folded {
			l.waiting = append(l.waiting, w)
		} else if err := w.fn(); err != nil {
			return err
		}
	}
	return nil
}
