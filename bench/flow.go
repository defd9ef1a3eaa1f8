package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	millrace "github.com/millrace-jobs/millrace/clients/go"
)

const (
	flowQueue = "flow"
	flowEvery = 100 * time.Millisecond
	flowStart = 500 // jobs that must be done before it counts as a flow
)

// flow makes the Go client enqueue and run that many jobs a second until stop is called. stop
// returns an error if fewer jobs were done.
func (m *million) flow(ctx context.Context) (stop func() error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	client, err := millrace.NewClient(millrace.ClientConfig{URL: m.v.amqpURL})
	if err != nil {
		cancel()
		return nil, err
	}
	var done atomic.Int64
	worker := millrace.NewWorker(millrace.WorkerConfig{URL: m.v.amqpURL, Concurrency: jobSlots, Queues: []string{flowQueue}, Logger: m.log})
	worker.Handle("Noop", func(context.Context, *millrace.RawJob) error { done.Add(1); return nil }, nil)
	worked, sent := make(chan error, 1), make(chan error, 1)
	go func() { worked <- worker.Run(context.WithoutCancel(ctx)) }()
	begin := time.Now()
	go func() { sent <- m.send(ctx, client) }()
	stop = func() error {
		rate := float64(done.Load()) / time.Since(begin).Seconds()
		cancel()
		err := <-sent
		worker.Stop()
		m.table.addAlone(m.name(fmt.Sprintf("jobs a second, of %d that were to flow", m.size.asked.flow)), perSecond, noTarget, rate)
		return errors.Join(err, <-worked, client.Close())
	}
	if err := wait(ctx, startWithin, "jobs flow", func() (bool, error) { return done.Load() > flowStart, nil }); err != nil {
		return nil, errors.Join(err, stop())
	}
	return stop, nil
}

// send enqueues jobs at an even pace until ctx ends.
func (m *million) send(ctx context.Context, client *millrace.Client) error {
	tick := time.NewTicker(flowEvery)
	defer tick.Stop()
	jobs := make([]millrace.EnqueueParams, m.size.asked.flow*int(flowEvery)/int(time.Second))
	for i := range jobs {
		jobs[i] = millrace.EnqueueParams{Args: millrace.Args("Noop", i, "some text"), Options: millrace.EnqueueOptions{Queue: flowQueue}}
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if _, err := client.EnqueueBulk(context.WithoutCancel(ctx), jobs); err != nil {
				return err
			}
		}
	}
}
