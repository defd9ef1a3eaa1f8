package millrace_test

import (
	"context"
	"errors"
	"log"
	"time"

	millrace "github.com/millrace-jobs/millrace/clients/go"
)

type ChargeArgs struct {
	Customer string `json:"customer"`
	Cents    int    `json:"cents"`
}

func (ChargeArgs) Kind() string { return "Charge" }

type ReportArgs struct {
	Year int `json:"year"`
}

func (ReportArgs) Kind() string { return "Report" }

// EnqueueOptions applies to each report, unless a call sets something else.
func (ReportArgs) EnqueueOptions() millrace.EnqueueOptions {
	return millrace.EnqueueOptions{Queue: "reports", MaxAttempts: 3}
}

// One struct is the args of a job. Its type determines the class of the job, which Kind returns.
func Example() {
	client, err := millrace.NewClient(millrace.ClientConfig{URL: "amqp://localhost"})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	jid, err := client.Enqueue(context.Background(), ChargeArgs{Customer: "ann", Cents: 1200}, nil)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("enqueued %s", jid)

	worker := millrace.NewWorker(millrace.WorkerConfig{URL: "amqp://localhost"})
	millrace.Handle(worker, func(_ context.Context, job *millrace.Job[ChargeArgs]) error {
		log.Printf("%s pays %d cents", job.Args.Customer, job.Args.Cents)
		return nil
	}, nil)
	if err := worker.RunWithSignals(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// A worker with lanes, middleware and hooks. One handler notices when it should end, and another
// one decides what becomes of a job that fails.
func ExampleWorker() {
	w := millrace.NewWorker(millrace.WorkerConfig{
		URL:     "amqp://localhost",
		Weights: map[string]int{"critical": 3, "default": 1}, Concurrency: 10,
		Lanes: []millrace.Lane{{Name: "slow", Queues: []string{"reports"}, Concurrency: 2}},
	})
	w.Use(func(next millrace.Handler) millrace.Handler {
		return func(ctx context.Context, job *millrace.RawJob) error {
			log.Printf("%s begins, attempt %d", job.Class, job.Attempt)
			return next(ctx, job)
		}
	})
	millrace.Handle(w, func(ctx context.Context, job *millrace.Job[ReportArgs]) error {
		for range 100 { // pages
			select {
			case <-time.After(time.Second): // in place of work
			case <-job.Stopping():
				return millrace.ErrHandBack
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}, &millrace.HandlerOptions{Timeout: 10 * time.Minute})
	millrace.Handle(w, func(_ context.Context, job *millrace.Job[ChargeArgs]) error {
		switch {
		case job.Args.Cents <= 0:
			return millrace.Discard("nothing to pay")
		case job.Args.Customer == "busy":
			return millrace.RetryIn(5*time.Second, errors.New("the bank is busy"))
		}
		return nil
	}, &millrace.HandlerOptions{RetryIn: func(count int, _ error, _ *millrace.RawJob) time.Duration {
		return time.Minute * time.Duration(count+1)
	}})
	w.On(millrace.Hooks{Death: func(job *millrace.RawJob, err error) { log.Printf("%s %s is dead: %v", job.Class, job.JID, err) }})
	if err := w.RunWithSignals(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// Enqueue one job now, one for tomorrow, and many in one call.
func ExampleClient() {
	client, err := millrace.NewClient(millrace.ClientConfig{URL: "amqp://localhost"})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	jid, err := client.Enqueue(ctx, ChargeArgs{"ann", 1200}, &millrace.EnqueueOptions{Queue: "critical", Priority: 9})
	if errors.Is(err, millrace.ErrUnconfirmed) {
		log.Printf("%s may have been enqueued, or not", jid)
	}
	_, _ = client.EnqueueIn(ctx, 24*time.Hour, ReportArgs{2026}, nil)
	jobs := []millrace.EnqueueParams{{Args: ChargeArgs{"bob", 700}}, {Args: ChargeArgs{"cleo", 800}}}
	results, err := client.EnqueueBulk(ctx, jobs)
	if err != nil {
		for i, r := range results {
			log.Printf("job %d: %s %v", i, r.JID, r.Err)
		}
	}
}

// A job without a type of its own: its class is a text, and its args are a list.
func ExampleArgs() {
	client, err := millrace.NewClient(millrace.ClientConfig{URL: "amqp://localhost"})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	_, _ = client.Enqueue(context.Background(), millrace.Args("Resize", "cat.png", 640, 480), nil)

	w := millrace.NewWorker(millrace.WorkerConfig{URL: "amqp://localhost"})
	w.Handle("Resize", millrace.Func3(func(_ context.Context, file string, width, height int) error {
		log.Printf("resize %s to %d × %d", file, width, height)
		return nil
	}), nil)
}
