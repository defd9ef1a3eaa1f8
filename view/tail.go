package view

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/streams"
	"github.com/millrace-jobs/millrace/wire"
)

// tail follows one stream of a view.
type tail struct {
	view   *View
	stream string
	first  *tail // must be read to its end before this stream is read

	mu        sync.Mutex
	gen       int                     // rises with every rewind; an older reader is ignored
	stop      context.CancelCauseFunc // stops the reader
	position  int64
	target    int64 // end of the stream when the reader connected
	start     int64 // where the reader began; none: at the first record
	last      int64 // end of the stream when last asked for
	lastKnown bool  // last was answered, and is asked for again
	connected bool
	caught    bool
	behind    time.Time // when the view was last known to be caught up
	foldedAt  time.Time
	begun     time.Time
	age       age
	recreated bool
	emptied   bool      // is empty now; a leader's barrier shows whether it is another stream
	missing   bool      // the broker has no such stream
	since     time.Time // when it was found to be recreated
	fault     string

	belowSince time.Time // since when the stream ends below the last folded record, or zero

	aimedAt     time.Time // when the reader had asked for the end
	asking      bool      // a question for the end is open
	behindAt    int64     // where the reader was found to be behind, or unmoved
	behindSince time.Time // when that was
	movedFor    int64     // the end for which a reader was last moved
	movedAt     time.Time // when that was
}

// Status is the state of one stream.
type Status struct {
	Stream    string        `json:"stream"`
	Position  int64         `json:"position"`
	CaughtUp  bool          `json:"caught_up"`
	Lag       time.Duration `json:"lag"`
	Recreated bool          `json:"recreated,omitempty"`
	Fault     string        `json:"fault,omitempty"`
	End       *End          `json:"end,omitempty"` // nil: unknown
}

var (
	errRewound  = errors.New("view: stream is read anew")
	errMismatch = errors.New("view: the stream does not continue where it was read")
)

// probeAfter is how long the last folded record may take to come again before the view checks the
// stream's end.
const probeAfter = 2 * time.Second

// longestPause is the longest wait before a reader connects again. It adds to a failover.
const longestPause = time.Second

func (t *tail) run(ctx context.Context) error {
	t.mu.Lock()
	t.begun = time.Now()
	t.behind, t.position = t.begun, none
	t.behindAt, t.movedFor = unmoved, none
	t.mu.Unlock()
	retry := pause.Growing(longestPause)
	for ctx.Err() == nil {
		begun := time.Now()
		err := t.follow(ctx)
		var fatal *fatalError
		if errors.As(err, &fatal) {
			return fatal.err
		}
		if ctx.Err() != nil {
			err = nil // an error that the end of ctx caused
		}
		t.disconnected(err)
		if t.isMissing() {
			t.view.announce()
		}
		if time.Since(begun) > 10*time.Second || errors.Is(err, errRewound) {
			retry.Reset()
		}
		_ = pause.For(ctx, retry.NextBackOff())
	}
	return nil
}

// fatalError ends the view, because the store or the fold failed and not a stream.
type fatalError struct{ err error }

func (e *fatalError) Error() string { return e.err.Error() }

// follow reads the stream once, until something ends it.
func (t *tail) follow(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	generation, at, err := t.begin(cancel)
	if err != nil {
		return &fatalError{err}
	}
	from, err := t.from(ctx, at)
	if err != nil {
		return t.ended(parent, generation, err)
	}
	if err := t.aim(ctx, generation, at, from); err != nil {
		return t.ended(parent, generation, err)
	}
	r := &resume{at: at, seen: at.offset == none}
	defer r.watch(ctx, cancel, t)()
	err = t.view.source.Read(ctx, t.stream, from, func(records []wire.Record) error {
		rest, err := r.check(records)
		if err != nil {
			return err
		}
		if t.recognised(generation) {
			t.view.announce()
		}
		if len(rest) == 0 {
			return nil
		}
		if err := t.view.apply(t, generation, rest); err != nil && !errors.Is(err, errRewound) {
			return &fatalError{err}
		} else if err != nil {
			return err
		}
		return nil
	})
	if err == nil && errors.Is(context.Cause(ctx), streams.ErrMoved) {
		err = fmt.Errorf("%w: %s: %w", streams.ErrLost, t.stream, streams.ErrMoved)
	}
	if cause := r.cause(); cause != nil {
		err = cause
	}
	return t.ended(parent, generation, err)
}

// aim asks where the stream ends. An end below the last folded record may show that the stream is
// another one, or has lost its end.
func (t *tail) aim(ctx context.Context, generation int, at position, from int64) error {
	last, ok, err := t.view.source.Last(ctx, t.stream)
	if err != nil {
		t.endsBelow(false)
		return fmt.Errorf("view: end of %s: %w", t.stream, err)
	}
	if !ok {
		last = none
	}
	if last < at.offset {
		return fmt.Errorf("%w: %s ends at %d, %d was read before", errMismatch, t.stream, last, at.offset)
	}
	if !t.aimed(generation, at, from, last) {
		return errRewound
	}
	t.view.announce()
	return nil
}

func (t *tail) aimed(generation int, at position, from, last int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gen != generation {
		return false
	}
	t.connected, t.missing, t.target, t.position = true, false, last, at.offset
	t.start, t.last, t.lastKnown = from, last, t.view.source.LastIsCheap()
	t.aimedAt, t.behindAt = time.Now(), unmoved
	if at.offset == none {
		t.recreated, t.emptied, t.belowSince = false, false, time.Time{}
		t.fault, t.caught = "", last == none || last < from
	}
	return true
}

// begin returns the generation of the reader and the position to continue from. It reads both in
// one transaction, so that it never sees half of a rewind.
func (t *tail) begin(stop context.CancelCauseFunc) (generation int, at position, err error) {
	err = t.view.store.Update(func(tx *Tx) (err error) {
		t.mu.Lock()
		t.stop, generation = stop, t.gen
		t.mu.Unlock()
		at, err = readPosition(tx, t.stream)
		return err
	})
	return generation, at, err
}

// recognised records that the stream is the one that was read before. Only now can the view be
// caught up. recognised reports whether it has just become so.
func (t *tail) recognised(generation int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gen != generation {
		return false
	}
	before := t.caught
	t.recreated, t.emptied, t.belowSince = false, false, time.Time{}
	t.fault, t.caught = "", t.caught || t.position >= t.target
	return t.caught && !before
}

func (t *tail) rewind() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gen++
	t.caught, t.recreated, t.emptied, t.position, t.lastKnown = false, false, false, none, false
	if t.stop != nil {
		t.stop(nil)
	}
}

func (t *tail) generation() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.gen
}

func (t *tail) folded(generation int, records []wire.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gen != generation {
		return
	}
	last := records[len(records)-1]
	t.position = max(last.Offset, last.Through)
	t.foldedAt = time.Now()
	t.age.note(t.foldedAt, t.foldedAt.Sub(t.begun), last.Time)
	t.caught = t.caught || t.position >= t.target
	if t.caught {
		t.behind = t.foldedAt
	}
}

func (t *tail) disconnected(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.caught {
		t.behind = time.Now()
	}
	t.connected, t.caught = false, false
	t.missing = errors.Is(err, streams.ErrNoStream) || errors.Is(err, streams.ErrCancelled)
	if err != nil && !errors.Is(err, errRewound) && !errors.Is(err, errNotYet) {
		level := slog.LevelWarn
		// It was logged before, or this is a first start, in which the leader declares the stream.
		if t.fault != "" || errors.Is(err, streams.ErrNoStream) {
			level = slog.LevelDebug
		}
		t.fault = err.Error()
		t.view.log.Log(context.Background(), level, "view: stream reader ended, it starts again", "stream", t.stream, "error", err)
	}
}

func (t *tail) caughtUp() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.caught
}

func (t *tail) isMissing() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.missing
}

func (t *tail) isRecreated() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.recreated
}

func (t *tail) isEmptied() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.emptied
}

// foundEmpty records that the stream is empty. A later record shows whether it is another stream.
func (t *tail) foundEmpty() {
	t.mu.Lock()
	t.emptied = true
	t.mu.Unlock()
	t.view.announce()
}

// lag returns the time since the stream was last known to be caught up. While records flow, it
// returns the age that the newest one had when it was folded.
func (t *tail) lag(now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.caught {
		return now.Sub(t.behind)
	}
	if now.Sub(t.foldedAt) > time.Second {
		return 0
	}
	return t.age.late
}

// stuck returns the time since a record was folded, while there are more to fold.
func (t *tail) stuck(now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.caught {
		return 0
	}
	return min(now.Sub(t.behind), now.Sub(t.foldedAt))
}

func (t *tail) status(now time.Time) Status {
	lag := t.lag(now)
	t.mu.Lock()
	defer t.mu.Unlock()
	return Status{t.stream, t.position, t.caught, lag, t.recreated, t.fault, t.end()}
}
