package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	millrace "github.com/millrace-jobs/millrace/clients/go"
)

// Targets of limited jobs.
const (
	targetLimited     = 3000 // a second
	targetBesidePlain = 0.4
	targetHandover50  = 3 * time.Millisecond
	targetHandover99  = 20 * time.Millisecond
)

// limitedJob are the options of a job that limits count.
var limitedJob = millrace.EnqueueOptions{Queue: "jobs", Limited: true, LimitKey: "one"}

// Limits for jobs that do nothing. With the low one, a job waits for the end of another to be
// reported and read: it measures how long that takes. With the high one, there is always a job that
// can begin: it measures how many are possible.
const (
	lowLimit  = 10
	highLimit = 100
)

// measureLimits enqueues and runs jobs that a limit counts. Beside them are plain jobs of the same
// library, before limits are defined.
func measureLimits(ctx context.Context, b *bench, v *vhost) (err error) {
	s, err := b.serve(ctx, v)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	plain, err := b.endToEnd(ctx, v, nil, plainJob)
	if err != nil {
		return err
	}
	l := &limitedRuns{b, v}
	low, err := l.throughput(ctx, lowLimit)
	if err != nil {
		return err
	}
	high, err := l.throughput(ctx, highLimit)
	if err != nil {
		return err
	}
	n := float64(b.size.jobs)
	name := fmt.Sprintf("%d limited jobs enqueued and done, limit %%d, beside plain ones", b.size.jobs)
	b.table.add(fmt.Sprintf(name, lowLimit), perSecond, noTarget, n/low.Seconds(), n/plain.Seconds())
	b.table.add(fmt.Sprintf(name, highLimit), perSecond, ratioAtLeast(targetBesidePlain), n/high.Seconds(), n/plain.Seconds())
	b.table.addAlone(fmt.Sprintf("limited jobs, limit %d, alone", highLimit), perSecond, atLeast(targetLimited), n/high.Seconds())
	if err := l.measureHandover(ctx); err != nil {
		return err
	}
	return l.measureRate(ctx)
}

// only returns what defines limits, and no others.
func only(ctx context.Context, limits ...millrace.Limit) func(*millrace.Client) error {
	return func(c *millrace.Client) error {
		_, err := c.DefineLimits(ctx, "bench", limits...)
		return err
	}
}

// limitedRuns measures when jobs begin.
type limitedRuns struct {
	*bench
	v *vhost
}

// times are when jobs began and ended.
type times struct {
	mu  sync.Mutex
	all []time.Time
}

func (t *times) add(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, at)
}

func (t *times) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.all)
}

// throughput measures how long limited jobs take that do nothing.
func (l *limitedRuns) throughput(ctx context.Context, limit int) (took time.Duration, err error) {
	define := only(ctx, millrace.Limit{Name: "throughput", Queues: []string{"jobs"}, Concurrency: limit})
	err = l.profile(fmt.Sprint("limits-", limit), func() (err error) {
		took, err = l.endToEnd(ctx, l.v, define, limitedJob)
		return err
	})
	return took, err
}

// measureHandover measures the time from the end of a handler until the next one begins, where a
// limit allows one job.
func (l *limitedRuns) measureHandover(ctx context.Context) error {
	n := l.size.limited.handovers
	var began, ended times
	at, err := l.collect(ctx, n, only(ctx, millrace.Limit{Name: "one", Queues: []string{"jobs"}, Concurrency: 1}), func() {
		began.add(time.Now())
		time.Sleep(time.Millisecond)
		ended.add(time.Now())
	}, &ended)
	if err != nil {
		return err
	}
	gaps := make([]time.Duration, 0, n)
	for i := 1; i < len(at); i++ {
		gaps = append(gaps, began.all[i].Sub(at[i-1]))
	}
	if slices.Min(gaps) < 0 {
		return errors.New("two jobs ran at once, and the limit is one")
	}
	l.table.addAlone("from the end of a job to the next one's start, limit 1, p50", millis, atMost(targetHandover50.Seconds()), quantile(gaps, 0.5).Seconds())
	l.table.addAlone("from the end of a job to the next one's start, limit 1, p99", millis, atMost(targetHandover99.Seconds()), quantile(gaps, 0.99).Seconds())
	return nil
}

// rated is the rate that is measured, in jobs a second.
const rated = 1000

// measureRate counts how many jobs begin in each second under a rate.
func (l *limitedRuns) measureRate(ctx context.Context) error {
	seconds := l.size.limited.rated
	var began times
	limit := millrace.Limit{Name: "rate", Queues: []string{"jobs"}, Rate: &millrace.Rate{Jobs: rated, In: time.Second}}
	at, err := l.collect(ctx, rated*(seconds+2), only(ctx, limit), func() { began.add(time.Now()) }, &began)
	if err != nil {
		return err
	}
	counts := make([]int, seconds+2)
	for _, t := range at {
		if second := int(t.Sub(at[0]) / time.Second); second < len(counts) {
			counts[second]++
		}
	}
	whole := counts[1 : 1+seconds] // the first one has what began late
	l.table.addAlone(fmt.Sprintf("jobs that begin in a second under a rate of %d, fewest", rated), count, atLeast(0.99*rated), float64(slices.Min(whole)))
	l.table.addWorst(fmt.Sprintf("jobs that begin in a second under a rate of %d, most", rated), count, atMost(1.001*rated), float64(slices.Max(whole)))
	return nil
}

// collect runs n limited jobs, and returns the times that their handlers noted.
func (l *limitedRuns) collect(ctx context.Context, n int, define func(*millrace.Client) error, run func(), noted *times) (at []time.Time, err error) {
	r, err := startRunner(ctx, l.bench, l.v, run)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	if err := define(r.client); err != nil {
		return nil, err
	}
	if err := r.enqueue(ctx, n, limitedJob); err != nil {
		return nil, err
	}
	err = wait(ctx, fillWithin, "all limited jobs are done", func() (bool, error) { return noted.len() == n, nil })
	return noted.all, err
}
