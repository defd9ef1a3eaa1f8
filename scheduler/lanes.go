package scheduler

import (
	"container/heap"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
)

// lane is one queue's entries in due order, as far as they were looked at.
type lane struct {
	ledger.Queue
	queue  string
	behind tracker.DueKey // everything up to here was taken
	ahead  []tracker.DueKey
	turn
	hold
	flight
	readiness
}

// turn is when a lane's turn comes.
type turn struct {
	wake  time.Time // when there is something to do
	index int       // in the heap; -1 if it is not there
	due   bool      // it stands in the ring
}

// hold is why a queue takes no jobs now.
type hold struct {
	held    string // not empty: why
	since   time.Time
	backoff time.Duration
	trial   bool // one job is sent to see whether the queue takes jobs again
}

// flight is what a queue has unconfirmed.
type flight struct {
	flying int  // fires
	limit  int  // how many there may be
	full   bool // there are so many, and the lane left the ring
	trying bool // one more job is to be sent, to see whether the queue answers
	tried  bool // that was decided once since it fell silent
}

// readiness is whether a queue is known to be there and bound.
type readiness struct {
	bound   bool
	boundAt time.Time           // when that was seen to
	recheck bool                // it was bound once and may not be any more
	asked   bool                // it is being seen to
	unmade  bool                // that failed the last time
	waiting []func(error) error // what is done when it is known
	moving  string              // not empty: the queue is being moved to another type, and nothing is fired to it
}

// lanes are the queues: those that have something due take turns, the others wait for their time.
type lanes struct {
	base
	all   map[string]*lane
	ring  []*lane
	sleep sleepers
}

// How long a queue is held that refused a job.
const (
	firstHold = time.Second
	maxHold   = time.Minute
)

// look is how many entries of a queue are looked up at once.
const look = 128

func (l *lanes) of(queue string) *lane {
	ln := l.all[queue]
	if ln == nil {
		ln = &lane{queue: queue, turn: turn{index: -1}}
		l.all[queue] = ln
	}
	return ln
}

// open has all queues looked at.
func (l *lanes) open(time.Time) error {
	l.entries.TakeReady()
	for _, queue := range l.entries.Queues() {
		l.look(l.of(queue), tracker.DueKey{})
	}
	return nil
}

// step has queues looked at that got entries.
func (l *lanes) step(now time.Time) error {
	ready := l.entries.TakeReady()
	for _, queue := range slices.Sorted(maps.Keys(ready)) {
		ln, r := l.of(queue), ready[queue]
		if r.Unbound {
			l.unbound(now, ln, r.Returned)
		}
		l.look(ln, r.First)
	}
	return nil
}

// look has a lane look again from a key on.
func (l *lanes) look(ln *lane, from tracker.DueKey) {
	if ahead := ln.ahead; len(ahead) > 0 && ahead[len(ahead)-1].Before(from) {
		return // it will be found in its turn
	}
	ln.ahead = nil
	from.Offset-- // from itself is wanted
	if from.Before(ln.behind) {
		ln.behind = from
	}
	l.rouse(ln, time.Time{})
}

// rouse has a lane wake at a time, if it would sleep longer.
func (l *lanes) rouse(ln *lane, at time.Time) {
	if ln.due || ln.held != "" {
		return
	}
	if ln.index < 0 {
		ln.wake = at
		heap.Push(&l.sleep, ln)
	} else if at.Before(ln.wake) {
		ln.wake = at
		heap.Fix(&l.sleep, ln.index)
	}
}

// wakeUp moves the lanes whose time has come into the ring.
func (l *lanes) wakeUp(now time.Time) {
	for len(l.sleep) > 0 && !l.sleep[0].wake.After(now) {
		ln := heap.Pop(&l.sleep).(*lane)
		if ln.held != "" {
			ln.held, ln.trial = "", true
		}
		ln.due = true
		l.ring = append(l.ring, ln)
	}
}

// next is when the first sleeping lane wakes.
func (l *lanes) next(otherwise time.Time) time.Time {
	if len(l.sleep) > 0 && l.sleep[0].wake.Before(otherwise) {
		return l.sleep[0].wake
	}
	return otherwise
}

// leave takes the first lane out of the ring; it sleeps until a time, or for good if that is zero.
func (l *lanes) leave(until time.Time) {
	ln := l.ring[0]
	l.ring = l.ring[1:]
	ln.due = false
	if !until.IsZero() {
		l.rouse(ln, until)
	}
}

// turn moves the first lane to the end of the ring.
func (l *lanes) turn() { l.ring = append(l.ring[1:], l.ring[0]) }

// hold has a queue wait that takes no jobs, at most so long before it is tried again.
func (l *lanes) hold(ln *lane, now time.Time, reason string, most time.Duration) {
	if ln.held == "" {
		ln.backoff = min(max(2*ln.backoff, firstHold), most)
		if ln.since.IsZero() {
			ln.since = now
		}
	}
	ln.held, ln.trial = reason, false
	if ln.due {
		ln.due = false
		l.ring = slices.DeleteFunc(l.ring, func(o *lane) bool { return o == ln })
	}
	ln.wake = now.Add(ln.backoff)
	if ln.index < 0 {
		heap.Push(&l.sleep, ln)
	} else {
		heap.Fix(&l.sleep, ln.index)
	}
}

// limit sets how many fires each queue may have open.
func (l *lanes) limit(of func(queue string) int) {
	for _, ln := range l.all {
		ln.limit = of(ln.queue)
		if ln.full && ln.flying < ln.limit {
			ln.full = false
			l.rouse(ln, time.Time{})
		}
	}
}

// accepted notes that a queue took a job.
func (l *lanes) accepted(ln *lane) {
	ln.flying--
	if ln.held != "" {
		return
	}
	if ln.full {
		ln.full = false
		l.rouse(ln, time.Time{})
	}
	tried := ln.trial
	ln.trial, ln.backoff, ln.since = false, 0, time.Time{}
	if tried {
		l.rouse(ln, time.Time{})
	}
}

// setBack has queues that are held wait no longer for a clock that was set back.
func (l *lanes) setBack(by time.Duration) {
	for _, ln := range l.all {
		if ln.held != "" {
			ln.wake = ln.wake.Add(-by)
		}
	}
	l.sleep.order()
}

// maxShown is how many of them are listed at most.
const maxShown = 1000

// heldQueues lists queues that take no jobs now.
func (l *lanes) heldQueues() []HeldQueue {
	var all []HeldQueue
	for _, ln := range l.all {
		if ln.held != "" {
			all = append(all, HeldQueue{ln.queue, ln.held, ln.since, ln.wake})
		}
		if len(all) == maxShown {
			break
		}
	}
	slices.SortFunc(all, func(a, b HeldQueue) int { return strings.Compare(a.Queue, b.Queue) })
	return all
}

// silentQueues counts the queues that do not answer.
func (l *lanes) silentQueues() (n int) {
	for _, ln := range l.all {
		if ln.Silent {
			n++
		}
	}
	return n
}

// sleepers is a heap by waking time.
type sleepers []*lane

func (s sleepers) Len() int           { return len(s) }
func (s sleepers) Less(i, j int) bool { return s[i].wake.Before(s[j].wake) }
func (s sleepers) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}

// order puts the heap in order again, after waking times were changed.
func (s *sleepers) order() { heap.Init(s) }

// Push and Pop are heap.Interface.
func (s *sleepers) Push(x any) {
	ln := x.(*lane)
	ln.index = len(*s)
	*s = append(*s, ln)
}

// Pop is Push's counterpart.
func (s *sleepers) Pop() any {
	old := *s
	ln := old[len(old)-1]
	old[len(old)-1] = nil
	*s = old[:len(old)-1]
	ln.index = -1
	return ln
}
