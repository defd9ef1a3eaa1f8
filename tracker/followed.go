package tracker

import (
	"sync"
	"sync/atomic"

	"github.com/millrace-jobs/millrace/wire"
)

// followed is what happens to gated entries, for a leader that follows it.
type followed struct {
	mu        sync.Mutex
	groups    map[wire.Group]DueKey // that got entries, with the first one; nil while nothing follows
	allGroups bool                  // see TakeGroups
	slots     []SlotChange
	claims    atomic.Pointer[wire.Through] // see ReadClaims
}

// showGroups shows the leader which groups got entries.
func (f *followed) showGroups(fresh map[wire.Group]DueKey, all bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.groups == nil {
		return
	}
	f.allGroups = f.allGroups || all
	for g, first := range fresh {
		if old, known := f.groups[g]; !known || first.Before(old) {
			f.groups[g] = first
		}
	}
}

// FollowGroups begins or ends that TakeGroups and TakeSlots collect what happens.
func (f *followed) FollowGroups(follow bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.groups, f.slots = nil, nil
	if follow {
		f.groups = map[wire.Group]DueKey{}
	}
}

// TakeGroups returns the groups that got an entry since the last call, with the first one. all
// reports that every group is to be looked at, because what was held may fire.
func (f *followed) TakeGroups() (taken map[wire.Group]DueKey, all bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all, f.allGroups = f.allGroups, false
	if len(f.groups) == 0 { // the view still writes to this map
		return nil, all
	}
	taken, f.groups = f.groups, map[wire.Group]DueKey{}
	return taken, all
}

// TakeSlots returns which slots were taken and freed since the last call.
func (f *followed) TakeSlots() []SlotChange {
	f.mu.Lock()
	defer f.mu.Unlock()
	taken := f.slots
	f.slots = nil
	return taken
}

func (f *followed) showSlots(changes []SlotChange) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.groups != nil {
		f.slots = append(f.slots, changes...)
	}
}

// ReadClaims returns the number of the newest record of an epoch that was read which says that a
// slot was claimed, 0 if none was.
func (f *followed) ReadClaims(epoch int64) int64 {
	if newest := f.claims.Load(); newest != nil && newest.Epoch == epoch {
		return newest.Through
	}
	return 0
}

// noteClaim notes the number of a claim. A leader that had been followed may write one late.
func (f *followed) noteClaim(claim wire.Through) {
	if newest := f.claims.Load(); newest == nil || newest.Compare(claim) < 0 {
		f.claims.Store(&claim)
	}
}
