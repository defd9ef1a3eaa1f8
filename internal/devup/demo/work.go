package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"golang.org/x/sync/errgroup"

	"github.com/millrace-jobs/millrace/internal/pause"
)

// work runs the worker's lanes and its heartbeat until ctx ends.
func (d *Demo) work(ctx context.Context, conn *amqp.Connection) error {
	g, ctx := errgroup.WithContext(ctx)
	for range concurrency {
		g.Go(func() error { return d.lane(ctx, conn) })
	}
	g.Go(func() error { return d.beat(ctx, conn) })
	return g.Wait()
}

// lane works on one job at a time, from whichever queue has one.
func (d *Demo) lane(ctx context.Context, conn *amqp.Connection) error {
	p, err := newPublisher(conn)
	if err != nil {
		return err
	}
	if err := p.ch.Qos(1, 0, false); err != nil {
		return err
	}
	var from [4]<-chan amqp.Delivery
	for i, queue := range queues {
		if from[i], err = p.ch.Consume("queue."+queue, "", false, false, false, false, nil); err != nil {
			return fmt.Errorf("consume queue.%s: %w", queue, err)
		}
	}
	for {
		var delivery amqp.Delivery
		var open bool
		select {
		case <-ctx.Done():
			return ctx.Err()
		case delivery, open = <-from[0]:
		case delivery, open = <-from[1]:
		case delivery, open = <-from[2]:
		case delivery, open = <-from[3]:
		}
		if !open {
			return errors.New("consumer ended")
		}
		if err := d.handle(ctx, p, delivery); err != nil {
			return err
		}
	}
}

// handle does a job. The broker confirms the outcome before the job is acknowledged.
func (d *Demo) handle(ctx context.Context, p publisher, delivery amqp.Delivery) error {
	job, err := readJob(delivery.Body)
	if err != nil {
		return delivery.Reject(false) // it becomes a dead job, with the broker's reason
	}
	d.counts.busy.Add(1)
	defer d.counts.busy.Add(-1)
	begun := time.Now()
	failure := perform(ctx, job)
	status := "success"
	switch {
	case ctx.Err() != nil:
		return ctx.Err() // not acknowledged: another worker gets it
	case failure != nil:
		if status = "failed"; exhausted(job) {
			status = "dead"
		}
		d.counts.failed.Add(1)
		if err := p.fail(ctx, job, failure); err != nil {
			return err
		}
	default:
		d.counts.processed.Add(1)
	}
	if err := p.end(ctx, delivery); err != nil {
		return err
	}
	if err := delivery.Ack(false); err != nil {
		return err
	}
	return p.toStream(ctx, jobMetrics, metric(job, status, begun, failure))
}

// end says that a job has ended which holds a slot of a limit.
func (p publisher) end(ctx context.Context, delivery amqp.Delivery) error {
	slot, holds := delivery.Headers["millrace-slot"].(string)
	if !holds {
		return nil
	}
	return p.toStream(ctx, jobEnds, map[string]any{"type": "ended", "slot": slot, "process": identity(), "at": seconds(time.Now())})
}

// readJob reads a job, and keeps numbers as they are written: the job may be published again.
func readJob(body []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var job map[string]any
	err := decoder.Decode(&job)
	return job, err
}

// importTakes is how long an import or an export takes, so that others wait.
const importTakes = time.Second

// perform is the work itself. It fails at a class that the worker does not know, as every client
// library does.
func perform(ctx context.Context, job map[string]any) error {
	class, _ := job["class"].(string)
	if !slices.Contains(known, class) {
		return fail{"UnknownClass", "no handler for class " + class}
	}
	_ = pause.For(ctx, 5*time.Millisecond+rand.N(40*time.Millisecond))
	switch class {
	case importOrders, exportOrders:
		_ = pause.For(ctx, importTakes)
	case importUsers:
		return fail{"FileNotFound", "no such file"}
	case resizeImage:
		if number(job, "retry_count", 0) < 2 && rand.IntN(4) == 0 {
			return fail{"Timeout", "the image server did not answer"}
		}
	}
	return nil
}

// fail is an error with a class.
type fail struct{ class, message string }

func (f fail) Error() string { return f.message }

// fail publishes a failed job to the retries or to the dead jobs.
func (p publisher) fail(ctx context.Context, job map[string]any, failure error) error {
	attempt := number(job, "retry_count", 0)
	record := map[string]any{
		"jid":           job["jid"],
		"error_message": failure.Error(),
		"error_class":   errorClass(failure),
		"job":           job,
	}
	now := time.Now()
	if exhausted(job) {
		record["type"], record["died_at"], record["retry_count"] = "dead_job", seconds(now), attempt
		return p.toStream(ctx, deadJobs, record)
	}
	record["type"], record["failed_at"], record["retry_count"] = "retry", seconds(now), attempt+1
	record["retry_at"] = seconds(now.Add(backoff(attempt)))
	return p.toStream(ctx, retries, record)
}

// exhausted reports whether a job that fails now has no attempts left.
func exhausted(job map[string]any) bool {
	return number(job, "retry_count", 0) >= number(job, "retry", 25)
}

// backoff is short, because a person is watching. Real workers wait attempt⁴ + 15 + a random part,
// in seconds.
func backoff(attempt int64) time.Duration {
	return time.Duration(1+attempt)*2*time.Second + rand.N(2*time.Second)
}

func errorClass(err error) string {
	var f fail
	if errors.As(err, &f) {
		return f.class
	}
	return fmt.Sprintf("%T", err)
}

func number(job map[string]any, name string, otherwise int64) int64 {
	if n, is := job[name].(json.Number); is {
		if i, err := n.Int64(); err == nil {
			return i
		}
	}
	return otherwise
}

// metric returns the record of an attempt. Only first attempts say how long they waited: retries
// wait by design.
func metric(job map[string]any, status string, begun time.Time, failure error) map[string]any {
	attempt := number(job, "retry_count", 0) + 1
	m := map[string]any{
		"type":            "job_metric",
		"timestamp":       seconds(time.Now()),
		"job_class":       job["class"],
		"queue":           job["queue"],
		"duration_ms":     time.Since(begun).Milliseconds(),
		"status":          status,
		"worker_identity": identity(),
		"jid":             job["jid"],
		"attempt":         attempt,
	}
	if failure != nil {
		m["error_class"] = errorClass(failure)
	}
	if queued, is := job["enqueued_at"].(json.Number); is && attempt == 1 && job["class"] != sendReminder {
		if at, err := queued.Float64(); err == nil {
			m["wait_ms"] = max(0, 1000*(seconds(begun)-at))
		}
	}
	return m
}

func identity() string { return fmt.Sprintf("%s:%d:demo", hostname(), os.Getpid()) }

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}
