package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/cli/flags"
	"github.com/millrace-jobs/millrace/internal/cli/humantime"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/wire"
)

type enqueueCmd struct {
	flags.Broker `group:"Connection flags:"`
	output.Result
	jobArgs
}

// Run publishes a job as any producer does, and prints its jid once the broker has confirmed it.
func (c *enqueueCmd) Run(ctx context.Context, out output.Streams) error {
	j, err := c.job(time.Now())
	if err != nil {
		return err
	}
	body, err := encode(j)
	if err != nil {
		return err
	}
	err = publish(ctx, c.Broker, wire.Message{
		Exchange: wire.ExchangeDirect, Key: j.Queue, MessageID: j.JID, Type: j.Class, Timestamp: time.Now(),
		Priority: uint8(j.Priority), // checked to be 0 to 10
		Body:     body,
	})
	if errors.Is(err, broker.ErrReturned) {
		return fmt.Errorf("the job was not enqueued: there is no %s%s, and no policy on %s that keeps jobs for queues to come; "+
			"declare the queue and bind it to %s, or let a sidecar with access to the management API set the policy (millrace doctor says more)",
			wire.QueuePrefix, j.Queue, wire.ExchangeDirect, wire.ExchangeDirect)
	}
	if err != nil {
		return err
	}
	return c.Printer(out).Done(output.Fields{"jid": j.JID, "class": j.Class, "queue": j.Queue}, "%s", j.JID)
}

type scheduleCmd struct {
	flags.Broker `group:"Connection flags:"`
	output.Result
	jobArgs

	At string `xor:"when" required:"" placeholder:"TIME" help:"When: 2026-12-24T18:00:00+01:00, 2026-12-24 18:00 (local time), 2026-12-24, 18:00 (the next), or seconds since 1970."`
	In string `xor:"when" required:"" placeholder:"DURATION" help:"How long from now: 90s, 15m, 2h30m, 3d."`
}

// Run publishes a scheduled job as any producer does, and prints its jid once the broker has confirmed it.
func (c *scheduleCmd) Run(ctx context.Context, out output.Streams) error {
	now := time.Now()
	at, err := c.when(now)
	if err != nil {
		return err
	}
	j, err := c.job(now)
	if err != nil {
		return err
	}
	body, err := encode(scheduledJob{Type: "scheduled_job", JID: j.JID, ScheduledAt: wire.Seconds(at), Job: j})
	if err != nil {
		return err
	}
	err = publish(ctx, c.Broker, wire.Message{Key: wire.ScheduledJobs, MessageID: j.JID, Type: j.Class, Timestamp: now, Body: body})
	if errors.Is(err, broker.ErrReturned) {
		return fmt.Errorf("the job was not scheduled: the broker has no stream %s; start a sidecar (millrace serve), which makes it", wire.ScheduledJobs)
	}
	if err != nil {
		return err
	}
	return c.Printer(out).Done(output.Fields{"jid": j.JID, "class": j.Class, "queue": j.Queue}, "%s", j.JID)
}

func (c *scheduleCmd) when(now time.Time) (time.Time, error) {
	if c.In != "" {
		d, err := humantime.ParseDuration(c.In)
		if err != nil {
			return time.Time{}, fmt.Errorf("--in: %w", err)
		}
		return now.Add(d), nil
	}
	at, err := humantime.Parse(c.At, now)
	if err != nil {
		return time.Time{}, fmt.Errorf("--at: %w", err)
	}
	return at, nil
}

// publishLimit is how long a command waits for the broker.
const publishLimit = 30 * time.Second

// publish sends one message over a connection of its own and waits for the broker's word on it.
func publish(ctx context.Context, s flags.Broker, m wire.Message) error {
	ctx, cancel := context.WithTimeout(ctx, publishLimit)
	defer cancel()
	conn, err := broker.Dial(ctx, broker.Config{AMQPURL: s.AMQPURL, Name: "millrace enqueue", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer conn.Close()
	publisher, err := conn.Publisher(ctx)
	if err != nil {
		return err
	}
	err = publisher.SendMandatory(ctx, m)
	if errors.Is(err, broker.ErrLost) {
		return lost(ctx, publisher, m, err)
	}
	return err
}

// lost says why a publisher died under a message: most likely the broker closed it, with a reason.
func lost(ctx context.Context, publisher *broker.Publisher, m wire.Message, err error) error {
	select {
	case <-publisher.Done():
	case <-ctx.Done():
		return err
	}
	reason := publisher.Err()
	if strings.Contains(fmt.Sprint(reason), "NOT_FOUND") {
		return fmt.Errorf("the broker has no exchange %s: start a sidecar (millrace serve), which makes it", m.Exchange)
	}
	return fmt.Errorf("%w: %w", err, reason)
}
