package scheduler

import (
	"container/heap"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
)

// dueQueue is a queue and its entries in due order, as far as they were looked up.
type dueQueue struct {
	ledger.Queue
	name string
	lookups
	turn
	hold
	openFires
	readiness
}

// turn is when it is a queue's turn. A queue is in the ring, sleeps, or has nothing to do.
type turn struct {
	wake  time.Time // when it leaves its sleep
	index int       // in the heap of those that sleep; -1 if it does not
	due   bool      // it is in the ring
}

// hold is why a queue takes no jobs now.
type hold struct {
	held    string // the reason, empty if it takes jobs
	since   time.Time
	backoff time.Duration
	trial   bool // one job is sent to see whether the queue takes jobs again
}

// openFires is what a queue has not confirmed.
type openFires struct {
	unconfirmed int  // fires
	limit       int  // how many there may be
	full        bool // there are so many, and it left the ring
	trying      bool // one more is to be sent, to see whether it answers
	tried       bool // that was decided once since it fell silent
}

// readiness is whether a queue is known to exist and to be bound.
type readiness struct {
	bound   bool
	boundAt time.Time           // when it was bound
	recheck bool                // it was bound once, and may not be any more
	asked   bool                // it is being declared and bound
	unmade  bool                // that failed the last time
	waiting []func(error) error // what is called with the result
	moving  string              // not empty: it is moved to another type
}

// dueQueues are the queues. Those that have something due take turns, the others sleep.
type dueQueues struct {
	base
	all   map[string]*dueQueue
	ring  []*dueQueue
	sleep sleepers
	came  func(first tracker.DueKey) // gets the first entry of a queue that became pending
}

// How long a queue is held that refused a job. A quorum queue refuses while it elects a leader, so
// the waits stay short at first.
const (
	firstHold = time.Second
	shortHold = 4 * time.Second // the longest within shortFor
	shortFor  = 30 * time.Second
	maxHold   = time.Minute
)

// How many entries of a queue are looked up at a time: few at first in each step, because a step
// may fire few of each queue.
const (
	firstLook = 4
	lookAhead = 128
)

func (qs *dueQueues) of(queue string) *dueQueue {
	q := qs.all[queue]
	if q == nil {
		q = &dueQueue{name: queue, turn: turn{index: -1}}
		qs.all[queue] = q
	}
	return q
}

// open has every queue looked up, when the epoch begins.
func (qs *dueQueues) open(time.Time) error {
	qs.entries.TakeReady()
	for _, queue := range qs.entries.Queues() {
		qs.lookFrom(qs.of(queue), tracker.DueKey{})
	}
	return nil
}

// step has the queues looked up that got entries.
func (qs *dueQueues) step(now time.Time) error {
	ready := qs.entries.TakeReady()
	for _, queue := range slices.Sorted(maps.Keys(ready)) {
		q, r := qs.of(queue), ready[queue]
		qs.came(r.First)
		if r.Unbound {
			qs.notBound(now, q, r.Returned)
		}
		qs.lookFrom(q, r.First)
	}
	return nil
}

// lookFrom has a queue looked up again from a key on.
func (qs *dueQueues) lookFrom(q *dueQueue, from tracker.DueKey) {
	if q.from(from) {
		qs.wakeAt(q, time.Time{})
	}
}

// wakeAt has a queue wake at a time, if it would sleep longer.
func (qs *dueQueues) wakeAt(q *dueQueue, at time.Time) {
	if q.due || q.held != "" {
		return
	}
	if q.index < 0 {
		q.wake = at
		heap.Push(&qs.sleep, q)
	} else if at.Before(q.wake) {
		q.wake = at
		heap.Fix(&qs.sleep, q.index)
	}
}

// wakeUp moves the queues whose time has come into the ring.
func (qs *dueQueues) wakeUp(now time.Time) {
	for len(qs.sleep) > 0 && !qs.sleep[0].wake.After(now) {
		q := heap.Pop(&qs.sleep).(*dueQueue)
		if q.held != "" {
			q.held, q.trial = "", true
		}
		q.due = true
		qs.ring = append(qs.ring, q)
	}
}

// next returns when the first queue wakes.
func (qs *dueQueues) next(otherwise time.Time) time.Time {
	if len(qs.sleep) > 0 && qs.sleep[0].wake.Before(otherwise) {
		return qs.sleep[0].wake
	}
	return otherwise
}

// leave takes the first queue out of the ring. It sleeps until a time, or has nothing to do if that
// is zero.
func (qs *dueQueues) leave(until time.Time) {
	q := qs.ring[0]
	qs.ring = qs.ring[1:]
	q.due = false
	if !until.IsZero() {
		qs.wakeAt(q, until)
	}
}

// rotate moves the first queue to the end of the ring.
func (qs *dueQueues) rotate() { qs.ring = append(qs.ring[1:], qs.ring[0]) }

// hold has a queue wait that takes no jobs, at most so long before it is tried again.
func (qs *dueQueues) hold(q *dueQueue, now time.Time, reason string, most time.Duration) {
	if q.held == "" {
		if q.since.IsZero() {
			q.since = now
		}
		if now.Sub(q.since) < shortFor {
			most = min(most, shortHold)
		}
		q.backoff = min(max(2*q.backoff, firstHold), most)
	}
	q.held, q.trial = reason, false
	if q.due {
		q.due = false
		qs.ring = slices.DeleteFunc(qs.ring, func(o *dueQueue) bool { return o == q })
	}
	q.wake = now.Add(q.backoff)
	if q.index < 0 {
		heap.Push(&qs.sleep, q)
	} else {
		heap.Fix(&qs.sleep, q.index)
	}
}

// takes reports whether a queue takes one more job now.
func (q *dueQueue) takes() bool {
	return q.held == "" && q.unconfirmed < q.limit && (!q.Silent || q.trying) && (!q.trial || q.unconfirmed <= q.Aside)
}

// limit sets how many fires each queue may have unconfirmed.
func (qs *dueQueues) limit(of func(queue string) int) {
	for _, q := range qs.all {
		q.limit = of(q.name)
		if q.full && q.unconfirmed < q.limit {
			q.full = false
			qs.wakeAt(q, time.Time{})
		}
	}
}

// accepted notes that a queue took a job.
func (qs *dueQueues) accepted(q *dueQueue) {
	q.unconfirmed--
	if q.held != "" {
		return
	}
	if q.full {
		q.full = false
		qs.wakeAt(q, time.Time{})
	}
	tried := q.trial
	q.trial, q.backoff, q.since = false, 0, time.Time{}
	if tried {
		qs.wakeAt(q, time.Time{})
	}
}

// setBack has the queues that are held wait no longer because the clock was set back.
func (qs *dueQueues) setBack(by time.Duration) {
	for _, q := range qs.all {
		if q.held != "" {
			q.wake = q.wake.Add(-by)
		}
	}
	qs.sleep.order()
}

// maxShown is how many held queues are listed at most.
const maxShown = 1000

// heldQueues returns the queues that take no jobs now.
func (qs *dueQueues) heldQueues() []HeldQueue {
	var all []HeldQueue
	for _, q := range qs.all {
		if q.held != "" {
			all = append(all, HeldQueue{q.name, q.held, q.since, q.wake})
		}
		if len(all) == maxShown {
			break
		}
	}
	slices.SortFunc(all, func(a, b HeldQueue) int { return strings.Compare(a.Queue, b.Queue) })
	return all
}

// silentQueues returns how many queues do not answer.
func (qs *dueQueues) silentQueues() (n int) {
	for _, q := range qs.all {
		if q.Silent {
			n++
		}
	}
	return n
}

// sleepers is a heap by waking time.
type sleepers []*dueQueue

func (s sleepers) Len() int           { return len(s) }
func (s sleepers) Less(i, j int) bool { return s[i].wake.Before(s[j].wake) }
func (s sleepers) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}

// order restores the heap after waking times were changed.
func (s *sleepers) order() { heap.Init(s) }

// Push and Pop are heap.Interface.
func (s *sleepers) Push(x any) {
	q := x.(*dueQueue)
	q.index = len(*s)
	*s = append(*s, q)
}

// Pop is Push's counterpart.
func (s *sleepers) Pop() any {
	old := *s
	q := old[len(old)-1]
	old[len(old)-1] = nil
	*s = old[:len(old)-1]
	q.index = -1
	return q
}

// A queue is declared and bound before the first job is fired to it.

// prepareAhead is how long before its first entry is due a queue is declared.
const prepareAhead = time.Minute

// isReady reports whether a queue is known to exist and to be bound. If it is not, it has the queue
// declared and bound.
func (qs *dueQueues) isReady(now time.Time, q *dueQueue) bool {
	switch {
	case q.moving != "":
		qs.hold(q, now, q.moving, maxAway)
		return false
	case q.bound || q.asked:
		return q.bound
	case !q.recheck && qs.setup.isBound(q.name):
		qs.bound(now, q.name, nil)
		return true
	}
	q.asked = true
	if err := qs.setup.bind(q.name); err != nil {
		qs.bound(now, q.name, err)
	}
	return false
}

// awaitsReady reports whether a queue is being declared and bound.
func (qs *dueQueues) awaitsReady(q *dueQueue) bool { return q.asked && !q.bound }

// bound takes in whether a queue is bound now; err says why it is not.
func (qs *dueQueues) bound(now time.Time, queue string, err error) {
	q := qs.of(queue)
	q.asked, q.bound, q.recheck, q.unmade = false, err == nil, err != nil, err != nil
	for _, fn := range q.waiting {
		qs.ledger.NextStep(func() error { return fn(err) })
	}
	q.waiting = nil
	switch {
	case err == nil:
		q.boundAt = now
		qs.wakeAt(q, time.Time{})
	case errors.Is(err, errTooMany):
		qs.hold(q, now, err.Error(), maxHold)
	default:
		qs.hold(q, now, err.Error(), maxAway)
	}
}

// whenBound calls fn when it is known whether a queue is bound.
func (qs *dueQueues) whenBound(now time.Time, queue string, fn func(error) error) error {
	q := qs.of(queue)
	switch {
	case qs.isReady(now, q):
		return fn(nil)
	case !q.asked || q.moving != "":
		return fn(errors.New(q.held))
	}
	q.waiting = append(q.waiting, fn)
	return nil
}

// maxAway is the longest time until it is tried again to bind a queue.
const maxAway = 5 * time.Second

// boundFor is how long a queue counts as bound although jobs come back for which it was not.
const boundFor = time.Second

// notBound notes that a job found no queue. A queue whose own fire came back is held.
func (qs *dueQueues) notBound(now time.Time, q *dueQueue, returned bool) {
	if returned && q.held == "" {
		q.bound, q.recheck = false, true
		qs.hold(q, now, "no queue was bound for it when a job was delivered", maxAway)
	} else if now.Sub(q.boundAt) >= boundFor || now.Before(q.boundAt) {
		q.bound, q.recheck = false, true
	}
}

// holdForMove stops firing to a queue, and returns how many fires it has not confirmed.
func (qs *dueQueues) holdForMove(now time.Time, queue, reason string) (open int) {
	q := qs.of(queue)
	q.moving, q.bound = reason, false
	qs.hold(q, now, reason, maxAway)
	if q.asked { // it is being bound
		return max(q.unconfirmed, 1)
	}
	return q.unconfirmed
}

// endMove starts firing to a queue again that was moved.
func (qs *dueQueues) endMove(queue string) {
	q := qs.of(queue)
	q.moving, q.held, q.backoff, q.since = "", "", 0, time.Time{}
	qs.wakeAt(q, time.Time{})
}
