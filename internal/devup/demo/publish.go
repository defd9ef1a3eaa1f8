package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Names that a client must know.
const (
	exchange = "jobs.direct"

	scheduledJobs = "scheduled_jobs"
	retries       = "retries"
	deadJobs      = "dead_jobs"
	heartbeats    = "heartbeats"
	jobMetrics    = "job_metrics"
	gatedJobs     = "jobs.gated"
	jobEnds       = "jobs.ends"
)

var streams = []string{scheduledJobs, retries, deadJobs, heartbeats, jobMetrics, gatedJobs, jobEnds}

const confirmTimeout = 10 * time.Second

var errRefused = errors.New("refused by the broker")

// publisher is a channel in confirm mode.
type publisher struct{ ch *amqp.Channel }

func newPublisher(conn *amqp.Connection) (publisher, error) {
	ch, err := conn.Channel()
	if err != nil {
		return publisher{}, err
	}
	return publisher{ch}, ch.Confirm(false)
}

// toQueue publishes a job to its queue.
func (p publisher) toQueue(ctx context.Context, queue string, job map[string]any) error {
	return p.publish(ctx, exchange, queue, job)
}

// toStream publishes a record to a stream, through the default exchange.
func (p publisher) toStream(ctx context.Context, stream string, record map[string]any) error {
	return p.publish(ctx, "", stream, record)
}

// publish returns when the broker has confirmed the message.
func (p publisher) publish(ctx context.Context, exchange, key string, body map[string]any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	confirm, err := p.ch.PublishWithDeferredConfirmWithContext(ctx, exchange, key, false, false, amqp.Publishing{
		ContentType:  "application/json",
		DeliveryMode: amqp.Persistent,
		Body:         raw,
	})
	if err != nil {
		return fmt.Errorf("publish to %s: %w", key, err)
	}
	switch acked, err := confirm.WaitContext(ctx); {
	case err != nil:
		return fmt.Errorf("publish to %s: %w", key, err)
	case !acked:
		return fmt.Errorf("publish to %s: %w", key, errRefused)
	}
	return nil
}

// seconds returns a time as the formats have it.
func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }
