package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/millrace-jobs/millrace/wire"
)

// Limits for a sidecar with a million pending entries after five million fired ones.
const (
	targetRestart       = 3 * time.Second
	targetRebuild       = 2 // times the raw read
	targetMemory        = 200e6
	targetRebuiltMemory = 450e6
	targetIdle          = 0.01
)

// settling is how long the memory of a sidecar is watched after it has read everything.
const settling = 5 * time.Second

// fillWithin limits how long it may take to fill the streams.
const fillWithin = 30 * time.Minute

// million is a broker with many pending entries and more fired ones, and the sidecar that fired
// them.
type million struct {
	*bench
	v   *vhost
	dir string // state directory of the sidecar
}

// measureMillion fills the streams once, and then restarts the sidecar in each run.
func measureMillion(ctx context.Context, b *bench, v *vhost) (err error) {
	m := &million{b, v, filepath.Join(b.dir, "state-"+v.name)}
	if err := m.fill(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(m.dir)) }()
	for range b.runs {
		if err := m.restart(ctx); err != nil {
			return err
		}
		if err := m.rebuild(ctx); err != nil {
			return err
		}
	}
	return nil
}

// fill schedules entries that are fired and consumed, and others for another day.
func (m *million) fill(ctx context.Context) (err error) {
	s, _, err := m.start(ctx, m.v, m.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	if _, err := warmUp(ctx, m.v); err != nil {
		return err
	}
	g, consuming := errgroup.WithContext(ctx)
	g.Go(func() error { return m.consume(consuming) })
	g.Go(m.schedule)
	if err := g.Wait(); err != nil {
		return err
	}
	return wait(ctx, fillWithin, "all entries are in the view, and every fire is confirmed", func() (bool, error) {
		o, ok, err := s.Overview()
		return ok && o.Sets["scheduled-jobs"].Total == int64(m.size.pending) && o.Scheduler.Unconfirmed == 0, err
	})
}

// schedule publishes entries that are due, and entries that are not.
func (m *million) schedule() error {
	past, future := time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	if err := schedule(m.v, m.size.fired, func(int) time.Time { return past }); err != nil {
		return err
	}
	all := m.size.fired + m.size.pending
	return scheduleFrom(m.v, m.size.fired, all, func(i int) time.Time { return future.Add(time.Duration(i*7919%all) * time.Second) })
}

// consume takes the fired jobs.
func (m *million) consume(ctx context.Context) error {
	jobs, err := consume(m.v, queue, 0)
	if err != nil {
		return err
	}
	defer jobs.close()
	for range m.size.fired {
		if _, err := jobs.take(ctx, 1, time.Minute); err != nil {
			return err
		}
	}
	return nil
}

// name returns the name of a figure, with the sizes.
func (m *million) name(what string) string {
	return fmt.Sprintf("%d pending, %d fired: %s", m.size.pending, m.size.fired, what)
}

// restart measures a sidecar that has its state, and its answers to requests.
func (m *million) restart(ctx context.Context) (err error) {
	s, took, err := m.start(ctx, m.v, m.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	if err := wait(ctx, startWithin, "the sidecar leads", s.leads); err != nil {
		return err
	}
	m.table.addAlone(m.name("ready after a restart"), inSeconds, atMost(targetRestart.Seconds()), took.Seconds())
	cpu, memory, err := watch(ctx, s.Pid(), m.size.idle)
	if err != nil {
		return err
	}
	m.table.addAlone(m.name("CPU while nothing happens"), percent, atMost(targetIdle), cpu)
	m.table.addWorst(m.name("memory"), megabytes, atMost(targetMemory), float64(memory))
	return m.ask(ctx, s)
}

// rebuild measures a sidecar without state, and plain clients that read the same streams.
func (m *million) rebuild(ctx context.Context) error {
	s, took, err := m.start(ctx, m.v, "")
	if err != nil {
		return err
	}
	_, memory, err := watch(ctx, s.Pid(), min(m.size.idle, settling))
	if err = errors.Join(err, s.Stop()); err != nil {
		return err
	}
	raw, err := timed(func() error {
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() error { return readStream(ctx, m.v, wire.ScheduledJobs, m.size.fired+m.size.pending) })
		g.Go(func() error { return readStream(ctx, m.v, wire.Journal, m.size.fired) })
		return g.Wait()
	})
	if err != nil {
		return err
	}
	m.table.add(m.name("ready without a state dir"), inSeconds, ratioAtMost(targetRebuild), took.Seconds(), raw.Seconds())
	m.table.addWorst(m.name("memory without a state dir"), megabytes, atMost(targetRebuiltMemory), float64(memory))
	return m.profileRebuild(ctx)
}

// profileRebuild profiles a rebuild in this process, if a profile was requested.
func (m *million) profileRebuild(ctx context.Context) error {
	if m.cpuProfile == "" {
		return nil
	}
	return m.profile("rebuild", func() error {
		p, err := m.startParts(m.v)
		if err != nil {
			return err
		}
		err = wait(ctx, fillWithin, "the view is ready", p.ready)
		return errors.Join(err, p.stop())
	})
}

// anyPending returns the jid of a pending entry.
func (m *million) anyPending() string { return jid(m.size.fired + rand.IntN(m.size.pending)) }
