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

// background gives the way to read the journal, from an offset on until each gives errRead, without holding up what the leader does. One part is
// read after the other: so what is read ahead takes memory once.
func (l *leadership) background(ctx context.Context, group *errgroup.Group) func(from int64, each func(*wire.Record) error) *reading {
	turn := make(chan struct{}, 1)
	return func(from int64, each func(*wire.Record) error) *reading {
		r := newReading()
		group.Go(func() error {
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
			return nil
		})
		return r
	}
}

// fetchWithin bounds how long one large body may take to come.
const fetchWithin = 10 * time.Second

// body fetches a record's body; nil if retention took it.
func (l *leadership) body(ctx context.Context, stream string, offset int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchWithin)
	defer cancel()
	r, err := l.s.records.Fetch(ctx, stream, offset)
	if errors.Is(err, streams.ErrNotFound) {
		// A broker that is slow is not believed: the entry is lost only if its stream begins behind it.
		if first, ok, err := l.s.records.First(ctx, stream); err == nil && ok && first > offset {
			return nil, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return wire.EntryBody(&r)
}
