// Command millrace is Millrace's part of `make bench-peers`: a worker and producers with the Go
// client. The environment says what the work is, and the argument what part the process plays.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-jobs/millrace/bench/peers/work"
	millrace "github.com/millrace-jobs/millrace/clients/go"
)

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// part is what a process does.
type part struct {
	work.Work
	client *millrace.Client
}

func run(ctx context.Context, role string) error {
	w, err := work.FromEnvironment()
	if err != nil {
		return err
	}
	client, err := millrace.NewClient(millrace.ClientConfig{URL: w.AMQP, Timeout: time.Minute})
	if err != nil {
		return err
	}
	defer client.Close()
	p := part{w, client}
	roles := map[string]func(context.Context) error{"define": p.define, "produce": p.produce, "unique": p.unique, "worker": p.worker}
	return roles[role](ctx)
}

// define defines the row's limit, or its periodic jobs.
func (p part) define(ctx context.Context) error {
	limit := millrace.Limit{Name: "bench", Queues: []string{p.Row}}
	switch {
	case p.Limit > 0:
		limit.Per, limit.Concurrency = []millrace.Part{millrace.PerKey}, p.Limit
	case p.Rate > 0:
		limit.Rate = &millrace.Rate{Jobs: p.Rate, In: time.Second}
	default:
		return p.definePeriodic(ctx)
	}
	_, err := p.client.DefineLimits(ctx, "bench", limit)
	return err
}

func (p part) definePeriodic(ctx context.Context) error {
	if p.Row != work.Periodic {
		return nil
	}
	jobs := make([]millrace.PeriodicJob, p.Jobs)
	for i := range jobs {
		jobs[i] = millrace.PeriodicJob{Name: fmt.Sprint("job-", i), Cron: "* * * * *", Args: millrace.Args("Job", i, i),
			Options: &millrace.EnqueueOptions{Queue: p.Row}}
	}
	_, err := p.client.Define(ctx, "bench", jobs...)
	return err
}

const bulk = 1000

func (p part) produce(ctx context.Context) error {
	for from := 0; from < p.Jobs; from += bulk {
		jobs := make([]millrace.EnqueueParams, min(bulk, p.Jobs-from))
		for i := range jobs {
			n := from + i
			options := millrace.EnqueueOptions{Queue: p.Row, Limited: true}
			if p.Limit > 0 {
				options.LimitKey = fmt.Sprint("key-", n%p.Keys)
			}
			jobs[i] = millrace.EnqueueParams{Args: millrace.Args("Job", n, n%p.Keys), Options: options}
		}
		results, err := p.client.EnqueueBulk(ctx, jobs)
		if err != nil {
			return err
		}
		for _, r := range results {
			if r.Err != nil {
				return r.Err
			}
		}
	}
	return nil
}

// unique enqueues every second job twice, by several producers at the same time.
func (p part) unique(ctx context.Context) error {
	var next, accepted atomic.Int64
	var failed atomic.Value
	var all sync.WaitGroup
	begin := time.Now()
	for range p.Producers {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(p.Jobs); i = next.Add(1) - 1 {
				decision, err := p.client.EnqueueUnique(ctx, millrace.Args("Job", i/2, i/2),
					&millrace.EnqueueOptions{Queue: p.Row, Unique: &millrace.Unique{Key: fmt.Sprint("key-", i/2)}})
				if err != nil {
					failed.Store(err)
					return
				}
				if !decision.Duplicate {
					accepted.Add(1)
				}
			}
		})
	}
	all.Wait()
	if err, _ := failed.Load().(error); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(work.Decided{Seconds: time.Since(begin).Seconds(), Accepted: int(accepted.Load())})
}

func (p part) worker(ctx context.Context) error {
	log, err := p.OpenLog()
	if err != nil {
		return err
	}
	w := millrace.NewWorker(millrace.WorkerConfig{URL: p.AMQP, Concurrency: p.Slots, Queues: []string{p.Row}, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	w.On(millrace.Hooks{Startup: func() { fmt.Println("ready") }})
	w.Handle("Job", func(_ context.Context, job *millrace.RawJob) error {
		var args [2]int
		if err := json.Unmarshal(job.Args, &args); err != nil {
			return err
		}
		return log.Run(args[0], args[1])
	}, nil)
	return w.Run(ctx)
}
