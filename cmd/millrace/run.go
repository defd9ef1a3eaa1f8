package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
	"github.com/millrace-jobs/millrace/internal/hosts"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/scheduler"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/tracker/feed"
	"github.com/millrace-jobs/millrace/tracker/metrics"
	"github.com/millrace-jobs/millrace/tracker/processes"
	"github.com/millrace-jobs/millrace/tracker/queues"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// viewed are the streams that the view is made of, beside the journal.
var viewed = []string{wire.ScheduledJobs, wire.Retries, wire.DeadJobs, wire.Gated, wire.Heartbeats, wire.JobMetrics, wire.Rollups}

// sidecar is the parts that outlive a connection.
type sidecar struct {
	cfg     sidecarSettings
	log     *slog.Logger
	store   *view.Store
	entries *tracker.Entries
	workers *processes.Processes
	metrics *metrics.Metrics
	queues  *queues.Watch
	view    *view.View
	feed    *feed.Feed
	source  *source
	asker   *scheduler.Asker
	lent    *lender
	hosts   *hosts.Order                      // of AMQP
	mgmt    atomic.Pointer[broker.Management] // nil where there is none
	users   *broker.Management                // asks the management API who users are
	has     atomic.Int32                      // an httpapi.HasUsers: whether there is one
	foreign atomic.Bool                       // what answers in its place is another broker's
	local   bool                              // only this machine can connect to the API

	scheduler atomic.Pointer[scheduler.Scheduler] // nil until the broker was reached
}

// run is the sidecar, until ctx ends: the only place where parts are wired together. The order in which they end is that of the defers, from
// the last to the first: the view's store goes last, and the API before all that it asks.
func run(ctx context.Context, cfg sidecarSettings, log *slog.Logger, listener net.Listener, short *view.LostEndError) (err error) {
	defer listener.Close()
	store, err := cfg.openView(log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	trusted := append([]string{cfg.user()}, cfg.TrustedUsers...)
	entries, err := tracker.NewEntries(store, trusted...)
	if err != nil {
		return err
	}
	workers, err := processes.Open(store, time.Now)
	if err != nil {
		return err
	}
	sums, err := metrics.New(store, time.Now, trusted...)
	if err != nil {
		return err
	}
	kept, err := cfg.timelines()
	if err != nil {
		return err
	}
	sums.Keep(kept)
	entries.Add(workers)
	entries.Add(sums)
	if short != nil {
		if err := entries.LostEnd(short.End); err != nil {
			return err
		}
	}
	happens := feed.New()
	entries.Tell(happens)
	source := &source{}
	defer source.Close()

	s := &sidecar{cfg: cfg, log: log, store: store, entries: entries, workers: workers, metrics: sums, queues: queues.New(nil), feed: happens, source: source, hosts: &hosts.Order{},
		local: onLoopback(listener) && !cfg.BehindProxy}
	s.lent = &lender{dial: func(ctx context.Context) (*broker.Conn, error) { return broker.Dial(ctx, s.brokerConfig("leases")) }}
	defer s.lent.close()
	s.view = view.New(store, source, entries, log, wire.Journal, viewed...)
	s.view.After(wire.JobMetrics, wire.Rollups)
	for _, stream := range wire.EntryStreams { // what the journal says was fired need not be stored first
		s.view.After(stream, wire.Journal)
	}
	s.asker = scheduler.NewAsker(s.brokerConfig("asks"))
	if s.users, err = newManagement(&cfg.brokerSettings, s.hosts, log); err != nil {
		return err
	}
	defer s.users.Close()
	api, err := s.api(listener.Addr().String())
	if err != nil {
		return err
	}

	ports, err := cfg.open(ctx, api.Metrics(), cfg.HTTPHosts)
	if err != nil {
		return err
	}
	defer closePorts(ports)

	parts, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	g, parts := errgroup.WithContext(parts)
	g.Go(func() error { return s.connected(parts) })
	for _, port := range ports {
		log.Info("millrace: also serving", "what", port.what, "address", port.listener.Addr().String())
		g.Go(func() error { return port.run(parts) })
	}
	g.Go(func() error {
		defer stop() // what the API asks goes on until the last request has its answer
		serving, end := context.WithCancel(ctx)
		defer end()
		defer context.AfterFunc(parts, end)()
		log.Info("millrace: serving", "api", s.cfg.scheme()+"://"+listener.Addr().String()+s.cfg.HTTPPrefix, "auth", s.cfg.Auth, "broker", broker.MaskURL(cfg.AMQPURL), "version", versionText())
		if s.cfg.Auth == httpapi.AuthNone {
			s.warnOpen()
		}
		return api.Run(serving, listener)
	})
	err = g.Wait()
	log.Info("millrace: stopped") // an error is the caller's to say
	return err
}

// connected runs what needs the broker, once that has been reached.
func (s *sidecar) connected(ctx context.Context) error {
	found, err := s.reach(ctx)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil
	default:
		return err
	}
	// The view ends last: a leader that stops waits until it has read what it journaled at last.
	viewing, endView := context.WithCancel(context.WithoutCancel(ctx))
	defer endView()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		s.awaitTopology(ctx)
		if err := s.useStreams(ctx, found); err != nil || ctx.Err() != nil {
			return err
		}
		return s.view.Run(viewing)
	})
	g.Go(func() error { return s.asker.Run(ctx) })
	g.Go(func() error { return s.watchRights(ctx) })
	g.Go(func() error {
		defer endView()
		return s.schedule(ctx, found.mgmt)
	})
	return g.Wait()
}

// awaitTopology waits until the scheduler has made the streams that are to be read.
func (s *sidecar) awaitTopology(ctx context.Context) {
	for s.leader().Phase == phaseConnecting && ctx.Err() == nil {
		_ = pause.For(ctx, 20*time.Millisecond)
	}
}

// schedule runs the scheduler. One that began without the management API begins anew when that answers.
func (s *sidecar) schedule(ctx context.Context, mgmt *broker.Management) error {
	for ctx.Err() == nil {
		if err := s.scheduleWith(ctx, &mgmt); err != nil {
			return err
		}
	}
	return nil
}

func (s *sidecar) scheduleWith(ctx context.Context, mgmt **broker.Management) error {
	cfg := scheduler.Config{
		Broker: s.brokerConfig("leads"), Identity: s.cfg.identity(), OnGap: s.cfg.OnGap, MaxQueues: s.cfg.MaxQueues, SingleNode: s.cfg.SingleNode,
		DeadMax: s.cfg.DeadMax, DeadAge: s.cfg.deadAge(), Rollups: s.metrics, Moved: s.source.Move, Log: s.log,
	}
	s.watchQueues(*mgmt)
	scheduling := scheduler.New(cfg, s.view, s.store, s.entries, *mgmt, s.source)
	s.scheduler.Store(scheduling)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	if *mgmt == nil {
		g.Go(func() error {
			defer cancel()
			*mgmt = s.awaitManagement(ctx)
			return nil
		})
	} else {
		defer (*mgmt).Close()
	}
	g.Go(func() error { return scheduling.Run(ctx) })
	return g.Wait()
}

func (s *sidecar) brokerConfig(does string) broker.Config {
	return broker.Config{AMQPURL: s.cfg.AMQPURL, Hosts: s.hosts, Name: connectionName + " " + does,
		QueueType: broker.QueueType(s.cfg.QueueType), Log: s.log}
}

// connectionName begins the names of all connections of a sidecar, so that doctor can tell them from its clients'.
const connectionName = "millrace"

func (s *sidecar) api(addr string) (*httpapi.Server, error) {
	cfg := httpapi.Config{
		Addr:    addr,
		Version: versionText(),
		VHost:   s.cfg.vhost(),
		DeadMax: cmp.Or(s.cfg.DeadMax, scheduler.DefaultDeadMax),
		DeadAge: cmp.Or(s.cfg.deadAge(), scheduler.DefaultDeadAge),
		RunAge:  s.cfg.timelineAge(),
		Entries: s.entries,
		View:    s.view,

		Processes: s.workers,
		Metrics:   s.metrics,
		Queues:    s.queues,
		Feed:      s.feed,
		QueueSLO:  s.cfg.queueSLO,
		OnBroker:  s.onBroker,
		OnQueues:  s.lent.lend,

		PauseQueue: s.pauseQueue,

		Leader:   s.leader,
		Ask:      s.asker.Ask,
		Publish:  s.asker.Publish,
		Fetch:    s.source.Fetch,
		Broker:   s.brokerState,
		HasUsers: s.hasUsers,
		Identify: s.identify,
		Log:      s.log,
	}
	if err := s.cfg.secure(&cfg, s.log); err != nil {
		return nil, usage.Fault(err)
	}
	return httpapi.New(cfg), nil
}

// leader is this sidecar's part in leadership.
func (s *sidecar) leader() scheduler.Status {
	if scheduling := s.scheduler.Load(); scheduling != nil {
		return scheduling.Status()
	}
	return scheduler.Status{Epoch: -1, Phase: phaseConnecting}
}

const (
	phaseConnecting = "connecting" // what the scheduler calls the time until it has a connection and the topology stands
	phaseLeading    = "leading"
)

func (s *sidecar) brokerState() (connected bool, product, version string) {
	product, version = s.asker.Broker()
	return s.asker.Connected(), product, version
}
