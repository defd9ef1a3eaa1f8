package main

import (
	"context"
	"time"

	running "github.com/millrace-jobs/millrace/internal/sidecar"
	"github.com/millrace-jobs/millrace/wire"
)

// sidecar is a Millrace sidecar for a vhost: the real binary, or its parts in this process.
type sidecar interface {
	leads() (bool, error)
	scheduled() (int64, error) // number of pending entries
	stop() error
}

// serve starts a sidecar and waits until it leads.
func (b *bench) serve(ctx context.Context, v *vhost) (s sidecar, err error) {
	if b.cpuProfile != "" {
		s, err = b.startParts(v)
	} else {
		s, err = b.startProcess(v, "")
	}
	if err != nil {
		return nil, err
	}
	return s, b.awaitLead(ctx, s)
}

// serveProcess is serve for measurements that watch the sidecar's process from outside.
func (b *bench) serveProcess(ctx context.Context, v *vhost) (process, error) {
	p, err := b.startProcess(v, "")
	if err != nil {
		return p, err
	}
	return p, b.awaitLead(ctx, p)
}

// awaitLead waits until a sidecar leads, and stops it if it does not.
func (b *bench) awaitLead(ctx context.Context, s sidecar) error {
	if err := wait(ctx, startWithin, "the sidecar leads", s.leads); err != nil {
		_ = s.stop()
		return err
	}
	return nil
}

// start starts a sidecar, and returns how long it took to be ready.
func (b *bench) start(ctx context.Context, v *vhost, dir string) (s process, took time.Duration, err error) {
	begin := time.Now()
	if s, err = b.startProcess(v, dir); err != nil {
		return s, 0, err
	}
	if err := wait(ctx, fillWithin, "the sidecar is ready", func() (bool, error) { return s.Ready(), nil }); err != nil {
		s.Kill()
		return s, 0, err
	}
	return s, time.Since(begin), nil
}

const identity = "bench"

// process is one `millrace serve`.
type process struct{ *running.Process }

// startProcess starts a process, with more flags. If stateDir is not empty, it keeps its state
// there.
func (b *bench) startProcess(v *vhost, stateDir string, more ...string) (process, error) {
	return startNamed(b, v, identity, stateDir, more...)
}

// startNamed starts a process with an identity of its own.
func startNamed(b *bench, v *vhost, identity, stateDir string, more ...string) (process, error) {
	c := running.Config{
		Binary: b.binary, AMQPURL: v.amqpURL, ManagementURL: v.management, StreamURL: v.streamURL, StateDir: stateDir, Identity: identity,
		LogLevel: b.logLevel(), More: more,
	}
	if b.verbose {
		c.Output = b.stderr
	}
	p, err := running.Start(c)
	return process{p}, err
}

func (p process) leads() (bool, error) {
	_, _, err := p.Overview()
	return err == nil && p.Leads(), err
}

func (p process) scheduled() (int64, error) {
	o, _, err := p.Overview()
	return o.Sets["scheduled-jobs"].Total, err
}

func (p process) stop() error { return p.Stop() }

// viewed are the streams that a sidecar's view reads, besides the journal.
var viewed = []string{wire.ScheduledJobs, wire.Retries, wire.DeadJobs, wire.Gated, wire.Heartbeats, wire.JobMetrics, wire.JobEnds}

func (b *bench) logLevel() string {
	if b.verbose {
		return "info"
	}
	return "error"
}
