package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/internal/pause"
)

const (
	leaderInbox = "jobs.leader"
	directReply = "amq.rabbitmq.reply-to"
	answerLimit = 5 * time.Second
)

// periodic are the periodic jobs of the demo: one that is due while a person is watching, and one
// that is due at night.
var periodic = []map[string]any{
	{"name": "demo.clean-up", "every": 30, "overlap": "skip", "job": map[string]any{"class": cleanUp, "args": []any{}, "queue": queueLow}},
	{
		"name": "demo.daily-report", "cron": "0 3 * * *", "tz": "Europe/Stockholm",
		"job": map[string]any{"class": dailyReport, "args": []any{"sales"}, "queue": queueDefault},
	},
}

// limits are the limits of the demo. Jobs of an upload wait for each other.
var limits = []map[string]any{{"name": "demo.one-import", "classes": []string{importOrders}, "per": []string{"key"}, "concurrency": 1}}

// governed are the governed queues of the demo. Shops take turns with their exports.
var governed = []map[string]any{{"name": queueExports, "key": "args.0", "ahead": 2, "max_waiting": 1000}}

// define has the leader set the periodic jobs, limits and governed queues, once a sidecar leads.
// Then it waits until ctx ends.
func (d *Demo) define(ctx context.Context, conn *amqp.Connection) error {
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	replies, err := ch.Consume(directReply, "", true, false, false, false, nil)
	if err != nil {
		return fmt.Errorf("consume replies: %w", err)
	}
	returned := ch.NotifyReturn(make(chan amqp.Return, 1))
	body, err := json.Marshal(map[string]any{"id": newJID(), "command": "define", "definitions": map[string]any{
		"source": "demo", "periodic_jobs": periodic, "limits": limits, "queues": governed,
	}})
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		message := amqp.Publishing{ContentType: "application/json", ReplyTo: directReply, CorrelationId: newJID(), Body: body}
		if err := ch.PublishWithContext(ctx, "", leaderInbox, true, false, message); err != nil {
			return err
		}
		select {
		case reply, open := <-replies:
			if !open {
				return errors.New("consumer ended")
			}
			if isDone(reply.Body) {
				<-ctx.Done()
			} else {
				d.Log.Warn("demo: periodic jobs, limits and governed queues are not defined", "answer", string(reply.Body))
			}
		case <-returned: // no sidecar leads
		case <-time.After(answerLimit):
		case <-ctx.Done():
		}
		_ = pause.For(ctx, reconnect)
	}
	return ctx.Err()
}

// isDone reports whether the leader has carried out a command.
func isDone(reply []byte) bool {
	var answer struct{ Status int }
	return json.Unmarshal(reply, &answer) == nil && answer.Status/100 == 2
}
