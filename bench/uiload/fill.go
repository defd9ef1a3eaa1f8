package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/wire"
)

const classes = 40

func queueName(i int) string { return fmt.Sprintf("team-%02d.queue-%03d", i%12, i) }
func className(i int) string { return fmt.Sprintf("Shop::Job%02d", i%classes) }

// spread places the i-th of n points in a period of time, not in their order.
func spread(i, n int, over time.Duration) time.Duration {
	return time.Duration(float64(i*7919%n) / float64(n) * float64(over))
}

var failures = []string{"Timeout", "ConnectionRefused", "RecordNotFound", "RateLimited", "OutOfMemory", "InvalidArgument"}

// window is how many publishes may be unconfirmed.
const window = 1024

// fill creates queues, entries and an hour of metrics, and waits until the sidecar has read
// everything.
func (w *world) fill(ctx context.Context) error {
	if err := w.until(ctx, func(o *answer.Overview) bool { return o.Scheduler.Leader }); err != nil {
		return err
	}
	say(w.stderr, "making %d queues", w.queues)
	for i := range w.queues {
		if err := w.ask(ctx, http.MethodPut, "/api/job-queues/"+queueName(i), nil); err != nil {
			return err
		}
	}
	now := time.Now()
	at := func(d time.Duration) float64 { return wire.Seconds(now.Add(d)) }
	for _, set := range []struct {
		stream string
		n      int
		record func(i int) string
	}{
		{wire.ScheduledJobs, w.scheduled, func(i int) string {
			return fmt.Sprintf(`{"type":"scheduled_job","jid":"s%015x","scheduled_at":%f,"job":%s}`, i, at(2*time.Hour+spread(i, w.scheduled, 30*24*time.Hour)), w.job("s", i))
		}},
		{wire.Retries, w.retries, func(i int) string {
			return fmt.Sprintf(`{"type":"retry","jid":"r%015x","retry_at":%f,"retry_count":%d,"failed_at":%f,"error_class":%q,"error_message":"no answer from 10.0.%d.%d within 3000 ms","job":%s}`,
				i, at(time.Hour+spread(i, w.retries, 24*time.Hour)), 1+i%20, at(-time.Duration(i%3600)*time.Second), failures[i%len(failures)], i%250, i%199, w.job("r", i))
		}},
		{wire.DeadJobs, w.dead, func(i int) string {
			return fmt.Sprintf(`{"type":"dead_job","jid":"d%015x","died_at":%f,"retry_count":25,"error_class":%q,"error_message":"record %d is gone","job":%s}`,
				i, at(-spread(w.dead-i, w.dead, 30*24*time.Hour)), failures[i%len(failures)], i, w.job("d", i))
		}},
	} {
		say(w.stderr, "publishing %d to %s", set.n, set.stream)
		if err := w.publish(ctx, set.stream, set.n, set.record); err != nil {
			return fmt.Errorf("%s: %w", set.stream, err)
		}
	}
	if err := w.history(ctx, now); err != nil {
		return err
	}
	say(w.stderr, "waiting until the sidecar has read it")
	return w.until(ctx, func(o *answer.Overview) bool {
		return o.Views.CaughtUp && o.Sets["scheduled-jobs"].Total >= int64(w.scheduled) && o.Sets["retries"].Total >= int64(w.retries) && o.Sets["dead-jobs"].Total >= int64(w.dead)
	})
}

func (w *world) job(set string, i int) string {
	return fmt.Sprintf(`{"jid":"%s%015x","class":%q,"queue":%q,"args":[%d,{"customer":%d,"note":"as usual"}],"retry":25,"enqueued_at":1700000000.5}`, set, i, className(i), queueName(i%w.queues), i, i*37)
}

// publish sends n records to a stream, with confirms.
func (w *world) publish(ctx context.Context, stream string, n int, record func(i int) string) error {
	ch, err := w.channel(ctx)
	if err != nil {
		return err
	}
	defer ch.Close()
	if err := ch.Confirm(false); err != nil {
		return err
	}
	confirms := ch.NotifyPublish(make(chan amqp.Confirmation, window))
	open := 0
	settle := func(most int) error {
		for open > most {
			c, ok := <-confirms
			if !ok || !c.Ack {
				return errors.Join(errors.New("a record was not confirmed"), ctx.Err())
			}
			open--
		}
		return nil
	}
	for i := range n {
		if err := settle(window - 1); err != nil {
			return err
		}
		if err := ch.PublishWithContext(ctx, "", stream, false, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(record(i))}); err != nil {
			return err
		}
		open++
	}
	return settle(0)
}

// history publishes an hour of metrics: each queue has run two classes in each minute.
func (w *world) history(ctx context.Context, now time.Time) error {
	const minutes = 60
	return w.publish(ctx, wire.JobMetrics, minutes*w.queues/100, func(i int) string {
		var all []string
		for k := range 200 {
			q := (i*100 + k/2) % w.queues
			all = append(all, metric(now.Add(-time.Duration(1+i*100/w.queues)*time.Minute), q+k%2, q, k))
		}
		return "[" + strings.Join(all, ",") + "]"
	})
}

// metric returns the record of one attempt. One in fifty attempts has failed.
func metric(at time.Time, class, queue, n int) string {
	text := fmt.Sprintf(`{"type":"job_metric","timestamp":%f,"job_class":%q,"queue":%q,"duration_ms":%d,"wait_ms":%d,"worker_identity":"worker-%03d:1:shop","attempt":1,"jid":"m%015x"`,
		wire.Seconds(at), className(class), queueName(queue), 5+n*n%900, n%40, n%200, n)
	if n%50 == 7 {
		return text + fmt.Sprintf(`,"status":"failed","error_class":%q}`, failures[n%len(failures)])
	}
	return text + `,"status":"success"}`
}
