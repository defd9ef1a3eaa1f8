package view

import (
	"context"
	"errors"
)

// After makes the view read stream only when first has been folded to its end, or is known to be
// missing.
func (v *View) After(stream, first string) {
	for _, t := range v.streams {
		if t.stream == stream {
			t.first = v.tailOf(first)
		}
	}
}

func (v *View) tailOf(stream string) *tail {
	for _, t := range v.streams {
		if t.stream == stream {
			return t
		}
	}
	return nil
}

var errNotYet = errors.New("view: it is not known yet from where the stream must be read")

// from returns the offset to read the stream from.
func (t *tail) from(ctx context.Context, at position) (int64, error) {
	starter, knows := t.view.fold.(Starter)
	if at.offset != none || !knows || t.first == nil {
		return at.offset, nil
	}
	if err := t.awaitFirst(ctx); err != nil {
		return none, err
	}
	last, err := t.lastOffset(ctx)
	if err != nil {
		return none, err
	}
	from, known := int64(none), false
	err = t.store.Update(func(tx *Tx) (err error) {
		if from, known, err = starter.Start(tx, t.stream, last); err == nil {
			t.view.rewind(tx.rewound)
		}
		return err
	})
	switch {
	case err != nil:
		return none, &fatalError{err}
	case !known:
		return none, errNotYet
	}
	return from, nil
}

// awaitFirst waits until the stream that comes before this one has been read, or is missing.
func (t *tail) awaitFirst(ctx context.Context) error {
	for t.first != nil {
		changed := t.view.Changed()
		if t.first.caughtUp() || t.first.isMissing() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
	return nil
}
