package tracker

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Shown is what is in memory for all to see, as of the newest batch that was written. So a reader
// finds in the store the effects of every record that it learns of here.
type Shown struct {
	state atomic.Pointer[State] // never changed, only replaced
	late  atomic.Int64          // see Late

	mu      sync.RWMutex
	ready   map[string]Ready // by queue, what became pending, for the leader
	copies  []int64          // by offset, the copies that came, for the leader
	written map[string]int64 // by stream, the bytes folded since low water moved, or since this process started

	followed
	shownUnique
}

// State returns what is known of leadership.
func (v *Shown) State() State { return v.state.Load().clone() }

func (v *Shown) show(s State) { v.state.Store(&s) }

// Progress returns the epoch, and the highest number of its records that was folded.
func (v *Shown) Progress() (epoch, folded int64) {
	s := v.state.Load()
	return s.Epoch, s.FoldedSeq
}

// Lacks reports whether the journal has higher numbers of an epoch, and not this one: the broker
// refused it, or has confirmed it and lost it. Nothing is known of other epochs than the newest.
func (v *Shown) Lacks(epoch, seq int64) bool {
	s := v.state.Load()
	return epoch != s.Epoch || s.Skipped.Has(seq)
}

// Probed is what the view has seen of the newest probe, and of this epoch's burials.
type Probed struct {
	Number int64 // 0: no probe
	Offset int64 // in the journal
	Buried int64 // the highest number of a burial that the dead jobs have
}

// Probed returns what the view has seen of the newest probe.
func (v *Shown) Probed() Probed {
	s := v.state.Load()
	return Probed{s.Probe, s.ProbeAt, s.Barriers[wire.DeadJobs].Buried}
}

// GatedProbe returns the number of the newest probe of an epoch that jobs.gated has, 0 if none.
func (v *Shown) GatedProbe(epoch int64) int64 {
	if newest := v.state.Load().GatedProbe; newest.Epoch == epoch {
		return newest.Through
	}
	return 0
}

// RetriesProbe returns the number of the newest probe of an epoch that the retries have, 0 if none.
func (v *Shown) RetriesProbe(epoch int64) int64 {
	if newest := v.state.Load().RetriesProbe; newest.Epoch == epoch {
		return newest.Through
	}
	return 0
}

// IsHeld reports whether an entry must not fire until an operator releases what is held.
func (v *Shown) IsHeld(stream string, offset int64) bool {
	upTo, held := v.state.Load().Held[stream]
	return held && offset <= upTo
}

// journalBegin returns the first offset of the journal that was folded, and when the first epoch
// began that it has.
func (v *Shown) journalBegin() (first int64, begunAt float64) {
	s := v.state.Load()
	return s.JournalFirst, s.BegunAt
}

// Late returns how many fires of leaders that had been followed already put an entry in doubt,
// since this process started.
func (v *Shown) Late() int64 { return v.late.Load() }

// recordOverhead is about how many bytes a broker stores beside a record's body.
const recordOverhead = 128

func (v *Shown) noteWritten(r *wire.Record) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.written[r.Stream] += int64(len(r.Body)) + recordOverhead
}

func (v *Shown) noteLowWater() {
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(v.written)
}

// Written returns about how many bytes of a stream were folded since low water moved last, as far
// as this process knows.
func (v *Shown) Written(stream string) int64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.written[stream]
}

// LowWaterAt returns when low water moved last. If it never did, that is when the first leader was
// seen.
func (v *Shown) LowWaterAt() time.Time {
	s := v.state.Load()
	return time.UnixMicro(int64(cmp.Or(s.LowWaterAt, s.BegunAt) * 1e6))
}

// TakeReady returns the queues that got an entry which may fire since the last call.
func (v *Shown) TakeReady() map[string]Ready {
	v.mu.Lock()
	defer v.mu.Unlock()
	taken := v.ready
	v.ready = map[string]Ready{}
	return taken
}

func (v *Shown) showReady(fresh map[string]Ready) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for q, r := range fresh {
		sooner(v.ready, q, r)
	}
}

// TakeCopies returns the offsets of the copies that came since the last call.
func (v *Shown) TakeCopies() []int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	taken := v.copies
	v.copies = nil
	return taken
}

func (v *Shown) showCopies(offsets []int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.copies = append(v.copies, offsets...)
}

// arrivals are the entries that became pending in a batch. The leader sees them once it is written.
type arrivals struct {
	shown  *Shown
	counts *Counts
	ready  map[string]Ready
	groups map[wire.Group]DueKey
	copies []int64 // of jobs.gated

	allGroups bool // every group is to be looked at
}

func (a *arrivals) reset() {
	a.ready, a.groups, a.copies = map[string]Ready{}, map[wire.Group]DueKey{}, nil
}

// noteReady makes the leader look at an entry.
func (a *arrivals) noteReady(s *Stored) {
	if s.Undecided {
		return
	}
	key := DueKey{s.At, s.Stream, s.Offset}
	if s.Gated {
		if old, known := a.groups[s.Group()]; !known || key.Before(old) {
			a.groups[s.Group()] = key
		}
		if !s.IsCopy() {
			return
		}
	}
	gated := s.Stream == wire.Gated
	sooner(a.ready, s.Queue, Ready{key, gated, gated && s.IsCopy()})
}

// readyAll makes the leader look at every queue from its beginning, since what was held may fire.
// It includes the queues of which this batch has the first entry.
func (a *arrivals) readyAll() {
	for _, q := range slices.AppendSeq(a.counts.Queues(), maps.Keys(a.ready)) {
		a.ready[q] = Ready{}
	}
	a.allGroups = true
}

// readyQueue makes the leader look at a queue and at every group from the beginning.
func (a *arrivals) readyQueue(queue string) {
	a.ready[queue] = Ready{}
	a.allGroups = true
}

func (a *arrivals) noteCopy(s *Stored) { a.copies = append(a.copies, s.Offset) }

// announce shows the arrivals once the batch is written.
func (a *arrivals) announce(tx *view.Tx) {
	if ready := a.ready; len(ready) > 0 {
		a.ready = map[string]Ready{}
		tx.AfterCommit(func() { a.shown.showReady(ready) })
	}
	if groups, all := a.groups, a.allGroups; len(groups) > 0 || all {
		a.groups, a.allGroups = map[wire.Group]DueKey{}, false
		tx.AfterCommit(func() { a.shown.showGroups(groups, all) })
	}
	if copies := a.copies; len(copies) > 0 {
		a.copies = nil
		tx.AfterCommit(func() { a.shown.showCopies(copies) })
	}
}

func sooner(ready map[string]Ready, queue string, r Ready) {
	if old, ok := ready[queue]; ok {
		if old.First.Before(r.First) {
			r.First = old.First
		}
		r.Unbound, r.Returned = r.Unbound || old.Unbound, r.Returned || old.Returned
	}
	ready[queue] = r
}
