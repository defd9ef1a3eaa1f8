package tracker

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// UniqueKeys reads the keys of unique jobs.
type UniqueKeys struct{ r view.Reader }

// Holds returns the holds of a key, by its hash.
func (u UniqueKeys) Holds(hash string) (all []*KeyHold, err error) {
	return all, u.scan(keyHolds(hash), func(h *KeyHold) bool {
		all = append(all, h)
		return true
	})
}

// Each calls fn for each hold, those of a key one after the other, until fn returns false.
func (u UniqueKeys) Each(fn func(*KeyHold) bool) error { return u.scan([]byte{tableUnique}, fn) }

// Periods calls fn for each key that is taken for a time, the first to end first, until fn returns
// false.
func (u UniqueKeys) Periods(fn func(*KeyHold) bool) error {
	return table.Scan(u.r, []byte{tablePeriodEnd}, table.After([]byte{tablePeriodEnd}), false, func(_, key []byte) (bool, error) {
		raw, held, err := u.r.Get(keyHold(wire.UniqueID(key), holdPeriod, entryID{}))
		if err != nil || !held {
			return true, err
		}
		h, err := decodeHold(raw)
		if err != nil {
			return false, err
		}
		return fn(h), nil
	})
}

func (u UniqueKeys) scan(prefix []byte, fn func(*KeyHold) bool) error {
	return table.Scan(u.r, prefix, table.After(prefix), false, func(_, raw []byte) (bool, error) {
		h, err := decodeHold(raw)
		if err != nil {
			return false, err
		}
		return fn(h), nil
	})
}

// Undecided calls fn for the offsets in jobs.gated of the undecided entries from one on, until fn
// returns false.
func (u UniqueKeys) Undecided(from int64, fn func(offset int64) bool) error {
	return u.r.Scan(keyUndecided(from), table.After([]byte{tableUndecided}), false, func(key, _ []byte) bool { return fn(table.Int(key[1:])) })
}

// shownUnique is what is shown of unique jobs.
type shownUnique struct {
	undecided atomic.Int64

	uniqueMu sync.Mutex
	freed    map[wire.UniqueID]bool // for a leader that follows it; nil while nothing follows
	waiting  map[string]map[chan wire.Decision]bool
}

// UndecidedJobs returns how many unique jobs wait for the decision whether they have their keys.
func (s *shownUnique) UndecidedJobs() int64 { return s.undecided.Load() }

// FollowKeys begins or ends that TakeFreed collects what happens.
func (s *shownUnique) FollowKeys(follow bool) {
	s.uniqueMu.Lock()
	defer s.uniqueMu.Unlock()
	if s.freed = nil; follow {
		s.freed = map[wire.UniqueID]bool{}
	}
}

// TakeFreed returns the keys of which a hold has ended since the last call.
func (s *shownUnique) TakeFreed() (taken map[wire.UniqueID]bool) {
	s.uniqueMu.Lock()
	defer s.uniqueMu.Unlock()
	if taken = s.freed; len(taken) > 0 {
		s.freed = map[wire.UniqueID]bool{}
	}
	return taken
}

// AwaitDecision returns a channel that gets the decision about the job with a jid. stop is to be
// called when nothing waits for it any more.
func (s *shownUnique) AwaitDecision(jid string) (decided <-chan wire.Decision, stop func()) {
	tag, one := wire.JIDTag(jid), make(chan wire.Decision, 1)
	s.uniqueMu.Lock()
	defer s.uniqueMu.Unlock()
	if s.waiting == nil {
		s.waiting = map[string]map[chan wire.Decision]bool{}
	}
	if s.waiting[tag] == nil {
		s.waiting[tag] = map[chan wire.Decision]bool{}
	}
	s.waiting[tag][one] = true
	return one, func() {
		s.uniqueMu.Lock()
		defer s.uniqueMu.Unlock()
		if delete(s.waiting[tag], one); len(s.waiting[tag]) == 0 {
			delete(s.waiting, tag)
		}
	}
}

func (s *shownUnique) showFreed(freed map[wire.UniqueID]bool) {
	s.uniqueMu.Lock()
	defer s.uniqueMu.Unlock()
	if s.freed != nil {
		maps.Copy(s.freed, freed)
	}
}

func (s *shownUnique) showDecided(undecided int64, decided []wire.Decision) {
	s.undecided.Store(undecided)
	s.uniqueMu.Lock()
	defer s.uniqueMu.Unlock()
	for _, d := range decided {
		for one := range s.waiting[d.JID] {
			select {
			case one <- d:
			default: // it has the first
			}
		}
	}
}
