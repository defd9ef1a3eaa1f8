package view

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/millrace-jobs/millrace/streams"
)

// ended handles the end of a reader, in particular if the stream is not the one that was read
// before, or not all of it.
func (t *tail) ended(ctx context.Context, generation int, err error) error {
	switch {
	case t.generation() != generation:
		return errRewound
	case errors.Is(err, errMismatch):
		return t.mismatched(ctx, generation, err)
	case errors.Is(err, errOutOfRange):
		return t.outOfRange(ctx, generation, err)
	// All folded records may have had other offsets.
	case errors.Is(err, streams.ErrRelabelled):
		return t.rebuild(err)
	}
	return err
}

// mismatched handles a stream that does not continue where the view had read it. A verdict is void
// if another stream's reader has rolled the view back meanwhile.
func (t *tail) mismatched(ctx context.Context, generation int, reason error) error {
	if t.isRecreated() { // this is known already
		return t.replaced(generation, reason)
	}
	rolledBack := t.view.RolledBack()
	f, err := t.identify(ctx)
	switch {
	case err != nil:
		return err
	case t.generation() != generation || t.view.RolledBack() != rolledBack:
		return errRewound
	}
	switch f.verdict {
	case streamEmpty:
		t.foundEmpty()
		t.view.announce()
	case streamReplaced:
		return t.replaced(generation, reason)
	case streamTruncated:
		return t.truncated(ctx, f, reason)
	case streamGapped:
		return t.lostEnd(f, reason)
	}
	return reason // the reader was slow, or it is too soon to decide: read again
}

// truncated handles a stream that lost records, but none that is known to be confirmed. It rolls
// the view back by these records, or rebuilds it if that is impossible.
func (t *tail) truncated(ctx context.Context, f finding, reason error) error {
	j, rolledBack := t.view.streams[0], t.view.RolledBack()
	// A view that is rolled back has forgotten how far it had read the journal, which may have lost
	// more. So identify the journal first.
	if t != j {
		of, err := j.identify(ctx)
		switch {
		case err != nil:
			return err
		case t.view.RolledBack() != rolledBack:
			return errRewound
		case of.verdict == streamGapped:
			return j.lostEnd(of, reason)
		case of.verdict == streamUnclear:
			return reason
		}
	}
	switch done, err := t.rollBack(ctx, reason); {
	case err != nil:
		return err
	case done:
		return errRewound
	case f.below && t.endsBelow(true) < patience:
		return reason
	}
	t.view.log.Warn("view: a stream lost its newest records, and the view cannot be rolled back so far: it is rebuilt", "stream", t.stream, "error", reason)
	return t.rebuild(reason)
}

// lostEnd handles a journal that lost records that are known to be confirmed. It rebuilds the view,
// because the older records mean something else without the newer ones. The new view must know
// about the loss.
func (t *tail) lostEnd(f finding, reason error) error {
	why := fmt.Errorf("%w: %w", &LostEndError{End: f.end}, reason)
	t.view.log.Error("view: the journal lost records that the broker had confirmed, as a power failure takes them; the view is rebuilt", "error", why)
	return t.rebuild(why)
}

func (t *tail) rebuild(why error) error {
	if err := t.store.MarkForRebuild(); err != nil {
		return &fatalError{err}
	}
	return &fatalError{fmt.Errorf("%w: %w", ErrRebuild, why)}
}

// replaced handles a stream that was deleted and created again.
func (t *tail) replaced(generation int, reason error) error {
	journal := t.stream == t.view.journal
	if journal {
		t.view.log.Error("view: the journal was deleted and made again", "error", reason)
	}
	forgotten := journal
	err := t.store.Update(func(tx *Tx) error {
		// The view was rolled back, which also holds the store's lock.
		if t.generation() != generation {
			return errRewound
		}
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
		return t.startOver(tx)
	})
	switch {
	case errors.Is(err, errRewound):
		return err
	case errors.Is(err, ErrRebuild):
		return t.rebuild(reason)
	case err != nil:
		return &fatalError{err}
	case forgotten:
		return errRewound
	}
	return t.waitForRewind(generation, reason)
}

func (t *tail) startOver(tx *Tx) error {
	if err := tx.forgetPosition(t.stream); err != nil {
		return err
	}
	return t.view.fold.Commit(tx)
}

// rebuildAfter is how long a new stream may wait for the leader to journal it. A leader that never
// knew the old stream has nothing to journal. Then nothing that this view knows about the old
// stream matters any more, and the view is rebuilt.
const rebuildAfter = time.Minute

func (t *tail) waitForRewind(generation int, err error) error {
	switch since, known := t.foundRecreated(generation); {
	case !known:
		return errRewound
	case since < rebuildAfter:
		return err
	}
	return t.rebuild(err)
}

// outOfRange handles a reader that gets a later record instead of the last folded one. There are
// three causes: retention deleted that record; a replica lacks it, but the stream has it; or the
// stream lost its end, and now has a hole at the offset.
func (t *tail) outOfRange(ctx context.Context, generation int, reason error) error {
	at, err := readPosition(t.store, t.stream)
	if err != nil {
		return &fatalError{err}
	}
	first, ok, err := t.source.First(ctx, t.stream)
	switch {
	case err != nil:
		return err
	case !ok || first <= at.offset:
		return t.mismatched(ctx, generation, reason)
	}
	return t.skip(reason)
}

// skip continues behind a hole that retention made. The last folded record cannot be compared any
// more.
func (t *tail) skip(reason error) error {
	level := slog.LevelWarn
	if t.stream == t.view.journal {
		level = slog.LevelError
	}
	t.view.log.Log(context.Background(), level, "view: retention took records before they were read", "stream", t.stream, "error", reason)
	err := t.store.Update(func(tx *Tx) error {
		if f, ok := t.view.fold.(Forgetter); ok {
			if err := f.Overtaken(tx, t.stream); err != nil {
				return err
			}
		}
		return t.startOver(tx)
	})
	if err != nil {
		return &fatalError{err}
	}
	return errRewound
}
