package streams

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// readAhead runs pump in a goroutine and delivers the records that it puts, until one of the two
// ends. pump has always ended when readAhead returns.
func readAhead(ctx context.Context, done <-chan struct{}, limit int64, deliver func([]wire.Record) error,
	pump func(context.Context, *ahead) error) error {
	pumping, stop := context.WithCancel(ctx)
	out := newAhead(limit)
	var running sync.WaitGroup
	running.Go(func() { out.end(pump(pumping, out)) })
	running.Go(func() {
		select {
		case <-done:
			stop()
		case <-pumping.Done():
		}
	})
	defer running.Wait()
	defer stop()
	return deliverAll(ctx, done, out, deliver)
}

func deliverAll(ctx context.Context, done <-chan struct{}, out *ahead, deliver func([]wire.Record) error) error {
	for {
		batch, err := out.take(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case isClosed(done):
			return lost("the transport was closed")
		case err != nil:
			return err
		}
		if err := deliver(batch); err != nil {
			return err
		}
		out.delivered(batch)
	}
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func cancelled(stream string) error {
	return fmt.Errorf("streams: %w: %s", ErrCancelled, stream)
}

// within limits the time of a query. If ctx itself ends, within returns its error. A broker that
// does not answer in time counts as lost.
func within(ctx context.Context, limit time.Duration, ask func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := ask(bounded)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case bounded.Err() != nil && err != nil:
		return lost("no answer within %v", limit)
	default:
		return err
	}
}

// silentAt returns the time at which a connection counts as lost if nothing comes until then. The
// broker sends two heartbeats in one heartbeat interval.
func silentAt(heartbeat time.Duration) time.Time { return time.Now().Add(heartbeat + heartbeat/2) }
