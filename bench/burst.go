package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// targetBurst is the part of the broker's own throughput that a burst must reach.
const targetBurst = 0.7

// measureBurst schedules entries for one instant, and measures the time from then until all their
// jobs are in the queue. Then it publishes the same jobs without Millrace, as fast as the broker
// accepts them. There is no consumer, because it would slow down both.
func measureBurst(ctx context.Context, b *bench, v *vhost) error {
	took, t, err := b.burst(ctx, v)
	if err != nil {
		return err
	}
	own, err := b.ceiling(ctx, v, t)
	if err != nil {
		return err
	}
	n := float64(b.size.burst)
	b.table.add(fmt.Sprintf("burst of %d due at one instant", b.size.burst), perSecond, ratioAtLeast(targetBurst), n/took.Seconds(), n/own.Seconds())
	return nil
}

// burstAhead returns how long before their due time n entries are published, so that even a busy
// machine has read them by then.
func burstAhead(n int) time.Duration { return 5*time.Second + time.Duration(n)*time.Second/2_500 }

// burst returns the time from when the entries are due until all their jobs are in the queue.
func (b *bench) burst(ctx context.Context, v *vhost) (took time.Duration, t template, err error) {
	s, err := b.serve(ctx, v)
	if err != nil {
		return 0, t, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if t, err = warmUp(ctx, v); err != nil {
		return 0, t, err
	}
	p, err := dial(v)
	if err != nil {
		return 0, t, err
	}
	defer p.close()
	due := time.Now().Add(burstAhead(b.size.burst)).Truncate(time.Microsecond)
	if err := schedule(v, b.size.burst, func(int) time.Time { return due }); err != nil {
		return 0, t, err
	}
	err = wait(ctx, time.Until(due), "the sidecar has read all entries, before they are due", func() (bool, error) {
		n, err := s.scheduled()
		return n == int64(b.size.burst), err
	})
	if err != nil {
		return 0, t, err
	}
	err = b.profile("burst", func() error {
		pause(ctx, time.Until(due))
		took, err = p.fill(ctx, b.size.burst, due)
		return err
	})
	if err != nil {
		return 0, t, err
	}
	_, err = p.ch.QueuePurge(queue, false)
	return took, t, err
}

// fill returns how long after since the queue held n jobs.
func (p *plain) fill(ctx context.Context, n int, since time.Time) (time.Duration, error) {
	at, err := p.filled(ctx, queue, n, 5*time.Minute)
	return at.Round(0).Sub(since.Round(0)), err
}

// ceiling returns how long the broker takes for the same jobs from a plain client that has them
// ready.
func (b *bench) ceiling(ctx context.Context, v *vhost, t template) (time.Duration, error) {
	p, err := newPublisher(v)
	if err != nil {
		return 0, err
	}
	defer p.close()
	watch, err := dial(v)
	if err != nil {
		return 0, err
	}
	defer watch.close()
	begin, sent := time.Now(), make(chan error, 1)
	go func() {
		for i := range b.size.burst {
			if err := p.publish(wire.ExchangeFire, queueName, t.message(i)); err != nil {
				sent <- err
				return
			}
		}
		sent <- p.drain()
	}()
	took, err := watch.fill(ctx, b.size.burst, begin)
	return took, errors.Join(err, <-sent)
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
