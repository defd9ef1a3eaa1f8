package view

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/streams"
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
func (r *resume) watch(ctx context.Context, cancel context.CancelCauseFunc, c *comparer) (stop func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for pause.For(ctx, probeAfter) == nil && !r.seen.Load() {
			last, err := c.lastOffset(ctx)
			if err != nil {
				continue
			}
			if err := c.mustReach(r.at, last); err != nil {
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

// gaps finds records that a connected reader did not get: retention has overtaken it, or its
// replica lacks them. The broker continues behind them without notice.
type gaps struct {
	source Source
	stream string
	last   int64 // the last offset that was passed on; none: nothing was
}

// pass calls deliver with the records. It fails where records are missing in front of the next one.
func (g *gaps) pass(ctx context.Context, records []wire.Record, deliver func([]wire.Record) error) error {
	for len(records) > 0 {
		n := g.unbroken(records)
		if n == 0 {
			if err := g.check(ctx, records[0].Offset); err != nil {
				return err
			}
			g.last = records[0].Offset - 1
			continue
		}
		if err := deliver(records[:n]); err != nil {
			return err
		}
		g.last, records = positionOf(&records[n-1]).offset, records[n:]
	}
	return nil
}

// unbroken returns how many records follow the last one without a gap.
func (g *gaps) unbroken(records []wire.Record) int {
	last := g.last
	for i := range records {
		if last != none && records[i].Offset > last+1 {
			return i
		}
		last = max(records[i].Offset, records[i].Through)
	}
	return len(records)
}

// check returns errOutOfRange if records are missing between the last one and next. Some offsets
// have no record: RabbitMQ uses them itself.
func (g *gaps) check(ctx context.Context, next int64) error {
	missing := fmt.Errorf("%w: %d was followed by %d", errOutOfRange, g.last, next)
	switch at, err := g.source.Next(ctx, g.stream, g.last+1); {
	case err != nil:
		return err
	case at < next:
		return fmt.Errorf("%w: %w", errReplica, missing)
	case at > next:
		return missing
	}
	// While the last record is there, retention has not taken what followed it.
	if _, err := g.source.Fetch(ctx, g.stream, g.last); !errors.Is(err, streams.ErrNotFound) {
		return err
	}
	first, ok, err := g.source.First(ctx, g.stream)
	switch {
	case err != nil:
		return err
	case !ok || first > g.last:
		return missing
	}
	return nil
}

// errReplica is returned when the replica that a reader reads from lacks records.
var errReplica = errors.New("the replica lacks records")

// probeAfter is how long the last folded record may take to come again before the view checks the
// stream's end.
const probeAfter = 2 * time.Second
