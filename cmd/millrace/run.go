package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
	"github.com/millrace-jobs/millrace/internal/heap"
	"github.com/millrace-jobs/millrace/internal/messages"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/scheduler"
	"github.com/millrace-jobs/millrace/tracker/processes"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// run runs a sidecar until ctx ends. It is the only place where parts are wired together. Its
// defers are the order in which they end: the store of the views last, and the API before all that
// it asks.
func run(ctx context.Context, cfg sidecarSettings, log *slog.Logger, listener net.Listener, lost *view.LostEndError) (err error) {
	defer listener.Close()
	st, err := openState(&cfg, log, lost)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.close()) }()
	s := newSidecar(cfg, log, st, auth.IsLocal(listener) && !cfg.BehindProxy)
	defer s.shared.close()
	defer s.messages.close()
	if err := s.mgmt.open(); err != nil {
		return err
	}
	defer s.mgmt.close()
	api, err := s.api(auth.AddrOf(listener))
	if err != nil {
		return err
	}
	ports, err := cfg.open(ctx, api.Metrics(), cfg.HTTPHosts)
	if err != nil {
		return err
	}
	defer closePorts(ports)
	return s.run(ctx, api, listener, ports)
}

// run runs all parts until ctx ends. What the API asks runs until the last request has its answer.
func (s *sidecar) run(ctx context.Context, api *httpapi.Server, listener net.Listener, ports []sidePort) error {
	parts, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	g, parts := errgroup.WithContext(parts)
	serving, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(parts, end)()
	g.Go(func() error { return s.runConnected(parts) })
	g.Go(func() error {
		heap.Pace(parts)
		return nil
	})
	g.Go(func() error {
		(&notifier{unready: api.Unready, leader: s.leader, log: s.log}).run(serving)
		return nil
	})
	for _, port := range ports {
		s.log.Info("millrace: also serving", "what", port.what, "address", port.listener.Addr().String())
		g.Go(func() error { return port.run(parts) })
	}
	g.Go(func() error {
		defer stop()
		s.log.Info("millrace: serving", "api", s.cfg.apiAddress(listener), "auth", s.cfg.Auth,
			"broker", broker.MaskURL(s.cfg.AMQPURL), "version", versionText())
		if s.cfg.Auth == auth.ModeNone {
			s.warnOpen()
		}
		return api.Run(serving, listener)
	})
	err := g.Wait()
	s.log.Info("millrace: stopped") // the caller reports the error
	return err
}

// runConnected connects, and then runs the parts that need the broker.
func (s *sidecar) runConnected(ctx context.Context) error {
	first, err := s.connect(ctx)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil
	default:
		return err
	}
	// The view ends last: a leader that stops waits until the view has read its last journal
	// record.
	viewing, endView := context.WithCancel(context.WithoutCancel(ctx))
	defer endView()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		s.awaitTopology(ctx)
		if err := s.useStreams(ctx, first); err != nil || ctx.Err() != nil {
			return err
		}
		return s.view.Run(viewing)
	})
	g.Go(func() error { return s.asker.Run(ctx) })
	g.Go(func() error { return s.watchPermissions(ctx) })
	if to, _ := s.cfg.deliverTo(); to != nil { // it was checked
		g.Go(func() error {
			s.awaitTopology(ctx)
			return messages.Run(ctx, messages.Config{URL: s.cfg.AMQPURL, User: s.cfg.user(), Conn: s.messages.get, To: to, Log: s.log,
				Own: func(user string) bool { return s.entries.Trusts(&wire.Record{UserID: user}) }})
		})
	}
	g.Go(func() error {
		defer endView()
		return s.schedule(ctx, first.mgmt)
	})
	return g.Wait()
}

// awaitTopology waits until the scheduler has declared the streams.
func (s *sidecar) awaitTopology(ctx context.Context) {
	for s.leader().Phase == phaseConnecting && ctx.Err() == nil {
		_ = pause.For(ctx, 20*time.Millisecond)
	}
}

// schedule runs the scheduler. A scheduler without the management API is replaced when that
// answers.
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
		DeadMax: s.cfg.DeadMax, DeadAge: s.cfg.deadAge(), Rollups: s.metrics, Slots: s.slots, Moved: s.source.Move, Log: s.log,
	}
	s.watchQueues(*mgmt)
	scheduling := scheduler.New(cfg, s.view, s.store, s.entries.Reader, *mgmt, s.source)
	s.scheduler.Store(scheduling)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	if *mgmt == nil {
		g.Go(func() error {
			defer cancel()
			*mgmt = s.mgmt.awaitLate(ctx)
			return nil
		})
	} else {
		defer (*mgmt).Close()
	}
	g.Go(func() error { return scheduling.Run(ctx) })
	return g.Wait()
}

func (s *sidecar) api(addr string) (*httpapi.Server, error) {
	cfg := httpapi.Config{
		Addr:    addr,
		Version: versionText(),
		VHost:   s.cfg.vhost(),
		DeadMax: cmp.Or(s.cfg.DeadMax, scheduler.DefaultDeadMax),
		DeadAge: cmp.Or(s.cfg.deadAge(), scheduler.DefaultDeadAge),
		RunAge:  s.cfg.timelineAge(),
		Entries: s.entries.Reader,
		View:    s.view,

		Processes: s.workers,
		Metrics:   s.metrics,
		Queues:    s.queues,
		Feed:      s.feed,
		QueueSLO:  s.cfg.queueSLO,
		OnBroker:  s.onBroker,
		OnQueues:  s.shared.do,

		PauseQueue: s.pauseQueue,

		Leader:   s.leader,
		Ask:      s.asker.Ask,
		Publish:  s.asker.Publish,
		Fetch:    s.source.Fetch,
		Broker:   s.brokerState,
		HasUsers: s.mgmt.hasUsers,
		Identify: s.mgmt.identify,
		Log:      s.log,
	}
	if err := s.cfg.secure(&cfg, s.log); err != nil {
		return nil, usage.Fault(err)
	}
	return httpapi.New(cfg), nil
}

// slots returns how many jobs live workers run at once, by queue, as far as they say.
func (s *sidecar) slots() map[string]int64 {
	all := map[string]int64{}
	for queue, serving := range processes.Serving(s.workers.List()) {
		if serving.Processes > 0 {
			all[queue] = serving.Slots
		}
	}
	return all
}
