package garbagetest

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/scheduler"
	"github.com/millrace-jobs/millrace/streams"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

var viewed = []string{wire.ScheduledJobs, wire.Retries, wire.DeadJobs, wire.Gated, wire.Heartbeats, wire.JobMetrics}

// sidecar folds and schedules, in this process.
type sidecar struct {
	*scheduler.Scheduler
	entries *tracker.Entries
	view    *view.View
}

func start(t *testing.T, v *brokertest.Vhost, identity string, native bool) *sidecar {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo})).With("sidecar", identity)
	ctx, cancel := context.WithCancel(context.Background())
	mgmt, err := broker.OpenManagement(ctx, v.ManagementURL(), v.Name, log)
	require.NoError(t, err)
	cfg := streams.Config{AMQPURL: v.AMQPURL(), Log: log}
	if native {
		cfg.StreamURL = v.StreamURL()
	}
	source, err := streams.Open(ctx, cfg)
	require.NoError(t, err)
	store, err := view.Open(view.Config{Identity: v.Name, Schema: tracker.Schema, Log: log})
	require.NoError(t, err)
	entries, err := tracker.NewEntries(store, v.Owner.Name)
	require.NoError(t, err)
	s := &sidecar{entries: entries, view: view.New(store, source, entries, log, wire.Journal, viewed...)}
	s.Scheduler = scheduler.New(scheduler.Config{Broker: broker.Config{AMQPURL: v.AMQPURL()}, Identity: identity, Log: log},
		s.view, store, entries.Reader, mgmt, source)
	var running sync.WaitGroup
	viewing, endView := context.WithCancel(context.Background())
	running.Go(func() {
		if err := s.view.Run(viewing); err != nil {
			t.Errorf("the view of %s ended: %v", identity, err)
		}
	})
	running.Go(func() {
		defer endView() // a leader that stops waits for the view
		if err := s.Run(ctx); err != nil {
			t.Errorf("%s ended: %v", identity, err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
		require.NoError(t, source.Close())
		require.NoError(t, store.Close())
		mgmt.Close()
	})
	return s
}

// leads waits until the sidecar leads, and everything that clients write to exists.
func (s *sidecar) leads(t *testing.T) *sidecar {
	t.Helper()
	brokertest.Eventually(t, func() bool {
		st := s.Status()
		return st.Leader && st.Accepts && len(st.Degraded) == 0 && s.view.CaughtUp(append(viewed, wire.Journal)...)
	}, "the sidecar leads")
	return s
}

// rejected returns the rejected records of a stream that the sidecar keeps.
func (s *sidecar) rejected(t *testing.T, stream string) (all []tracker.Reject) {
	t.Helper()
	require.NoError(t, s.entries.Rejects(stream, func(r tracker.Reject) bool {
		all = append(all, r)
		return true
	}))
	return all
}
