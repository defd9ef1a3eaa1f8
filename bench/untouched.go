package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	millrace "github.com/millrace-jobs/millrace/clients/go"
)

// What plain jobs may lose because others are limited.
const (
	targetUntouched    = 0.98 // of their rate
	targetUntouchedCPU = 1.02 // of the sidecar's CPU for each
)

// measureUntouched measures what a limit costs jobs that it is not about. The jobs run without a
// limit, with one for another queue, and without one again: how far the two without are apart is how
// exact the figure is. Measure it in seven runs or more.
func measureUntouched(ctx context.Context, b *bench, v *vhost) (err error) {
	s, err := b.serve(ctx, v)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	none, others := only(ctx), only(ctx, millrace.Limit{Name: "elsewhere", Queues: []string{"others"}, Concurrency: 1})
	used := func() (usage, error) { return usageOf(s.(process).Pid()) }
	if b.cpuProfile != "" { // the parts have no process of their own
		used = func() (usage, error) { return usage{}, nil }
	}
	run := func(define func(*millrace.Client) error) (rate, cpu float64, err error) {
		before, err := used()
		if err != nil {
			return 0, 0, err
		}
		took, err := b.endToEnd(ctx, v, define, plainJob)
		if err != nil {
			return 0, 0, err
		}
		pause(ctx, 2*time.Second) // what came is folded
		after, err := used()
		n := float64(b.size.jobs)
		return n / took.Seconds(), (after.cpu - before.cpu).Seconds() / n, err
	}
	if _, _, err := run(none); err != nil {
		return err
	}
	var rate, cpu [3]float64
	defines := []func(*millrace.Client) error{none, others, none}
	for _, i := range rand.Perm(len(defines)) { // so that no place in the order is an advantage
		if rate[i], cpu[i], err = run(defines[i]); err != nil {
			return err
		}
	}
	name := fmt.Sprintf("%d plain jobs enqueued and done", b.size.jobs)
	b.table.add(name+", with a limit for others, beside none", perSecond, ratioAtLeast(targetUntouched), rate[1], rate[0])
	b.table.add(name+", with none, beside none", perSecond, noTarget, rate[2], rate[0])
	b.table.add(name+": CPU of the sidecar for each, with a limit for others, beside none", micros, ratioAtMost(targetUntouchedCPU), cpu[1], cpu[0])
	b.table.add(name+": CPU of the sidecar for each, with none, beside none", micros, noTarget, cpu[2], cpu[0])
	return nil
}
