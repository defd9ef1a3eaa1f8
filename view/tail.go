package view

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/streams"
	"github.com/millrace-jobs/millrace/wire"
)

// longestPause is the longest wait before a reader connects again. It adds to a failover.
const longestPause = 500 * time.Millisecond

func (t *tail) run(ctx context.Context) error {
	t.mu.Lock()
	t.lateness.begin(time.Now())
	t.position, t.end.stall = none, newStall()
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
	if err := t.setTarget(ctx, generation, at, from); err != nil {
		return t.ended(parent, generation, err)
	}
	r := &resume{at: at}
	r.seen.Store(at.offset == none)
	defer r.watch(ctx, cancel, &t.comparer)()
	g := &gaps{source: t.source, stream: t.stream, last: at.offset}
	err = t.source.Read(ctx, t.stream, from, func(records []wire.Record) error {
		rest, err := r.check(records)
		if err != nil {
			return err
		}
		if t.identityConfirmed(generation) {
			t.view.announce()
		}
		err = g.pass(ctx, rest, func(records []wire.Record) error {
			err := t.view.apply(t, generation, records)
			if err != nil && !errors.Is(err, errRewound) {
				return &fatalError{err}
			}
			return err
		})
		if errors.Is(err, errReplica) {
			cancel(streams.ErrMoved) // the next reader begins at another replica
		}
		return err
	})
	switch cause := context.Cause(ctx); {
	case err == nil && errors.Is(cause, streams.ErrMoved):
		err = fmt.Errorf("%w: %s: %w", streams.ErrLost, t.stream, streams.ErrMoved)
	case errors.Is(cause, errMismatch):
		err = cause
	}
	return t.ended(parent, generation, err)
}

// setTarget asks where the stream ends. An end below the last folded record may show that the
// stream is another one, or has lost its end.
func (t *tail) setTarget(ctx context.Context, generation int, at position, from int64) error {
	last, err := t.lastOffset(ctx)
	if err != nil {
		t.endsBelow(false)
		return fmt.Errorf("view: end of %s: %w", t.stream, err)
	}
	if err := t.mustReach(at, last); err != nil {
		return err
	}
	if !t.storeTarget(generation, at, from, last) {
		return errRewound
	}
	t.view.announce()
	return nil
}

func (t *tail) storeTarget(generation int, at position, from, last int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gen != generation {
		return false
	}
	t.state, t.position, t.target = stateCatchingUp, at.offset, last
	t.end.connected(from, last, t.source.LastIsCheap())
	if at.offset == none {
		t.identity, t.fault = identity{}, ""
		if last == none || last < from {
			t.state = stateRunning
		}
	}
	return true
}

// begin returns the generation of the reader and the position to continue from. It reads both in
// one transaction, so that it never sees half of a rewind.
func (t *tail) begin(stop context.CancelCauseFunc) (generation int, at position, err error) {
	err = t.store.Update(func(tx *Tx) (err error) {
		t.mu.Lock()
		t.stop, generation = stop, t.gen
		t.mu.Unlock()
		at, err = readPosition(tx, t.stream)
		return err
	})
	return generation, at, err
}

func (t *tail) disconnected(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == stateRunning {
		t.lateness.caughtUpAt = time.Now()
	}
	t.state = stateConnecting
	if errors.Is(err, streams.ErrNoStream) || errors.Is(err, streams.ErrCancelled) {
		t.state = stateMissing
	}
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

// Run reads until ctx ends. It reads again after any failure of a stream. It returns an error if
// the store or the fold fails, or if the store must be rebuilt.
func (v *View) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, t := range v.streams {
		g.Go(func() error { return t.run(ctx) })
	}
	g.Go(func() error { return v.askEnds(ctx) })
	return g.Wait()
}
