package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// targetCost is the CPU time that the sidecar may need for a scheduled job, in seconds.
const targetCost = 35e-6

// measureCost schedules entries for one instant, and measures the CPU time of the sidecar's process
// until they are in its view, and from then on until they are settled. It does not depend on how
// busy the machine is, as a rate does.
func measureCost(ctx context.Context, b *bench, v *vhost) (err error) {
	c := cost{bench: b, v: v}
	if b.cpuProfile != "" { // the parts have no process of their own
		return b.profile("cost", func() error { return c.measure(ctx, func() (usage, error) { return usage{}, nil }) })
	}
	return c.measure(ctx, func() (usage, error) { return usageOf(c.sidecar.(process).Pid()) })
}

// cost is one measurement.
type cost struct {
	*bench
	v       *vhost
	sidecar sidecar
}

func (c *cost) measure(ctx context.Context, used func() (usage, error)) (err error) {
	if c.sidecar, err = c.serve(ctx, c.v); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.sidecar.stop()) }()
	if _, err := warmUp(ctx, c.v); err != nil {
		return err
	}
	begin, err := used()
	if err != nil {
		return err
	}
	due := time.Now().Add(burstAhead(c.size.burst))
	if err := schedule(c.v, c.size.burst, func(int) time.Time { return due }); err != nil {
		return err
	}
	if err := c.await(ctx, time.Until(due), "the sidecar has read all entries, before they are due", int64(c.size.burst)); err != nil {
		return err
	}
	read, err := used()
	if err != nil {
		return err
	}
	pause(ctx, time.Until(due))
	if err := c.await(ctx, 5*time.Minute, "all entries are settled", 0); err != nil {
		return err
	}
	end, err := used()
	if err != nil || c.cpuProfile != "" {
		return err
	}
	n := float64(c.size.burst)
	c.table.addAlone("CPU for a job, from record to view", micros, noTarget, (read.cpu-begin.cpu).Seconds()/n)
	c.table.addAlone("CPU for a job, from view to settled", micros, noTarget, (end.cpu-read.cpu).Seconds()/n)
	c.table.addAlone("CPU for a job", micros, atMost(targetCost), (end.cpu-begin.cpu).Seconds()/n)
	return nil
}

// await waits until n entries are pending, and no fire is unconfirmed. Each look at the sidecar
// costs it some CPU time, so there are few.
func (c *cost) await(ctx context.Context, within time.Duration, what string, n int64) error {
	deadline := time.Now().Add(within)
	for {
		pause(ctx, lookEvery)
		at, err := c.sidecar.scheduled()
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case at == n:
			pause(ctx, announced)
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("waiting until %s: there are %d", what, at)
		}
	}
}

const (
	lookEvery = time.Second
	announced = time.Second // by when the journal has it that everything is confirmed
)
