package view

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/millrace-jobs/millrace/streams"
)

// ended handles the end of a reader: above all what shows that the stream is not the one, or not all of the one, that was read before.
func (t *tail) ended(ctx context.Context, generation int, err error) error {
	switch {
	case t.generation() != generation:
		return errRewound
	case errors.Is(err, errRecreated):
		return t.anew(ctx, err)
	case errors.Is(err, errTruncated):
		return t.skip(err)
	case errors.Is(err, streams.ErrRelabelled): // whatever was folded may have stood elsewhere
		return t.rebuild(err)
	}
	return err
}

func (t *tail) rebuild(why error) error {
	if err := t.view.store.Condemn(); err != nil {
		return &fatalError{err}
	}
	return &fatalError{fmt.Errorf("%w: %w", ErrRebuild, why)}
}

// Forgetter is a fold that wants to know of what it cannot read any more.
type Forgetter interface {
	// Forget forgets what a stream said that was deleted and made anew. If it returns true, the stream is read anew at once; else it
	// waits for a Rewind. The journal is read anew at once in any case. ErrRebuild has the store built anew.
	Forget(tx *Tx, stream string) (bool, error)
	// Overtaken is told that retention took records of a stream before they were read. What follows is behind the hole.
	Overtaken(tx *Tx, stream string) error
}

// anew handles a stream that seems to have been deleted and made anew.
func (t *tail) anew(ctx context.Context, reason error) error {
	journal := t.stream == t.view.journal
	if !t.isRecreated() { // else that is known
		if known, err := t.known(ctx, reason); known || err != nil {
			return err
		}
	}
	if journal {
		t.view.log.Error("view: the journal was deleted and made anew", "error", reason)
	}
	forgotten := journal
	err := t.view.store.Update(func(tx *Tx) error {
		if f, ok := t.view.fold.(Forgetter); ok {
			did, err := f.Forget(tx, t.stream)
			if err != nil {
				return err
			}
			forgotten = forgotten || did
		}
		if !forgotten {
			return nil
		}
		return t.startAnew(tx)
	})
	switch {
	case errors.Is(err, ErrRebuild):
		return t.rebuild(reason)
	case err != nil:
		return &fatalError{err}
	case forgotten:
		return errRewound
	}
	return t.waitForRewind(reason)
}

// known tells whether a stream is the one that was read after all, and what follows from that.
func (t *tail) known(ctx context.Context, reason error) (known bool, err error) {
	v, _, err := t.judge(ctx)
	switch {
	case err != nil:
		return false, err
	case v == whole:
		return true, reason // it was slow: it is read again
	case v == short:
		return true, t.lostEnd(ctx, reason)
	}
	return false, nil
}

func (t *tail) startAnew(tx *Tx) error {
	if err := tx.forgetPosition(t.stream); err != nil {
		return err
	}
	return t.view.fold.Commit(tx)
}

// rebuildAfter is how long a stream that was made anew may wait for the leader to journal it. One that leads without having known the
// old stream has nothing to journal, and nothing that this view knows of the old one matters any more.
const rebuildAfter = time.Minute

// ErrRebuild ends a view whose store has to be built anew. Opening the store again empties it.
var ErrRebuild = errors.New("view: has to be built anew")

func (t *tail) waitForRewind(err error) error {
	if t.foundRecreated() < rebuildAfter {
		return err
	}
	return t.rebuild(err)
}

// foundRecreated notes that the stream is not the one that was read, and tells for how long that is known.
func (t *tail) foundRecreated() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.recreated {
		t.recreated, t.since = true, time.Now()
	}
	return time.Since(t.since)
}

// skip goes on behind a hole that retention made: the last record that was folded cannot be asked for any more.
func (t *tail) skip(reason error) error {
	level := slog.LevelWarn
	if t.stream == t.view.journal {
		level = slog.LevelError
	}
	t.view.log.Log(context.Background(), level, "view: retention took records before they were read", "stream", t.stream, "error", reason)
	err := t.view.store.Update(func(tx *Tx) error {
		if f, ok := t.view.fold.(Forgetter); ok {
			if err := f.Overtaken(tx, t.stream); err != nil {
				return err
			}
		}
		return t.startAnew(tx)
	})
	if err != nil {
		return &fatalError{err}
	}
	return errRewound
}
