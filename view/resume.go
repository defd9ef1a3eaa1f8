package view

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/wire"
)

// resume compares the first record of a reader with the last folded one.
type resume struct {
	at   position
	seen atomic.Bool // the last folded record came again, and was the same
}

var errOutOfRange = errors.New("view: retention took records that were not read")

// check returns the new records. It fails if the first record is not the last folded one.
func (r *resume) check(records []wire.Record) ([]wire.Record, error) {
	if r.seen.Load() {
		return records, nil
	}
	first := &records[0]
	sum := checksum(first)
	switch {
	case first.Offset > r.at.offset:
		return nil, fmt.Errorf("%w: asked for %d, got %d", errOutOfRange, r.at.offset, first.Offset)
	case sum != r.at.sum && sum != unreadable && r.at.sum != unreadable:
		return nil, fmt.Errorf("%w: record %d is not the one that was read", errMismatch, first.Offset)
	}
	r.seen.Store(true)
	if max(first.Offset, first.Through) > r.at.offset {
		return records, nil
	}
	return records[1:], nil
}

// watch checks the end of the stream if the record does not come again. A reader gets nothing at
// all from a stream that ends below its offset.
func (r *resume) watch(ctx context.Context, cancel context.CancelCauseFunc, t *tail) (stop func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for pause.For(ctx, probeAfter) == nil && !r.seen.Load() {
			last, err := t.lastOffset(ctx)
			if err != nil {
				continue
			}
			if err := t.mustReach(r.at, last); err != nil {
				cancel(err)
				return
			}
		}
	}()
	return func() {
		cancel(nil)
		<-done
	}
}
