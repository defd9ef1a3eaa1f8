package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/streams"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// measureRead reads a stream of pending entries into a view in memory, over both transports. It
// reads the same bytes with the client libraries alone.
func measureRead(ctx context.Context, b *bench, v *vhost) error {
	n := b.size.entries
	if err := fillStream(v, n); err != nil {
		return err
	}
	for _, c := range []struct {
		name, streamURL string
		raw             func(context.Context, *vhost, int) error
	}{
		{"native", v.streamURL, readRawNative},
		{"amqp", "", readRawAMQP},
	} {
		own, err := timed(func() error { return c.raw(ctx, v, n) })
		if err != nil {
			return fmt.Errorf("raw, %s: %w", c.name, err)
		}
		var took time.Duration
		err = b.profile("read-"+c.name, func() error {
			took, err = timed(func() error { return b.readView(ctx, v, c.streamURL, n) })
			return err
		})
		if err != nil {
			return fmt.Errorf("into the view, %s: %w", c.name, err)
		}
		b.table.add(fmt.Sprintf("%d entries into the view, %s", n, c.name), perSecond, noTarget, float64(n)/took.Seconds(), float64(n)/own.Seconds())
	}
	return nil
}

// fillStream declares the two streams that are read, and fills one of them.
func fillStream(v *vhost, n int) error {
	p, err := dial(v)
	if err != nil {
		return err
	}
	defer p.close()
	for _, name := range []string{wire.Journal, wire.ScheduledJobs} {
		if _, err := p.ch.QueueDeclare(name, true, false, false, false, amqp.Table{"x-queue-type": "stream"}); err != nil {
			return err
		}
	}
	from := time.Now().Add(24 * time.Hour)
	// The due times are not in the order of the records.
	return schedule(v, n, func(i int) time.Time { return from.Add(time.Duration(i*7919%n) * time.Second) })
}

// readView reads until the view has everything.
func (b *bench) readView(ctx context.Context, v *vhost, streamURL string, n int) (err error) {
	store, entries, err := openView(b.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	source, err := streams.Open(ctx, streams.Config{AMQPURL: v.amqpURL, StreamURL: streamURL, Log: b.log})
	if err != nil {
		return err
	}
	defer source.Close()
	seen := view.New(store, source, entries, b.log, wire.Journal, wire.ScheduledJobs)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- seen.Run(ctx) }()
	select {
	case <-seen.Ready():
		cancel()
		err = <-ended
	case err = <-ended:
	}
	if got := entries.Total(wire.ScheduledJobs); err == nil && got != int64(n) {
		err = fmt.Errorf("the view has %d entries, not %d", got, n)
	}
	return err
}

func timed(fn func() error) (time.Duration, error) {
	begin := time.Now()
	err := fn()
	return time.Since(begin), err
}
