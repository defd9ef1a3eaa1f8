package scheduler_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

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

// sidecar runs everything that folds and schedules, in this process.
type sidecar struct {
	*scheduler.Scheduler
	entries *tracker.Entries
	view    *view.View
	asker   *scheduler.Asker
	stop    func()
}

type options struct {
	identity string
	amqpURL  string // another route to the broker
	dir      string
	onGap    string
	native   bool
	max      int
	deadMax  int
	log      io.Writer
}

func start(t *testing.T, v *brokertest.Vhost, o options) *sidecar {
	t.Helper()
	if o.log == nil {
		o.log = io.Discard
	}
	log := slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), o.log), &slog.HandlerOptions{Level: slog.LevelInfo})).With("sidecar", o.identity)
	if o.amqpURL == "" {
		o.amqpURL = v.AMQPURL()
	}
	ctx, cancel := context.WithCancel(context.Background())
	mgmt, err := broker.OpenManagement(ctx, v.ManagementURL(), v.Name, log)
	require.NoError(t, err)
	cfg := streams.Config{AMQPURL: o.amqpURL, Log: log}
	if o.native {
		cfg.StreamURL = v.StreamURL()
	}
	source, err := streams.Open(ctx, cfg)
	require.NoError(t, err)
	store, err := view.Open(view.Config{Dir: o.dir, Identity: v.Name, Schema: tracker.Schema, Log: log})
	require.NoError(t, err)
	entries, err := tracker.NewEntries(store, v.Owner.Name)
	require.NoError(t, err)
	s := &sidecar{entries: entries}
	s.view = view.New(store, source, entries, log, wire.Journal, wire.ScheduledJobs, wire.Retries, wire.DeadJobs, wire.Gated, wire.JobEnds, wire.Heartbeats, wire.JobMetrics)
	bc := broker.Config{AMQPURL: o.amqpURL}
	s.Scheduler = scheduler.New(scheduler.Config{Broker: bc, Identity: o.identity, OnGap: o.onGap, MaxQueues: o.max, DeadMax: o.deadMax, Log: log}, s.view, store, entries.Reader, mgmt, source)
	s.asker = scheduler.NewAsker(bc)
	viewing, endView := context.WithCancel(context.Background())
	done := make(chan error, 3)
	go func() { done <- s.view.Run(viewing) }()
	go func() {
		defer endView() // a leader that stops waits for the view
		done <- s.Run(ctx)
	}()
	go func() { done <- s.asker.Run(ctx) }()
	stopped := false
	s.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		for range 3 {
			require.NoError(t, <-done)
		}
		require.NoError(t, source.Close())
		require.NoError(t, store.Close())
		mgmt.Close()
	}
	t.Cleanup(s.stop)
	return s
}

func (s *sidecar) leads(t *testing.T) *sidecar {
	t.Helper()
	brokertest.Eventually(t, func() bool { return s.Status().Leader && s.asker.Led() }, "the sidecar leads")
	return s
}

// isRouted waits until a probe of the epoch has arrived, and with it what was fired before.
func (s *sidecar) isRouted(t *testing.T) {
	t.Helper()
	brokertest.Eventually(t, func() bool {
		st := s.entries.State()
		return st.RoutedTo >= st.Epoch
	}, "it is known that what was fired arrived")
}

func (s *sidecar) ask(t *testing.T, c wire.Command) wire.Reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return s.asker.Ask(ctx, c)
}
