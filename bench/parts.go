package main

import (
	"context"
	"errors"
	"log/slog"
	"runtime/pprof"

	"golang.org/x/sync/errgroup"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/scheduler"
	"github.com/millrace-jobs/millrace/streams"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// parts is a sidecar without its API, in this process, so that a profile shows where its time goes.
type parts struct {
	entries   *tracker.Entries
	view      *view.View
	scheduler *scheduler.Scheduler
	cancel    context.CancelFunc
	ended     chan error
}

// startParts starts the parts. Their goroutines have a label, so that a profile can leave out those
// of the benchmark's own clients.
func (b *bench) startParts(v *vhost) (p *parts, err error) {
	pprof.Do(context.Background(), pprof.Labels("part", "sidecar"), func(context.Context) { p, err = newParts(v, b.log) })
	return p, err
}

func newParts(v *vhost, log *slog.Logger) (*parts, error) {
	store, entries, err := openView(log)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	source, err := streams.Open(ctx, streams.Config{AMQPURL: v.amqpURL, StreamURL: v.streamURL, Log: log})
	if err != nil {
		cancel()
		return nil, errors.Join(err, store.Close())
	}
	mgmt, err := broker.OpenManagement(ctx, v.management, v.name, log)
	if err != nil {
		cancel()
		return nil, errors.Join(err, source.Close(), store.Close())
	}
	seen := view.New(store, source, entries, log, wire.Journal, viewed...)
	for _, stream := range wire.EntryStreams {
		seen.After(stream, wire.Journal)
	}
	cfg := scheduler.Config{Broker: broker.Config{AMQPURL: v.amqpURL}, Identity: identity, Log: log}
	p := &parts{entries: entries, view: seen, cancel: cancel, ended: make(chan error, 1)}
	p.scheduler = scheduler.New(cfg, seen, store, entries.Reader, mgmt, source)
	go func() {
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() error { return seen.Run(ctx) })
		g.Go(func() error { return p.scheduler.Run(ctx) })
		defer mgmt.Close()
		p.ended <- errors.Join(g.Wait(), source.Close(), store.Close())
	}()
	return p, nil
}

// openView opens an empty view.
func openView(log *slog.Logger) (*view.Store, *tracker.Entries, error) {
	store, err := view.OpenTemporary(view.Config{Identity: "bench", Schema: tracker.Schema, Log: log})
	if err != nil {
		return nil, nil, err
	}
	entries, err := tracker.NewEntries(store, "guest")
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	return store, entries, nil
}

func (p *parts) leads() (bool, error) { return p.scheduler.Status().Leader, nil }

// ready reports whether the view has read everything.
func (p *parts) ready() (bool, error) {
	select {
	case <-p.view.Ready():
		return true, nil
	default:
		return false, nil
	}
}

func (p *parts) scheduled() (int64, error) { return p.entries.Total(wire.ScheduledJobs), nil }

func (p *parts) stop() error {
	p.cancel()
	return <-p.ended
}
