package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// tick is how often traffic is sent, in batches.
const tick = 50 * time.Millisecond

// every calls do at each tick, for perSecond items a second in all. from is the number of items
// before.
func every(ctx context.Context, perSecond float64, do func(from, n int) error) error {
	begin, done := time.Now(), 0
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		due := int(time.Since(begin).Seconds() * perSecond)
		if due > done {
			if err := do(done, due-done); err != nil {
				return err
			}
			done = due
		}
	}
}

// produce enqueues jobs for all queues.
func (w *world) produce(ctx context.Context) error {
	ch, err := w.channel(ctx)
	if err != nil {
		return err
	}
	return every(ctx, float64(w.perSecond), func(from, n int) error {
		for i := from; i < from+n; i++ {
			m := amqp.Publishing{ContentType: "application/json", MessageId: fmt.Sprintf("j%015x", i), Type: className(i), Timestamp: time.Now(), Body: []byte(w.job("j", i))}
			if err := ch.PublishWithContext(ctx, wire.ExchangeDirect, queueName(i%w.queues), false, false, m); err != nil {
				return ended(ctx, err)
			}
		}
		return nil
	})
}

// work takes the jobs, and reports the result of each.
func (w *world) work(ctx context.Context) error {
	ch, err := w.channel(ctx)
	if err != nil {
		return err
	}
	if err := ch.Qos(5000, 0, true); err != nil {
		return err
	}
	jobs := make(chan amqp.Delivery, 5000)
	for i := range w.queues {
		from, err := ch.Consume(wire.QueuePrefix+queueName(i), "", false, false, false, false, nil)
		if err != nil {
			return err
		}
		go func() {
			for d := range from {
				select {
				case jobs <- d:
				case <-ctx.Done():
				}
			}
		}()
	}
	n := 0
	t := time.NewTicker(2 * tick)
	defer t.Stop()
	var said []string
	for {
		select {
		case <-ctx.Done():
			return nil
		case d := <-jobs:
			if err := d.Ack(false); err != nil {
				return ended(ctx, err)
			}
			n++
			said = append(said, metric(time.Now(), n, n%w.queues, n))
			if len(said) < 400 {
				continue
			}
		case <-t.C:
		}
		if len(said) > 0 {
			if err := ch.PublishWithContext(ctx, "", wire.JobMetrics, false, false, amqp.Publishing{Body: []byte("[" + strings.Join(said, ",") + "]")}); err != nil {
				return ended(ctx, err)
			}
			said = said[:0]
		}
	}
}

// beatEvery is how often a process sends a heartbeat.
const beatEvery = 10 * time.Second

// beat sends the heartbeats of all processes, one after another.
func (w *world) beat(ctx context.Context) error {
	ch, err := w.channel(ctx)
	if err != nil {
		return err
	}
	started := wire.Seconds(time.Now().Add(-time.Hour))
	send := func(i int) error {
		now := wire.Seconds(time.Now())
		work := []map[string]any{}
		for k := range 4 {
			work = append(work, map[string]any{"jid": fmt.Sprintf("w%03d-%d", i, k), "class": className(i + k), "queue": queueName((i + k) % w.queues), "started_at": now - float64(k) - .2})
		}
		body, err := json.Marshal(map[string]any{"type": "heartbeat", "identity": fmt.Sprintf("worker-%03d:%d:shop", i, 1000+i), "hostname": fmt.Sprintf("worker-%03d", i), "pid": 1000 + i, "tag": "shop", "version": "v2.4",
			"concurrency": 10, "busy": 4, "beat": now, "started_at": started, "rss_kb": 180_000 + 100*i, "rtt_us": 700, "queues": []string{queueName(i % w.queues), queueName((i + 100) % w.queues)}, "work": work})
		if err != nil {
			return err
		}
		return ch.PublishWithContext(ctx, "", wire.Heartbeats, false, false, amqp.Publishing{Body: body})
	}
	for i := range w.processes {
		if err := send(i); err != nil {
			return ended(ctx, err)
		}
	}
	return every(ctx, float64(w.processes)/beatEvery.Seconds(), func(from, n int) error {
		var all error
		for i := from; i < from+n; i++ {
			all = errors.Join(all, send(i%w.processes))
		}
		return ended(ctx, all)
	})
}
