package tracker

import (
	"cmp"

	"github.com/millrace-jobs/millrace/wire"
)

// A burial goes to the dead jobs and to the journal in one publish. A broker that dies in between may have it among the dead jobs alone: a
// lone burial. Each stream has what one leader sent in its order, so these are the newest, and no burial of a later epoch follows before
// somebody has told of them.

// settledBefore notes that earlier epochs have left no lone burial.
func (s *State) settledBefore(epoch int64) {
	if led := (wire.Through{Epoch: epoch}); led.Compare(s.BuriedTo) > 0 {
		s.BuriedTo = led
	}
}

// Lone gives the dead jobs of earlier epochs that came of a burial which the journal does not have, the newest first. An epoch of a journal that
// is gone may be among them.
func (t *Entries) Lone() (all []*Stored, err error) {
	s := t.State()
	last := s.Barriers[wire.DeadJobs].Before
	if last.Compare(s.BuriedTo) <= 0 {
		return nil, nil
	}
	c := codes[wire.DeadJobs]
	var fault error
	err = t.store.Scan(keyEntry(place{c, minOffset}), keyEntry(place{c, noOffset}), true, func(key, value []byte) bool {
		var dead *Stored
		if dead, fault = decodeStored(placeOf(key[1:]), append([]byte(nil), value...)); fault != nil {
			return false
		}
		if buried := dead.Origin != (wire.Through{}); !buried {
			return true
		}
		if dead.Origin.Compare(s.BuriedTo) <= 0 {
			return false
		}
		all = append(all, dead)
		return true
	})
	return all, cmp.Or(err, fault)
}
