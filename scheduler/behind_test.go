package scheduler

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/streams"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// cutOffReplica sends nothing, while the streams' leaders have records.
type cutOffReplica struct{ left chan string }

func (r *cutOffReplica) Read(ctx context.Context, stream string, _ int64, _ func([]wire.Record) error) error {
	<-ctx.Done()
	if errors.Is(context.Cause(ctx), streams.ErrMoved) {
		r.left <- stream
	}
	return nil
}

func (r *cutOffReplica) Fetch(context.Context, string, int64) (wire.Record, error) {
	return wire.Record{}, streams.ErrNotFound
}
func (r *cutOffReplica) Next(context.Context, string, int64) (int64, error) {
	return 0, streams.ErrNotFound
}
func (r *cutOffReplica) First(context.Context, string) (int64, bool, error) { return 0, true, nil }
func (r *cutOffReplica) Last(context.Context, string) (int64, bool, error)  { return 5, true, nil }
func (r *cutOffReplica) LastIsCheap() bool                                  { return true }

// A leader that reads from a replica that is cut off would not see its own barrier before the
// replica is back. It moves to another node.
func TestLeaderLeavesReplicaThatIsCutOff(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s, conn := runner(t, v)
	replica := &cutOffReplica{left: make(chan string, 100)}
	s.view = view.New(s.store, replica, s.fold(), s.log, wire.Journal, wire.EntryStreams...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 2)
	go func() { done <- s.view.Run(ctx) }()
	l := &leadership{s: s, conn: conn, lock: &candidate{}, watchdog: newWatchdog(time.Now, openWithin)}
	l.beside = func(do func(context.Context)) { go do(ctx) }
	l.watchdog.Note(progress{phase: phaseCatchingUp, waits: true})
	go func() { done <- l.watch(ctx, func(err error) { t.Errorf("it resigned: %v", err) }) }()
	left := map[string]bool{}
	for range leaderStreams {
		left[<-replica.left] = true
	}
	require.Len(t, left, len(leaderStreams), "each stream once")
	cancel()
	require.NoError(t, <-done)
	require.NoError(t, <-done)
}
