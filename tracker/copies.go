package tracker

import (
	"github.com/millrace-jobs/millrace/wire"
)

// A fire for which no queue was bound comes back as a record of jobs.gated: a copy. It proves that the fire arrived there. So either the
// entry that was fired stands or its copy, which only the leader decides: the journal may say later what became of the fire.

func keyCopy(offset int64) []byte { return appendInt([]byte{tableCopy}, offset) }

func (t *Entries) noteCopy(s *Stored) { t.copies = append(t.copies, s.Offset) }

func (t *Entries) showCopies(offsets []int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shownCopies = append(t.shownCopies, offsets...)
}

// TakeCopies returns the offsets of the copies that came since it was last called.
func (t *Entries) TakeCopies() []int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken := t.shownCopies
	t.shownCopies = nil
	return taken
}

// Copies returns the offsets of all copies that are not settled, so also of those whose own fire is in doubt.
func (t *Entries) Copies() (offsets []int64, err error) {
	err = t.store.Scan([]byte{tableCopy}, after([]byte{tableCopy}), false, func(key, _ []byte) bool {
		offsets = append(offsets, intOf(key[1:]))
		return true
	})
	return offsets, err
}

// InDoubt reports whether it is not known of a fire whether it arrived.
func (l Lookup) InDoubt(epoch, seq int64) (bool, error) {
	_, open, err := l.r.Get(keyDoubtful(epoch, seq))
	return open, err
}

// HasReturned reports whether a fire that is in doubt is known to have come back.
func (l Lookup) HasReturned(epoch, seq int64) (bool, error) {
	at, open, err := l.r.Get(keyDoubtful(epoch, seq))
	if err != nil || !open {
		return false, err
	}
	m, err := markAt(l.r, placeOf(at))
	return m != nil && m.returned, err
}

// IsCopy reports whether an entry is a fire that found no queue.
func (s *Stored) IsCopy() bool { return s.Stream == wire.Gated && s.Burial.Op != "" }
