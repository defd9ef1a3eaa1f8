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
	case errors.Is(err, errMismatch):
		return t.mismatched(ctx, generation, err)
	case errors.Is(err, errTruncated):
		return t.truncated(ctx, generation, err)
	case errors.Is(err, streams.ErrRelabelled): // whatever was folded may have stood elsewhere
		return t.rebuild(err)
	}
	return err
}

// mismatched handles a stream that does not go on where the view had read it. What the reader of another
// stream rolls back meanwhile is no ground for a verdict.
func (t *tail) mismatched(ctx context.Context, generation int, reason error) error {
	if t.isRecreated() { // that is known
		return t.anew(generation, reason)
	}
	rolledBack := t.view.RolledBack()
	f, err := t.judge(ctx)
	switch {
	case err != nil:
		return err
	case t.generation() != generation || t.view.RolledBack() != rolledBack:
		return errRewound
	}
	switch f.verdict {
	case empty:
		t.foundEmpty()
	case anew:
		return t.anew(generation, reason)
	case short:
		return t.shortened(ctx, f, reason)
	case gapped:
		return t.lostEnd(f, reason)
	}
	return reason // it was slow, or nothing can be said yet: it is read again
}

// shortened handles a stream that lost none of the records that are known to be confirmed: the
// view is rolled back by those that it lost, or rebuilt where it cannot be.
func (t *tail) shortened(ctx context.Context, f finding, reason error) error {
	j, rolledBack := t.view.streams[0], t.view.RolledBack()
	if t != j { // a view that is rolled back has forgotten how far it had read the journal, which may have lost more
		of, err := j.judge(ctx)
		switch {
		case err != nil:
			return err
		case t.view.RolledBack() != rolledBack:
			return errRewound
		case of.verdict == gapped:
			return j.lostEnd(of, reason)
		case of.verdict == unclear:
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

// lostEnd handles a journal that lost what is known to be confirmed: the view is rebuilt, for the
// older records say something else without the newer ones, and it must know.
func (t *tail) lostEnd(f finding, reason error) error {
	why := fmt.Errorf("%w: %w", &LostEndError{End: f.end}, reason)
	t.view.log.Error("view: the journal lost records that the broker had confirmed, as a power failure takes them; the view is rebuilt", "error", why)
	return t.rebuild(why)
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

// anew handles a stream that was deleted and made anew.
func (t *tail) anew(generation int, reason error) error {
	journal := t.stream == t.view.journal
	if journal {
		t.view.log.Error("view: the journal was deleted and made again", "error", reason)
	}
	forgotten := journal
	err := t.view.store.Update(func(tx *Tx) error {
		if t.generation() != generation { // the view was rolled back: that holds the store's lock too
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
		return t.startAnew(tx)
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
var ErrRebuild = errors.New("view: has to be rebuilt")

func (t *tail) waitForRewind(generation int, err error) error {
	switch since, known := t.foundRecreated(generation); {
	case !known:
		return errRewound
	case since < rebuildAfter:
		return err
	}
	return t.rebuild(err)
}

// foundRecreated notes that the stream is not the one that was read, and returns for how long that is
// known. known is false where the stream is read again from elsewhere meanwhile.
func (t *tail) foundRecreated(generation int) (since time.Duration, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gen != generation {
		return 0, false
	}
	if !t.recreated {
		t.recreated, t.emptied, t.since = true, false, time.Now()
	}
	return time.Since(t.since), true
}

// truncated handles a reader to which the last record that was folded does not come, but a later one.
// Retention took it; or a replica lacks what the stream still has; or the record is gone with the
// stream's end, and nothing stands at its offset now.
func (t *tail) truncated(ctx context.Context, generation int, reason error) error {
	at, err := readPosition(t.view.store, t.stream)
	if err != nil {
		return &fatalError{err}
	}
	first, ok, err := t.view.source.First(ctx, t.stream)
	switch {
	case err != nil:
		return err
	case !ok || first <= at.offset:
		return t.mismatched(ctx, generation, reason)
	}
	return t.skip(reason)
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
