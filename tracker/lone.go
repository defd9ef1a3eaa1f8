package tracker

import (
	"cmp"
	"slices"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// A burial goes to the dead jobs and to the journal in one publish. A broker that dies in between may have it among the dead jobs alone: a
// lone burial. Each stream has what one leader sent in its order, so the journal then has nothing that was sent after it; a burial that the
// journal refused, which was taken back, is followed there by the record that says so.

// numbered notes a numbered record of the journal.
func (s *State) numbered(epoch, seq int64) {
	s.FoldedSeq = max(s.FoldedSeq, seq)
	if epoch == s.JournaledTo.Epoch { // a later one has yet to settle what this one left
		s.JournaledTo.Through = max(s.JournaledTo.Through, seq)
	}
}

// settledBefore notes that an epoch has told of what earlier ones had left.
func (s *State) settledBefore(epoch int64) {
	if now := (wire.Through{Epoch: epoch, Through: s.FoldedSeq}); epoch == s.Epoch && now.Compare(s.JournaledTo) > 0 {
		s.JournaledTo = now
	}
}

// Lone gives the dead jobs that came of a lone burial whose entry is still there, the oldest first.
func (t *Entries) Lone() (all []*Stored, err error) {
	s := t.State()
	if last := s.Barriers[wire.DeadJobs].Before; last.Compare(s.JournaledTo) <= 0 {
		return nil, nil
	}
	c := codes[wire.DeadJobs]
	var fault error
	err = t.store.Scan(keyEntry(place{c, minOffset}), keyEntry(place{c, noOffset}), true, func(key, value []byte) bool {
		var dead *Stored
		if dead, fault = decodeStored(placeOf(key[1:]), value); fault != nil {
			return false
		}
		if dead.Burial.Op == "" {
			return true
		}
		if dead.Origin().Compare(s.JournaledTo) <= 0 {
			return false
		}
		var left bool
		if left, fault = leftBy(t.store, dead); left {
			dead.Raw = nil // it is not the caller's
			all = append(all, dead)
		}
		return fault == nil
	})
	slices.Reverse(all)
	return all, cmp.Or(err, fault)
}

// leftBy tells whether the entry that was buried as a dead job is still there, and nothing was done to it since.
func leftBy(r view.Reader, dead *Stored) (bool, error) {
	p := place{codes[dead.Burial.Stream], dead.Burial.Offset}
	s, err := storedAt(r, p)
	if err != nil || s == nil || s.JID != dead.JID {
		return false, err
	}
	m, err := markAt(r, p)
	since := m != nil && fired{m.epoch, m.seq}.compare(fired{dead.Burial.Epoch, dead.Burial.Seq}) > 0
	return err == nil && !since, err
}
