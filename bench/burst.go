package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// targetBurst is the least part of the broker's own ceiling that a burst must reach.
const targetBurst = 0.7

// measureBurst has entries fall due at one instant and takes the time from then until all their jobs are in the queue; then it publishes the
// same without Millrace, as fast as the broker takes it. Nobody consumes: that would slow down both.
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

// burstAhead is how long before they are due n entries are published, so that even a busy machine has read them by then.
func burstAhead(n int) time.Duration { return 5*time.Second + time.Duration(n)*time.Second/2_500 }

// burst is how long it takes from when all entries are due until all their jobs are in the queue.
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

// fill is how long after a time the queue held n jobs.
func (p *plain) fill(ctx context.Context, n int, since time.Time) (time.Duration, error) {
	at, err := p.filled(ctx, queue, n, 5*time.Minute)
	return at.Round(0).Sub(since.Round(0)), err
}

// ceiling is how long the broker takes for the same jobs from a plain client that has them at hand.
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

// pause waits.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
