package scheduler

import (
	"context"
	"errors"
	"math"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/millrace-jobs/millrace/streams"
	"github.com/millrace-jobs/millrace/wire"
)

// background runs things beside the loop, until the epoch ends.
type background struct {
	beside func(do func(ctx context.Context))
	// readLater reads the journal from an offset on, until each returns errRead.
	readLater func(from int64, each func(*wire.Record) error) *reading
}

// newBackground returns the background of an epoch. One part of the journal is read after the
// other, so that what is read ahead takes memory once.
func (l *leadership) newBackground(ctx context.Context, group *errgroup.Group) background {
	beside := func(do func(context.Context)) {
		group.Go(func() error {
			do(ctx)
			return nil
		})
	}
	turn := make(chan struct{}, 1)
	readLater := func(from int64, each func(*wire.Record) error) *reading {
		r := newReading()
		beside(func(ctx context.Context) {
			select {
			case turn <- struct{}{}:
				err := l.readJournal(ctx, from, math.MaxInt64, each)
				<-turn
				if err != nil && ctx.Err() == nil {
					l.s.log.Warn("scheduler: an undo of an operation waits", "error", err)
				}
				r.end(err)
			case <-ctx.Done():
				r.end(ctx.Err())
			}
		})
		return r
	}
	return background{beside, readLater}
}

// fetchWithin is how long one large body may take to come.
const fetchWithin = 10 * time.Second

// body returns the body of a record, nil if retention removed it.
func (l *leadership) body(ctx context.Context, stream string, offset int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchWithin)
	defer cancel()
	r, err := l.s.records.Fetch(ctx, stream, offset)
	if errors.Is(err, streams.ErrNotFound) {
		// A slow broker proves nothing: the record is gone only if its stream begins behind it.
		if first, ok, err := l.s.records.First(ctx, stream); err == nil && ok && first > offset {
			return nil, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return wire.EntryBody(&r)
}
