package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	millrace "github.com/millrace-jobs/millrace/clients/go"
)

// Targets of unique jobs.
const (
	targetDecided = 5000 // a second
	targetAnswer  = 10 * time.Millisecond
)

const (
	uniqueProducers = 10
	uniqueCalls     = 50 // of each producer, at the same time
	uniqueKeys      = 1000
)

// measureUnique has producers enqueue unique jobs of the same keys. Each call returns when the
// leader has decided which job stays. No worker runs, so the first job of each key stays.
func measureUnique(ctx context.Context, b *bench, v *vhost) (err error) {
	s, err := b.serve(ctx, v)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	u := &uniqueRuns{bench: b}
	defer func() { err = errors.Join(err, u.close()) }()
	for range uniqueProducers {
		c, err := millrace.NewClient(millrace.ClientConfig{URL: v.amqpURL})
		if err != nil {
			return err
		}
		u.clients = append(u.clients, c)
	}
	for key := range uniqueKeys {
		if err := u.enqueue(ctx, key, true); err != nil {
			return err
		}
	}
	took, err := timed(func() error { return u.all(ctx) })
	if err != nil {
		return err
	}
	b.table.addAlone(fmt.Sprintf("unique jobs decided, %d producers on %d keys", uniqueProducers, uniqueKeys), perSecond, atLeast(targetDecided), float64(b.size.jobs)/took.Seconds())
	_, each, err := b.paced(func(i int) error { return u.enqueue(ctx, i, false) })
	if err != nil {
		return err
	}
	rate := fmt.Sprintf("an enqueue of a unique job at %d a second, ", b.size.perSecond)
	b.table.addAlone(rate+"p50", millis, noTarget, quantile(each, 0.5).Seconds())
	b.table.addAlone(rate+"p99", millis, atMost(targetAnswer.Seconds()), quantile(each, 0.99).Seconds())
	return nil
}

// uniqueRuns are producers of unique jobs.
type uniqueRuns struct {
	*bench
	clients []*millrace.Client
}

// all enqueues jobs that are duplicates, many at the same time.
func (u *uniqueRuns) all(ctx context.Context) error {
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range uniqueProducers * uniqueCalls {
		g.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= u.size.jobs {
					return nil
				}
				if err := u.enqueue(ctx, i, false); err != nil {
					return err
				}
			}
		})
	}
	return g.Wait()
}

// enqueue enqueues one job, which must be the first of its key or a duplicate.
func (u *uniqueRuns) enqueue(ctx context.Context, i int, first bool) error {
	options := &millrace.EnqueueOptions{Queue: "jobs", Unique: &millrace.Unique{Key: fmt.Sprint("key-", i%uniqueKeys)}}
	decision, err := u.clients[i%len(u.clients)].EnqueueUnique(ctx, millrace.Args("Noop", i), options)
	if err != nil {
		return err
	}
	if decision.Duplicate == first {
		return fmt.Errorf("job %d: duplicate: %t", i, decision.Duplicate)
	}
	return nil
}

func (u *uniqueRuns) close() (err error) {
	for _, c := range u.clients {
		err = errors.Join(err, c.Close())
	}
	return err
}
