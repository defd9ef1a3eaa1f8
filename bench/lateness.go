package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

const (
	targetP50 = 5 * time.Millisecond
	targetP99 = 25 * time.Millisecond
)

// ahead is how long before the first due time all entries are published.
const ahead = 3 * time.Second

// measureLateness schedules entries at an even pace, and measures how long after its due time a
// plain consumer gets each job. Then it publishes the same jobs at the same pace without Millrace,
// and measures how long after its publish each job arrives.
func measureLateness(ctx context.Context, b *bench, v *vhost) error {
	n := b.jobsInAll()
	late, t, err := b.lateness(ctx, v, n)
	if err != nil {
		return err
	}
	own, err := b.latency(ctx, v, t)
	if err != nil {
		return err
	}
	early := 0
	for _, d := range late {
		if d < 0 {
			early++
		}
	}
	rate := fmt.Sprintf("lateness at %d due a second", b.size.perSecond)
	b.table.add(rate+", p50", millis, atMost(targetP50.Seconds()), quantile(late, 0.5).Seconds(), quantile(own, 0.5).Seconds())
	b.table.add(rate+", p99", millis, atMost(targetP99.Seconds()), quantile(late, 0.99).Seconds(), quantile(own, 0.99).Seconds())
	b.table.addWorst(fmt.Sprintf("jobs that came early, worst of all runs (of %d)", n), count, atMost(0), float64(early))
	b.debug("lateness", late, own)
	return nil
}

// lateness returns how long after its due time each job arrived.
func (b *bench) lateness(ctx context.Context, v *vhost, n int) (late []time.Duration, t template, err error) {
	s, err := b.serve(ctx, v)
	if err != nil {
		return nil, t, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if t, err = warmUp(ctx, v); err != nil {
		return nil, t, err
	}
	late, err = b.late(ctx, v, "lateness", queue, n, func(due func(int) time.Time) error { return schedule(v, n, due) })
	return late, t, err
}

// late has n jobs scheduled at an even pace, and returns how long after its due time each arrived
// in a queue.
func (b *bench) late(ctx context.Context, v *vhost, figure, queue string, n int, schedule func(due func(i int) time.Time) error) (late []time.Duration, err error) {
	c, err := consume(v, queue, n)
	if err != nil {
		return nil, err
	}
	defer c.close()
	from, due := time.Now().Add(ahead).Truncate(time.Microsecond), map[string]time.Time{}
	err = schedule(func(i int) time.Time {
		due[jid(i)] = from.Add(b.pace(i)).Truncate(time.Microsecond)
		return due[jid(i)]
	})
	if err != nil {
		return nil, err
	}
	if !time.Now().Before(from) {
		return nil, fmt.Errorf("publishing %d entries took longer than %v: the machine is too busy", n, ahead)
	}
	err = b.profile(figure, func() error {
		late, err = c.delays(ctx, n, due, b.size.lasting+time.Minute)
		return err
	})
	return late, err
}

// jobsInAll returns the total number of jobs at that pace.
func (b *bench) jobsInAll() int { return b.size.perSecond * int(b.size.lasting/time.Second) }

// pace returns when job i is due, counted from the first one.
func (b *bench) pace(i int) time.Duration {
	return time.Duration(i) * time.Second / time.Duration(b.size.perSecond)
}

// latency returns how long after its publish each job arrived, without Millrace.
func (b *bench) latency(ctx context.Context, v *vhost, t template) ([]time.Duration, error) {
	p, err := newPublisher(v)
	if err != nil {
		return nil, err
	}
	defer p.close()
	return b.underway(ctx, v, queue, func(i int) error { return p.publish(wire.ExchangeFire, queueName, t.message(i)) })
}

// underway publishes messages at an even pace, and returns how long after its publish each arrived
// in a queue.
func (b *bench) underway(ctx context.Context, v *vhost, queue string, publish func(i int) error) ([]time.Duration, error) {
	n := b.jobsInAll()
	c, err := consume(v, queue, n)
	if err != nil {
		return nil, err
	}
	defer c.close()
	at, _, err := b.paced(publish)
	if err != nil {
		return nil, err
	}
	sent := make(map[string]time.Time, n)
	for i, t := range at {
		sent[jid(i)] = t
	}
	return c.delays(ctx, n, sent, time.Minute)
}

// delays takes n jobs, and returns how long after its time in since each arrived. It uses the wall
// clock, because due times do.
func (c *consumer) delays(ctx context.Context, n int, since map[string]time.Time, within time.Duration) ([]time.Duration, error) {
	all, err := c.take(ctx, n, within)
	if err != nil {
		return nil, err
	}
	delays := make([]time.Duration, n)
	for i, a := range all {
		from, known := since[a.jid]
		if !known {
			return nil, fmt.Errorf("job %q came, which is not ours, or twice", a.jid)
		}
		delete(since, a.jid)
		delays[i] = a.at.Round(0).Sub(from.Round(0))
	}
	return delays, nil
}
