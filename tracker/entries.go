package tracker

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Schema is the version of what Entries writes; a store with another is built anew.
const Schema = 15

// Entries is the fold over entry streams and journal, and the way to read what it found.
type Entries struct {
	Lookup
	store   *view.Store
	trusted map[string]bool
	counts  *counts
	rings   *rings
	fronts  fronts

	operations *operations
	pauses     *pauses
	parts      []Part
	maxActs    uint64 // of each list; tests lower it
	observer   Observer
	late       atomic.Int64 // see Late

	// What everybody may see: as it was when the newest batch had been written. Who is told of a record here finds its effect in the store.
	mu          sync.RWMutex
	shown       State
	ready       map[string]Ready // by queue, what became pending, for the leader
	shownCopies []int64          // by offset, the copies that came, for the leader

	written map[string]int64 // stream → bytes folded since low water moved, or since this process started

	// The fold's own: what it has in mind while it is at a batch.
	state   State
	changed bool           // state, since it was written
	waiting map[code]int64 // below this offset no settled mark waits for its entry
	tops    tops
	doubts  doubts
	numbers numbers
	fresh   map[string]Ready // what will be ready
	copies  []int64          // of jobs.gated, what will be shown
}

// NewEntries opens the fold's state. Only records of the trusted users are obeyed.
func NewEntries(store *view.Store, trusted ...string) (*Entries, error) {
	t := &Entries{Lookup: Lookup{store}, store: store, maxActs: maxActs, trusted: map[string]bool{}, waiting: map[code]int64{}, written: map[string]int64{}, fresh: map[string]Ready{}, ready: map[string]Ready{}}
	for _, u := range trusted {
		if u != "" {
			t.trusted[u] = true
		}
	}
	t.operations, t.counts, t.pauses = &operations{}, &counts{}, &pauses{}
	return t, t.load()
}

// Fold takes in one record of any stream that Millrace reads.
func (t *Entries) Fold(tx *view.Tx, r *wire.Record) error {
	t.noteWritten(r)
	if err := t.foldStream(tx, r); err != nil {
		return err
	}
	if t.observer != nil && (r.Stream != wire.Journal || t.Trusts(r)) {
		t.observer.Observe(tx, r)
	}
	return nil
}

func (t *Entries) foldStream(tx *view.Tx, r *wire.Record) error {
	if p := t.partOf(r.Stream); p != nil {
		return t.foldPart(tx, r, p)
	}
	switch r.Stream {
	case wire.Journal:
		return t.foldJournal(tx, r)
	case wire.ScheduledJobs, wire.Retries, wire.DeadJobs, wire.Gated:
		return t.foldEntry(tx, r)
	case wire.Heartbeats:
		return t.checkWith(tx, r, wire.CheckHeartbeat)
	case wire.JobMetrics:
		return t.checkWith(tx, r, wire.CheckMetrics)
	}
	return fmt.Errorf("tracker: no fold for stream %s", r.Stream)
}

// Commit writes what the fold keeps in memory, and shows it once it is written.
func (t *Entries) Commit(tx *view.Tx) error {
	for _, p := range t.parts {
		if err := p.Commit(tx); err != nil {
			return err
		}
	}
	if err := t.counts.save(tx); err != nil {
		return err
	}
	if err := t.rings.save(tx); err != nil {
		return err
	}
	if err := t.operations.save(tx); err != nil {
		return err
	}
	if err := t.numbers.save(tx); err != nil {
		return err
	}
	t.fronts.announce()
	if len(t.fresh) > 0 {
		fresh := t.fresh
		t.fresh = map[string]Ready{}
		tx.AfterCommit(func() { t.showReady(fresh) })
	}
	if copies := t.copies; len(copies) > 0 {
		t.copies = nil
		tx.AfterCommit(func() { t.showCopies(copies) })
	}
	if !t.changed {
		return nil
	}
	t.changed = false
	shown := t.state.clone()
	tx.AfterCommit(func() { t.show(shown) })
	return t.state.save(tx)
}

func (t *Entries) show(s State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shown = s
}

// State is what is known of leadership.
func (t *Entries) State() State {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.shown.clone()
}

// Progress is the epoch, and the highest number of its records that was folded.
func (t *Entries) Progress() (epoch, folded int64) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.shown.Epoch, t.shown.FoldedSeq
}

// Probed is what the view has seen of the newest probe, and of this epoch's burials.
type Probed struct {
	Number int64 // 0: no probe
	Offset int64 // in the journal
	Buried int64 // the highest number of a burial that the dead jobs have
}

// Probed is what the view has seen of them.
func (t *Entries) Probed() Probed {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return Probed{t.shown.Probe, t.shown.ProbeAt, t.shown.Barriers[wire.DeadJobs].Buried}
}

// IsHeld tells whether an entry must not fire until an operator released what is held.
func (t *Entries) IsHeld(stream string, offset int64) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	upTo, held := t.shown.Held[stream]
	return held && offset <= upTo
}

// update changes the state; it is written and shown with the batch.
func (t *Entries) update(fn func(*State)) {
	fn(&t.state)
	t.changed = true
}

// peek reads the state in the fold, which alone changes it.
func (t *Entries) peek() *State { return &t.state }

// Trusts tells whether a record is of a user that is obeyed.
func (t *Entries) Trusts(r *wire.Record) bool { return t.trusted[r.UserID] }

func (t *Entries) checkWith(tx *view.Tx, r *wire.Record, check func([]byte) error) error {
	if r.Fault != "" {
		return t.reject(tx, r, r.Fault)
	}
	if err := check(r.Body); err != nil {
		return t.reject(tx, r, err.Error())
	}
	return nil
}
