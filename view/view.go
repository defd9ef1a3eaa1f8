package view

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/millrace-jobs/millrace/wire"
)

// Source is where a view reads streams from.
type Source interface {
	// Read delivers a stream's records from an offset on (-1: from the first it has), in order, until ctx ends or something fails.
	Read(ctx context.Context, stream string, from int64, deliver func([]wire.Record) error) error
	// Fetch gives one record; an error that wraps streams.ErrNotFound says that none came.
	Fetch(ctx context.Context, stream string, offset int64) (wire.Record, error)
	// First is the offset of a stream's oldest record; ok is false if the stream is empty. Where replicas differ First, Last and Fetch ask
	// the stream's leader, wherever Read reads: it alone knows.
	First(ctx context.Context, stream string) (offset int64, ok bool, err error)
	// Last is the offset of a stream's newest record; ok is false if the stream is empty.
	Last(ctx context.Context, stream string) (offset int64, ok bool, err error)
	// LastIsCheap tells whether Last may be asked time and again.
	LastIsCheap() bool
}

// Fold says what a record means. It is deterministic and does nothing but write to tx.
type Fold interface {
	Fold(tx *Tx, r *wire.Record) error
	// Commit is called once a batch, before it is written.
	Commit(tx *Tx) error
}

// ErrHalt ends the view for good where a fold's error wraps it: this build must not go on.
var ErrHalt = errors.New("view: cannot go on")

// View keeps a store up to date with streams.
type View struct {
	store   *Store
	source  Source
	fold    Fold
	log     *slog.Logger
	streams []*tail
	journal string

	steady     sync.RWMutex // held to roll the view back
	rolledBack int

	mu      sync.Mutex
	changed chan struct{}
	ready   chan struct{}
	once    sync.Once
}

// New makes a view of streams. journal is the one of them whose loss makes the view gapped.
func New(store *Store, source Source, fold Fold, log *slog.Logger, journal string, streams ...string) *View {
	v := &View{store: store, source: source, fold: fold, log: log, journal: journal,
		changed: make(chan struct{}), ready: make(chan struct{})}
	for _, name := range append([]string{journal}, streams...) {
		v.streams = append(v.streams, &tail{view: v, stream: name, behind: time.Now()})
	}
	return v
}

// Run reads until ctx ends. What fails is tried again; only a store that cannot be written, or a halt, is returned.
func (v *View) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, t := range v.streams {
		g.Go(func() error { return t.run(ctx) })
	}
	g.Go(func() error { return v.askEnds(ctx) })
	return g.Wait()
}

// Ready is closed once every stream has been folded up to where it ended when the view connected.
func (v *View) Ready() <-chan struct{} { return v.ready }

// Changed is closed when something more has been folded. Ask for it before looking, then wait for it.
func (v *View) Changed() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.changed
}

func (v *View) announce() {
	v.mu.Lock()
	close(v.changed)
	v.changed = make(chan struct{})
	v.mu.Unlock()
	for _, t := range v.streams {
		if !t.caughtUp() {
			return
		}
	}
	v.once.Do(func() { close(v.ready) })
}

// Lag is how far the view is behind the streams, at least.
func (v *View) Lag() time.Duration {
	return v.longest((*tail).lag, func(*tail) bool { return true })
}

// longest is the most that any of the streams that count says of itself.
func (v *View) longest(says func(*tail, time.Time) time.Duration, counts func(*tail) bool) time.Duration {
	var most time.Duration
	for _, t := range v.streams {
		if counts(t) {
			most = max(most, says(t, time.Now()))
		}
	}
	return most
}

// goingOn chooses some of the streams, as long as they were not made anew, or emptied.
func goingOn(streams []string) func(*tail) bool {
	return func(t *tail) bool {
		return slices.Contains(streams, t.stream) && !t.isRecreated() && !t.isEmptied()
	}
}

// Status is the state of every stream.
func (v *View) Status() []Status {
	all := make([]Status, len(v.streams))
	for i, t := range v.streams {
		all[i] = t.status(time.Now())
	}
	return all
}

// Recreated lists the streams that were found to be deleted and made anew, and that wait for a Rewind.
func (v *View) Recreated() []string {
	var all []string
	for _, t := range v.streams {
		if t.isRecreated() {
			all = append(all, t.stream)
		}
	}
	return all
}

// Emptied lists the streams that have had nothing for a while, although they had been read. An empty
// stream proves nothing: a leader that appends its barrier finds out whether it is another stream.
func (v *View) Emptied() []string {
	var all []string
	for _, t := range v.streams {
		if t.isEmptied() {
			all = append(all, t.stream)
		}
	}
	return all
}

// Missing lists the streams that were deleted, as far as is known, and are not there again.
func (v *View) Missing() []string {
	var all []string
	for _, t := range v.streams {
		if t.isMissing() {
			all = append(all, t.stream)
		}
	}
	return all
}

// Followed tells whether each of some streams has been folded to its end, or is known to have been made anew or emptied: whatever can be
// known of them without a leader is.
func (v *View) Followed(streams ...string) bool {
	for _, t := range v.streams {
		if slices.Contains(streams, t.stream) && !t.caughtUp() && !t.isRecreated() && !t.isEmptied() {
			return false
		}
	}
	return true
}

// LagOf is Lag for some of the streams.
func (v *View) LagOf(streams ...string) time.Duration {
	return v.longest((*tail).lag, goingOn(streams))
}

// StuckOf is for how long nothing of some stream was folded although there is more, the longest of some streams.
func (v *View) StuckOf(streams ...string) time.Duration {
	return v.longest((*tail).stuck, goingOn(streams))
}

// apply folds a batch that a reader of some generation delivered.
func (v *View) apply(t *tail, generation int, records []wire.Record) error {
	current := func() error {
		if t.generation() != generation {
			return errRewound
		}
		return nil
	}
	// Readers are stopped within the transaction, so that none folds what it has already.
	if err := v.store.Apply(v.fold, t.stream, records, current, v.rewind); err != nil {
		return err
	}
	t.folded(generation, records)
	v.announce()
	return nil
}

// Reloader is a fold that keeps something in memory. Where the store is rolled back, it reads that
// from the store again.
type Reloader interface {
	Reload() error
}

// rollBack brings the store back to a checkpoint, and has every stream read on from there.
func (v *View) rollBack(number int64) error {
	v.steady.Lock()
	defer v.steady.Unlock()
	err := v.store.rollBack(number, func() error {
		v.rolledBack++
		for _, t := range v.streams {
			t.rewind()
		}
		if f, ok := v.fold.(Reloader); ok {
			return f.Reload()
		}
		return nil
	})
	if err == nil {
		v.announce()
	}
	return err
}

// RolledBack returns how often the view was rolled back.
func (v *View) RolledBack() int {
	v.steady.RLock()
	defer v.steady.RUnlock()
	return v.rolledBack
}

// Steadily calls fn if the view has been rolled back so often and no more, and keeps it from being
// rolled back meanwhile. What was done already is not to be seen as pending by a leader that did it.
func (v *View) Steadily(rolledBack int, fn func() error) error {
	v.steady.RLock()
	defer v.steady.RUnlock()
	if v.rolledBack != rolledBack {
		return ErrRolledBack
	}
	return fn()
}

// ErrRolledBack is returned where the view does not show any more what it had shown.
var ErrRolledBack = errors.New("view: rolled back")

func (v *View) rewind(streams []string) {
	for _, name := range streams {
		for _, t := range v.streams {
			if t.stream == name {
				t.rewind()
			}
		}
	}
}
