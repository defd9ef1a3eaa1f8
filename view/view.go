package view

import (
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

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

// tail follows one stream of a view.
type tail struct {
	view  *View
	first *tail // must be read to its end before this stream is read
	comparer
	progress
}

// New returns a view of a journal and other streams. A view that loses the journal is gapped.
func New(store *Store, source Source, fold Fold, log *slog.Logger, journal string, streams ...string) *View {
	v := &View{store: store, source: source, fold: fold, log: log, journal: journal,
		changed: make(chan struct{}), ready: make(chan struct{})}
	for _, name := range append([]string{journal}, streams...) {
		t := &tail{view: v, comparer: comparer{store, source, name}}
		t.lateness.begin(time.Now())
		v.streams = append(v.streams, t)
	}
	return v
}

// Ready returns a channel that is closed once every stream has been folded up to its end at the
// time of connecting.
func (v *View) Ready() <-chan struct{} { return v.ready }

// Changed returns a channel that is closed when more has been folded. Get the channel before you
// look, and then wait for it.
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

// Lag returns how far the view is at least behind the streams.
func (v *View) Lag() time.Duration {
	return v.longest((*tail).lag, func(*tail) bool { return true })
}

// longest returns the largest result of says among the streams that count.
func (v *View) longest(says func(*tail, time.Time) time.Duration, counts func(*tail) bool) time.Duration {
	var most time.Duration
	for _, t := range v.streams {
		if counts(t) {
			most = max(most, says(t, time.Now()))
		}
	}
	return most
}

// notRecreated returns a filter for the named streams. It leaves out those that were created again
// or emptied.
func notRecreated(streams []string) func(*tail) bool {
	return func(t *tail) bool {
		return slices.Contains(streams, t.stream) && t.isOriginal()
	}
}

// streamsThat returns the names of the streams that are so.
func (v *View) streamsThat(are func(*tail) bool) (names []string) {
	for _, t := range v.streams {
		if are(t) {
			names = append(names, t.stream)
		}
	}
	return names
}

// Recreated returns the streams that were deleted and created again, and that wait for a Rewind.
func (v *View) Recreated() []string { return v.streamsThat((*tail).isRecreated) }

// Emptied returns the streams that had records, and have been empty for a while. An empty stream
// proves nothing. A leader that appends its barrier finds out whether it is another stream.
func (v *View) Emptied() []string { return v.streamsThat((*tail).isEmptied) }

// Missing returns the streams that do not exist, as far as the view knows.
func (v *View) Missing() []string { return v.streamsThat((*tail).isMissing) }

// CaughtUp reports whether each of the named streams has been folded to its end, or is known to be
// recreated or emptied. Then the view knows all that can be known without a leader.
func (v *View) CaughtUp(streams ...string) bool {
	counts := notRecreated(streams)
	return !slices.ContainsFunc(v.streams, func(t *tail) bool { return counts(t) && !t.caughtUp() })
}

// LagOf returns the lag of the named streams.
func (v *View) LagOf(streams ...string) time.Duration {
	return v.longest((*tail).lag, notRecreated(streams))
}

// StalledFor returns how long the view has not folded a record of one of the named streams,
// although there are more. It returns the longest of these times.
func (v *View) StalledFor(streams ...string) time.Duration {
	return v.longest((*tail).stalledFor, notRecreated(streams))
}

// apply folds a batch that a reader of this generation delivered.
func (v *View) apply(t *tail, generation int, records []wire.Record) error {
	current := func() error {
		if t.generation() != generation {
			return errRewound
		}
		return nil
	}
	// Readers are stopped within the transaction, so that none of them folds a record twice.
	if err := v.store.Apply(v.fold, t.stream, records, current, v.rewind); err != nil {
		return err
	}
	t.folded(generation, records)
	v.announce()
	return nil
}

// rollBack brings the store back to a checkpoint, and makes every stream continue from there.
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

// Steadily calls fn if the view has been rolled back exactly rolledBack times, and delays a
// rollback until fn returns. If there were more rollbacks, it returns ErrRolledBack. So a leader
// never takes work that it has done for pending work.
func (v *View) Steadily(rolledBack int, fn func() error) error {
	v.steady.RLock()
	defer v.steady.RUnlock()
	if v.rolledBack != rolledBack {
		return ErrRolledBack
	}
	return fn()
}

// ErrRolledBack is returned when the view was rolled back since the caller read it.
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

// errRewound ends a reader whose stream is read again from its beginning.
var errRewound = errors.New("view: stream is read again from its beginning")

// fatalError ends the view, because the store or the fold failed and not a stream.
type fatalError struct{ err error }

func (e *fatalError) Error() string { return e.err.Error() }
