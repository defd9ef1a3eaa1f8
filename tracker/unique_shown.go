package tracker

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// shownUnique is what is shown of unique jobs.
type shownUnique struct {
	undecided atomic.Int64
	stillFrom atomic.Int64 // microseconds since 1970 from when on jobs are undecided and none is decided; 0 if none is undecided

	uniqueMu sync.Mutex
	freed    map[wire.UniqueID]bool // for a leader that follows it; nil while nothing follows
	waiting  map[string]map[chan wire.Decision]bool
}

// UndecidedJobs returns how many unique jobs wait for the decision whether they have their keys.
func (s *shownUnique) UndecidedJobs() int64 { return s.undecided.Load() }

// UndecidedFor returns for how long there are undecided jobs and none has been decided.
func (s *shownUnique) UndecidedFor(now time.Time) time.Duration {
	from := s.stillFrom.Load()
	if from == 0 {
		return 0
	}
	return max(0, now.Sub(time.UnixMicro(from)))
}

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
	if len(s.freed) == 0 { // the view still writes to this map
		return nil
	}
	taken, s.freed = s.freed, map[wire.UniqueID]bool{}
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

func (s *shownUnique) showUndecided(n int64, progress bool) {
	s.undecided.Store(n)
	switch {
	case n == 0:
		s.stillFrom.Store(0)
	case progress || s.stillFrom.Load() == 0:
		s.stillFrom.Store(time.Now().UnixMicro())
	}
}

func (s *shownUnique) showDecided(undecided int64, decided []wire.Decision) {
	s.showUndecided(undecided, len(decided) > 0)
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
