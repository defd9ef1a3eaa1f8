package demo

import (
	"context"
	"os"
	"runtime"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const beatEvery = 10 * time.Second

// beat tells that the worker lives, and what it is at, until ctx ends.
func (d *Demo) beat(ctx context.Context, conn *amqp.Connection) error {
	p, err := newPublisher(conn)
	if err != nil {
		return err
	}
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	started := time.Now()
	for {
		if err := p.toStream(ctx, heartbeats, d.heartbeat(started)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func (d *Demo) heartbeat(started time.Time) map[string]any {
	return map[string]any{
		"type":        "heartbeat",
		"identity":    identity(),
		"hostname":    hostname(),
		"pid":         os.Getpid(),
		"tag":         "demo",
		"concurrency": concurrency,
		"busy":        d.counts.busy.Load(),
		"beat":        seconds(time.Now()),
		"started_at":  seconds(started),
		"rss_kb":      memory(),
		"queues":      queues,
		"version":     "1.0.0",
	}
}

// memory is what the Go runtime has from the system, which is nearly all that this process has.
func memory() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys / 1024
}
