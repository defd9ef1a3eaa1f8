package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"golang.org/x/sync/errgroup"

	"github.com/millrace-jobs/millrace/internal/pause"
)

// Demo is a producer and a worker.
type Demo struct {
	AMQPURL string
	Rate    int // jobs a second, at least 1
	Log     *slog.Logger

	counts counters
}

const (
	concurrency = 5
	reconnect   = time.Second
	dialTimeout = 5 * time.Second
)

// Queues that the worker consumes, without "queue." in front. The demo has queues of its own, so
// that it never takes a job of another worker.
const (
	queueCritical = "demo.critical"
	queueDefault  = "demo.default"
	queueLow      = "demo.low"
	queueExports  = "demo.exports" // governed, so no client binds it
)

var queues = []string{queueCritical, queueDefault, queueLow, queueExports}

// events is the exchange to which delayed messages go, and the queue in which they end.
const events = "demo.events"

// Run produces and works until ctx ends.
func (d *Demo) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.again(ctx, "producer", d.produce) })
	g.Go(func() error { return d.again(ctx, "worker", d.work) })
	g.Go(func() error { return d.again(ctx, "definitions", d.define) })
	return g.Wait()
}

// again calls run with a connection, and again with a new one whenever that is lost.
func (d *Demo) again(ctx context.Context, name string, run func(context.Context, *amqp.Connection) error) error {
	for ctx.Err() == nil {
		err := d.connected(ctx, name, run)
		if ctx.Err() != nil {
			break
		}
		d.Log.Warn("demo: connection lost, it is made again", "part", name, "error", err)
		_ = pause.For(ctx, reconnect)
	}
	return nil
}

func (d *Demo) connected(ctx context.Context, name string, run func(context.Context, *amqp.Connection) error) error {
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName("demo " + name)
	conn, err := amqp.DialConfig(d.AMQPURL, amqp.Config{
		Heartbeat: 10 * time.Second, Properties: properties, Dial: amqp.DefaultDial(dialTimeout),
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := declare(conn); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	closed := conn.NotifyClose(make(chan *amqp.Error, 1))
	go func() {
		select {
		case why, lost := <-closed:
			if lost {
				cancel(fmt.Errorf("connection closed: %w", why))
			}
		case <-ctx.Done():
		}
	}()
	if err := run(ctx, conn); !errors.Is(err, context.Canceled) {
		return err
	}
	return context.Cause(ctx)
}

// declare declares queues and streams, as any client may. Those that exist are as they should be.
func declare(conn *amqp.Connection) error {
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	defer ch.Close()
	if err := ch.ExchangeDeclare(exchange, amqp.ExchangeDirect, true, false, false, false, nil); err != nil {
		return fmt.Errorf("declare %s: %w", exchange, err)
	}
	for _, name := range queues {
		if _, err := ch.QueueDeclare("queue."+name, true, false, false, false, amqp.Table{"x-max-priority": 10}); err != nil {
			return fmt.Errorf("declare queue.%s: %w", name, err)
		}
		if name == queueExports {
			continue
		}
		if err := ch.QueueBind("queue."+name, name, exchange, false, nil); err != nil {
			return fmt.Errorf("bind queue.%s: %w", name, err)
		}
	}
	if err := declareEvents(ch); err != nil {
		return err
	}
	for _, name := range streams {
		if _, err := ch.QueueDeclare(name, true, false, false, false, amqp.Table{"x-queue-type": "stream"}); err != nil {
			return fmt.Errorf("declare %s: %w", name, err)
		}
	}
	return nil
}

// declareEvents declares what an application has that knows nothing of jobs: an exchange, and a
// queue for its messages. The queue keeps the newest ones.
func declareEvents(ch *amqp.Channel) error {
	if err := ch.ExchangeDeclare(events, amqp.ExchangeTopic, true, false, false, false, nil); err != nil {
		return fmt.Errorf("declare %s: %w", events, err)
	}
	if _, err := ch.QueueDeclare(events, true, false, false, false, amqp.Table{"x-max-length": 100}); err != nil {
		return fmt.Errorf("declare %s: %w", events, err)
	}
	if err := ch.QueueBind(events, "#", events, false, nil); err != nil {
		return fmt.Errorf("bind %s: %w", events, err)
	}
	return nil
}

// Counts are what was done since Run began.
type Counts struct {
	Enqueued  int64 // jobs published, also those for later
	Processed int64 // done without a failure
	Failed    int64 // attempts that failed
}

type counters struct {
	enqueued, processed, failed, busy atomic.Int64
}

// Counts returns the counts so far.
func (d *Demo) Counts() Counts {
	return Counts{d.counts.enqueued.Load(), d.counts.processed.Load(), d.counts.failed.Load()}
}
