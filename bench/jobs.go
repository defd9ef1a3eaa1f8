package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	millrace "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/wire"
)

// targetJobs is the part of the bare loop's throughput that producer, worker, metrics and sidecar
// together must reach.
const targetJobs = 0.5

// jobSlots is how many jobs run concurrently, and the prefetch of the bare loop.
const jobSlots = 50

// measureJobs enqueues jobs that do nothing, and runs them with the Go client and a sidecar. Then
// it publishes, consumes and acknowledges the same messages with the AMQP library alone. Everything
// shares this machine.
func measureJobs(ctx context.Context, b *bench, v *vhost) (err error) {
	s, err := b.serve(ctx, v)
	if err != nil {
		return err
	}
	took, err := b.endToEnd(ctx, v, nil, plainJob)
	if err = errors.Join(err, s.stop()); err != nil {
		return err
	}
	bare, err := b.bareLoop(ctx, v)
	if err != nil {
		return err
	}
	n := float64(b.size.jobs)
	b.table.add(fmt.Sprintf("%d jobs enqueued and done", b.size.jobs), perSecond, ratioAtLeast(targetJobs), n/took.Seconds(), n/bare.Seconds())
	return nil
}

// bulk is how many jobs are enqueued in one call.
const bulk = 1000

// plainJob are the options of a job that no limit counts.
var plainJob = millrace.EnqueueOptions{Queue: "jobs"}

// endToEnd enqueues jobs with these options, and runs them. It returns the time from the first call
// until the last job is done. If define is not nil, it is called before that.
func (b *bench) endToEnd(ctx context.Context, v *vhost, define func(*millrace.Client) error, each millrace.EnqueueOptions) (took time.Duration, err error) {
	n := b.size.jobs
	var done atomic.Int64
	finished := make(chan struct{})
	r, err := startRunner(ctx, b, v, func() {
		if done.Add(1) == int64(n)+1 {
			close(finished)
		}
	})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	if define != nil {
		if err := define(r.client); err != nil {
			return 0, err
		}
	}
	if _, err := r.client.Enqueue(ctx, millrace.Args("Noop"), &each); err != nil {
		return 0, err
	}
	if err := wait(ctx, startWithin, "the first job is done", func() (bool, error) { return done.Load() == 1, nil }); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := r.enqueue(ctx, n, each); err != nil {
		return 0, err
	}
	select {
	case <-finished:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return time.Since(begin), nil
}

// runner is a client, and a worker of the class Noop, both of the Go library.
type runner struct {
	client *millrace.Client
	worker *millrace.Worker
	ended  chan error
}

// startRunner starts a worker that calls run for each job.
func startRunner(ctx context.Context, b *bench, v *vhost, run func()) (*runner, error) {
	client, err := millrace.NewClient(millrace.ClientConfig{URL: v.amqpURL})
	if err != nil {
		return nil, err
	}
	r := &runner{client: client, ended: make(chan error, 1),
		worker: millrace.NewWorker(millrace.WorkerConfig{URL: v.amqpURL, Concurrency: jobSlots, Queues: []string{"jobs"}, Logger: b.log})}
	started := make(chan struct{})
	r.worker.On(millrace.Hooks{Startup: func() { close(started) }})
	r.worker.Handle("Noop", func(context.Context, *millrace.RawJob) error {
		run()
		return nil
	}, nil)
	go func() { r.ended <- r.worker.Run(ctx) }()
	<-started
	return r, nil
}

// enqueue enqueues n jobs.
func (r *runner) enqueue(ctx context.Context, n int, each millrace.EnqueueOptions) error {
	for sent := 0; sent < n; sent += bulk {
		jobs := make([]millrace.EnqueueParams, min(bulk, n-sent))
		for i := range jobs {
			jobs[i] = millrace.EnqueueParams{Args: millrace.Args("Noop", sent+i, "some text"), Options: each}
		}
		if _, err := r.client.EnqueueBulk(ctx, jobs); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) stop() error {
	r.worker.Stop()
	return errors.Join(<-r.ended, r.client.Close())
}

// bareLoop does the same work without Millrace, with one confirm and one acknowledgement for each
// message.
func (b *bench) bareLoop(ctx context.Context, v *vhost) (took time.Duration, err error) {
	consumer, err := dial(v)
	if err != nil {
		return 0, err
	}
	defer consumer.close()
	if err := consumer.ch.Qos(jobSlots, 0, false); err != nil {
		return 0, err
	}
	messages, err := consumer.ch.Consume(wire.QueuePrefix+"jobs", "", false, false, false, false, nil)
	if err != nil {
		return 0, err
	}
	p, err := newPublisher(v)
	if err != nil {
		return 0, err
	}
	defer p.close()
	begin, sent := time.Now(), make(chan error, 1)
	go func() { sent <- publishJobs(p, b.size.jobs) }()
	for range b.size.jobs {
		select {
		case d, open := <-messages:
			if !open {
				return 0, errors.New("the channel was closed")
			}
			if err := d.Ack(false); err != nil {
				return 0, err
			}
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	took = time.Since(begin)
	return took, <-sent
}

// noop returns job i as the Go client enqueues it.
func noop(i int, jid string) amqp.Publishing {
	body := fmt.Appendf(nil, `{"args":[%d,"some text"],"class":"Noop","enqueued_at":1700000000.123456,"jid":%q,"queue":"jobs","retry_count":0}`, i, jid)
	return amqp.Publishing{ContentType: "application/json", DeliveryMode: amqp.Persistent, MessageId: jid, Type: "Noop", Body: body}
}

func publishJobs(p *publisher, n int) error {
	for i := range n {
		if err := p.publish(wire.ExchangeDirect, "jobs", noop(i, fmt.Sprintf("%032x", i))); err != nil {
			return err
		}
	}
	return p.drain()
}
