package millrace_test

import (
	"context"
	"errors"
	"log"
	"time"

	millrace "github.com/millrace-jobs/millrace/clients/go"
)

// Lanes, middleware, hooks, a handler that notices when it should end, and failures that say what is to become of the job.
func ExampleWorker() {
	w := millrace.NewWorker(millrace.WorkerConfig{
		URL:     "amqp://localhost",
		Weights: map[string]int{"critical": 3, "default": 1}, Concurrency: 10,
		Lanes: []millrace.Lane{{Name: "slow", Queues: []string{"reports"}, Concurrency: 2}},
	})
	w.Use(func(next millrace.Handler) millrace.Handler {
		return func(ctx context.Context, job *millrace.Job) error {
			log.Printf("%s begins, attempt %d", job.Class, job.Attempt)
			return next(ctx, job)
		}
	})
	w.Handle("Report", func(ctx context.Context, job *millrace.Job) error {
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
	}, millrace.HandlerOptions{Timeout: 10 * time.Minute})
	w.Handle("Charge", func(_ context.Context, job *millrace.Job) error {
		var customer string
		var amount int
		if err := job.Bind(&customer, &amount); err != nil {
			return err
		}
		switch {
		case amount <= 0:
			return millrace.Discard("nothing to pay")
		case customer == "busy":
			return millrace.RetryIn(5*time.Second, errors.New("the bank is busy"))
		}
		return nil
	}, millrace.HandlerOptions{RetryIn: func(count int, _ error, _ *millrace.Job) time.Duration { return time.Minute * time.Duration(count+1) }})
	w.On(millrace.Hooks{Death: func(job *millrace.Job, err error) { log.Printf("%s %s was given up: %v", job.Class, job.JID, err) }})
	if err := w.RunWithSignals(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// One job now, one tomorrow, and many in one call.
func ExampleClient() {
	client, err := millrace.NewClient(millrace.ClientConfig{URL: "amqp://localhost"})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	jid, err := client.Enqueue(ctx, "Charge", []any{"ann", 12}, millrace.Options{Queue: "critical", Priority: 9})
	if errors.Is(err, millrace.ErrUnconfirmed) {
		log.Printf("%s may have been enqueued, or not", jid)
	}
	_, _ = client.EnqueueIn(ctx, 24*time.Hour, "Report", []any{2026}, millrace.Options{Queue: "reports"})
	jobs := []millrace.NewJob{{Class: "Charge", Args: []any{"bob", 7}}, {Class: "Charge", Args: []any{"cleo", 8}}}
	results, err := client.EnqueueBulk(ctx, jobs)
	if err != nil {
		for i, r := range results {
			log.Printf("job %d: %s %v", i, r.JID, r.Err)
		}
	}
}
