package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	millrace "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/wire"
)

// measureEnqueue enqueues jobs at an even pace. It measures the time of each confirmed enqueue, and
// the time until a worker's handler begins. Then it measures a confirmed publish, and the time
// until a plain consumer has the message.
func measureEnqueue(ctx context.Context, b *bench, v *vhost) (err error) {
	s, err := b.serve(ctx, v)
	if err != nil {
		return err
	}
	enqueued, begun, err := b.enqueued(ctx, v)
	if err = errors.Join(err, s.stop()); err != nil {
		return err
	}
	confirmed, arrived, err := b.confirmed(ctx, v)
	if err != nil {
		return err
	}
	for _, q := range []struct {
		name string
		at   float64
	}{{"p50", 0.5}, {"p99", 0.99}} {
		rate := fmt.Sprintf("at %d a second, %s", b.size.perSecond, q.name)
		b.table.add("a confirmed enqueue "+rate, millis, noTarget, quantile(enqueued, q.at).Seconds(), quantile(confirmed, q.at).Seconds())
		b.table.add("from enqueue to handler "+rate, millis, noTarget, quantile(begun, q.at).Seconds(), quantile(arrived, q.at).Seconds())
	}
	return nil
}

// paced calls send for each job at its time. It records when that was, and how long the call took.
func (b *bench) paced(send func(i int) error) (sent []time.Time, took []time.Duration, err error) {
	sent, took = make([]time.Time, b.jobsInAll()), make([]time.Duration, b.jobsInAll())
	from := time.Now()
	for i := range sent {
		time.Sleep(time.Until(from.Add(b.pace(i))))
		sent[i] = time.Now()
		if took[i], err = timed(func() error { return send(i) }); err != nil {
			return nil, nil, err
		}
	}
	return sent, took, nil
}

// enqueued measures Millrace's Go client.
func (b *bench) enqueued(ctx context.Context, v *vhost) (took, begun []time.Duration, err error) {
	client, err := millrace.NewClient(millrace.ClientConfig{URL: v.amqpURL})
	if err != nil {
		return nil, nil, err
	}
	defer client.Close()
	n := b.jobsInAll()
	started, ended, arrived := make(chan struct{}), make(chan error, 1), make(chan arrival, n)
	worker := millrace.NewWorker(millrace.WorkerConfig{URL: v.amqpURL, Concurrency: jobSlots, Queues: []string{"jobs"}, Logger: b.log})
	worker.On(millrace.Hooks{Startup: func() { close(started) }})
	worker.Handle("Noop", func(_ context.Context, job *millrace.RawJob) error {
		arrived <- arrival{job.JID, time.Now()}
		return nil
	}, nil)

	go func() { ended <- worker.Run(ctx) }()
	defer func() {
		worker.Stop()
		err = errors.Join(err, <-ended)
	}()
	<-started
	sent, took, err := b.paced(func(i int) error {
		_, err := client.Enqueue(ctx, millrace.Args("Noop", i, "some text"), &millrace.EnqueueOptions{Queue: "jobs", JID: jid(i)})
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	begun, err = delaysOf(ctx, arrived, sent)
	return took, begun, err
}

// confirmed measures the AMQP library alone.
func (b *bench) confirmed(ctx context.Context, v *vhost) (took, arrived []time.Duration, err error) {
	p, err := newPublisher(v)
	if err != nil {
		return nil, nil, err
	}
	defer p.close()
	c, err := consume(v, wire.QueuePrefix+"jobs", b.jobsInAll())
	if err != nil {
		return nil, nil, err
	}
	defer c.close()
	sent, took, err := b.paced(func(i int) error {
		if err := p.publish(wire.ExchangeDirect, "jobs", noop(i, jid(i))); err != nil {
			return err
		}
		return p.drain()
	})
	if err != nil {
		return nil, nil, err
	}
	arrived, err = delaysOf(ctx, c.arrivals, sent)
	return took, arrived, err
}

// delaysOf takes one arrival for each job in sent, and returns how long after sending it arrived.
func delaysOf(ctx context.Context, arrivals <-chan arrival, sent []time.Time) ([]time.Duration, error) {
	since := map[string]time.Time{}
	for i, at := range sent {
		since[jid(i)] = at
	}
	c := consumer{arrivals: arrivals}
	return c.delays(ctx, len(sent), since, time.Minute)
}
