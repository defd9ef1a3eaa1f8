package demo

import (
	"context"
	"errors"
	"os"
	"runtime"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const beatEvery = 10 * time.Second

// goodbyeLimit bounds how long the worker's last heartbeat may take.
const goodbyeLimit = 2 * time.Second

// beat publishes a heartbeat every ten seconds until ctx ends, and then a last one, so that the
// worker does not count as lost.
func (d *Demo) beat(ctx context.Context, conn *amqp.Connection) error {
	p, err := newPublisher(conn)
	if err != nil {
		return err
	}
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	started := time.Now()
	for {
		if err := p.toStream(ctx, heartbeats, d.heartbeat(started, "running", d.counts.busy.Load())); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbyeLimit)
			defer cancel()
			return errors.Join(ctx.Err(), p.toStream(last, heartbeats, d.heartbeat(started, "stopping", 0)))
		case <-tick.C:
		}
	}
}

func (d *Demo) heartbeat(started time.Time, state string, busy int64) map[string]any {
	return map[string]any{
		"type":        "heartbeat",
		"identity":    identity(),
		"hostname":    hostname(),
		"pid":         os.Getpid(),
		"tag":         "demo",
		"concurrency": concurrency,
		"busy":        busy,
		"state":       state,
		"beat":        seconds(time.Now()),
		"started_at":  seconds(started),
		"rss_kb":      memory(),
		"queues":      queues,
		"version":     "1.0.0",
	}
}

// memory returns the kilobytes that the Go runtime has from the system: nearly all that the process
// has.
func memory() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys / 1024
}
