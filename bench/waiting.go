package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	millrace "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/wire"
)

// Targets with many jobs that wait for the slots of many keys.
const (
	targetWaitingMemory = 250e6
	targetTakeover      = 4 * time.Second
)

// perLimitedKey is how many jobs each key has.
const perLimitedKey = 10

// measureWaiting has many jobs wait for the slots of their keys, each of which has one. It measures
// the leader's memory, how fast workers get through the jobs, and how long another sidecar takes to
// lead after the leader was killed. Then workers claim the jobs that the first leader has fired.
func measureWaiting(ctx context.Context, b *bench, v *vhost) (err error) {
	dirs := filepath.Join(b.dir, "state-"+v.name)
	defer func() { err = errors.Join(err, os.RemoveAll(dirs)) }()
	leader, err := b.startProcess(v, filepath.Join(dirs, "leader"))
	if err != nil {
		return err
	}
	defer leader.Kill()
	if err := b.awaitLead(ctx, leader); err != nil {
		return err
	}
	w := &waiting{b, v}
	if err := w.fill(ctx, leader); err != nil {
		return err
	}
	pause(ctx, settling)
	used, err := usageOf(leader.Pid())
	if err != nil {
		return err
	}
	b.table.addWorst(w.name("memory while they come in"), megabytes, noTarget, float64(used.peak))
	b.table.addWorst(w.name("memory, "+settling.String()+" later"), megabytes, atMost(targetWaitingMemory), float64(used.memory))
	if err := w.run(ctx, w.name("jobs done"), atLeast(targetLimited)); err != nil {
		return err
	}
	standby, err := startNamed(b, v, "standby", filepath.Join(dirs, "standby"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, standby.Stop()) }()
	if err := wait(ctx, fillWithin, "the standby is ready", func() (bool, error) { return standby.Ready(), nil }); err != nil {
		return err
	}
	leader.Kill()
	killed := time.Now()
	if err := wait(ctx, fillWithin, "the standby leads", standby.leads); err != nil {
		return err
	}
	b.table.addWorst(w.name("takeover"), inSeconds, atMost(targetTakeover.Seconds()), time.Since(killed).Seconds())
	return w.run(ctx, w.name("jobs claimed and done, after it"), noTarget)
}

// waiting measures jobs that wait.
type waiting struct {
	*bench
	v *vhost
}

// name returns the name of a figure, with the sizes.
func (w *waiting) name(what string) string {
	n := w.size.limited.waiting
	return fmt.Sprintf("%d jobs waiting over %d keys, limit 1 each: %s", n, n/perLimitedKey, what)
}

// fill publishes limited jobs, and waits until each key has one in the queue.
func (w *waiting) fill(ctx context.Context, leader process) error {
	keys := w.size.limited.waiting / perLimitedKey
	client, err := millrace.NewClient(millrace.ClientConfig{URL: w.v.amqpURL})
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := client.DefineLimits(ctx, "bench", millrace.Limit{Name: "each", Per: []millrace.Part{millrace.PerKey}, Concurrency: 1}); err != nil {
		return err
	}
	p, err := newPublisher(w.v)
	if err != nil {
		return err
	}
	defer p.close()
	for i := range w.size.limited.waiting {
		m := noop(i, jid(i))
		m.Body = fmt.Appendf(nil, `{"gate":{"key":"customer-%d"},%s`, i%keys, m.Body[1:])
		if err := p.publish("", wire.Gated, m); err != nil {
			return err
		}
	}
	if err := p.drain(); err != nil {
		return err
	}
	return wait(ctx, fillWithin, "all jobs wait but for one of each key", func() (bool, error) {
		o, ok, err := leader.Overview()
		return ok && o.Sets["gated-jobs"].Total == int64(w.size.limited.waiting-keys) && o.Scheduler.Unconfirmed == 0, err
	})
}

// run has workers run waiting jobs, and measures how many they do in a second.
func (w *waiting) run(ctx context.Context, name string, goal target) (err error) {
	n := int64(min(w.size.limited.waiting, w.size.jobs) / 4)
	var done atomic.Int64
	r, err := startRunner(ctx, w.bench, w.v, func() { done.Add(1) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	took, err := timed(func() error {
		return wait(ctx, fillWithin, "jobs are done", func() (bool, error) { return done.Load() >= n, nil })
	})
	if err != nil {
		return err
	}
	w.table.addAlone(name, perSecond, goal, float64(n)/took.Seconds())
	return nil
}

// measurePeriodic defines periodic jobs that are all due at one instant, and measures how long
// after it a plain consumer has the last job.
func measurePeriodic(ctx context.Context, b *bench, v *vhost) (err error) {
	n := b.size.limited.periodic
	s, err := b.serve(ctx, v)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if _, err := warmUp(ctx, v); err != nil {
		return err
	}
	client, err := millrace.NewClient(millrace.ClientConfig{URL: v.amqpURL})
	if err != nil {
		return err
	}
	defer client.Close()
	tick := time.Now().Truncate(time.Minute).Add(time.Minute)
	if time.Until(tick) < definedAhead {
		tick = tick.Add(time.Minute)
	}
	jobs := make([]millrace.PeriodicJob, n)
	for i := range jobs {
		jobs[i] = millrace.PeriodicJob{Name: fmt.Sprint("bench-", i), Cron: fmt.Sprintf("%d * * * *", tick.UTC().Minute()),
			Args: millrace.Args("Tick"), Options: &millrace.EnqueueOptions{Queue: queueName}}
	}
	for i := 0; i < n; i += definedAtOnce {
		if _, err := client.Define(ctx, fmt.Sprint("bench-", i), jobs[i:min(i+definedAtOnce, n)]...); err != nil {
			return err
		}
	}
	if !time.Now().Before(tick) {
		return fmt.Errorf("defining %d periodic jobs took longer than %v: the machine is too busy", n, definedAhead)
	}
	last, again, err := ticked(ctx, v, n, tick)
	if err != nil {
		return err
	}
	b.table.addAlone(fmt.Sprintf("%d periodic jobs due at one instant: the last is in its queue after", n), inSeconds, atMost(targetTicks.Seconds()), last.Seconds())
	b.table.addWorst(fmt.Sprintf("%d periodic jobs due at one instant: jobs that came twice", n), count, atMost(0), float64(again))
	return nil
}

const (
	targetTicks   = 3 * time.Second
	definedAhead  = 30 * time.Second // how long it may take to define them
	definedAtOnce = 1000
)

// ticked consumes the jobs of one tick. It returns how long after it the last one came, and how
// many came twice.
func ticked(ctx context.Context, v *vhost, n int, tick time.Time) (last time.Duration, again int, err error) {
	c, err := consume(v, queue, n)
	if err != nil {
		return 0, 0, err
	}
	defer c.close()
	all, err := c.take(ctx, n, time.Until(tick)+time.Minute)
	if err != nil {
		return 0, 0, err
	}
	seen := map[string]bool{}
	for _, a := range all {
		if seen[a.jid] {
			again++
		}
		seen[a.jid] = true
	}
	pause(ctx, time.Second)
	return all[n-1].at.Round(0).Sub(tick), again + len(c.arrivals), nil
}
