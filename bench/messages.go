package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// application is the exchange and the queue of an application, to which messages are delayed.
const application = "app"

// targetMessages is the part of the broker's own throughput that messages due at one instant must
// reach. Each passes the broker three times: to its job's queue, to the sidecar, and to the
// exchange.
const targetMessages = 0.2

// messageBody is the body of each delayed message.
var messageBody = bytes.Repeat([]byte("text "), 40)

// measureMessages does what measureLateness and measureBurst do, with delayed messages.
func measureMessages(ctx context.Context, b *bench, v *vhost) error {
	p, err := newPublisher(v)
	if err != nil {
		return err
	}
	defer p.close()
	if err := declareApplication(p.ch); err != nil {
		return err
	}
	n := b.jobsInAll()
	late, took, err := b.delayed(ctx, v, p.plain, n)
	if err != nil {
		return err
	}
	own, ownTook, err := b.undelayed(ctx, v, p)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("delayed messages, %d due a second", b.size.perSecond)
	b.table.add(what+", p50", millis, atMost(targetP50.Seconds()), quantile(late, 0.5).Seconds(), quantile(own, 0.5).Seconds())
	b.table.add(what+", p99", millis, atMost(targetP99.Seconds()), quantile(late, 0.99).Seconds(), quantile(own, 0.99).Seconds())
	burst := float64(b.size.burst)
	b.table.add(fmt.Sprintf("%d delayed messages due at one instant", b.size.burst), perSecond, ratioAtLeast(targetMessages), burst/took.Seconds(), burst/ownTook.Seconds())
	b.debug("messages", late, own)
	return nil
}

func declareApplication(ch *amqp.Channel) error {
	_, err := ch.QueueDeclare(application, true, false, false, false, nil)
	return errors.Join(err, ch.ExchangeDeclare(application, "topic", true, false, false, false, nil), ch.QueueBind(application, "#", application, false, nil))
}

// delayed returns how long after its due time each of n messages arrived, and how long after their
// due time all messages of a burst were in the queue.
func (b *bench) delayed(ctx context.Context, v *vhost, watch *plain, n int) (late []time.Duration, took time.Duration, err error) {
	s, err := b.startProcess(v, "", "--deliver-to", application)
	if err != nil {
		return nil, 0, err
	}
	if err := b.awaitLead(ctx, s); err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := delay(v, 1, func(int) time.Time { return time.Unix(1, 0) }); err != nil { // which has the queue of the jobs declared
		return nil, 0, err
	}
	if _, err := watch.filled(ctx, application, 1, startWithin); err != nil {
		return nil, 0, err
	}
	if _, err := watch.ch.QueuePurge(application, false); err != nil {
		return nil, 0, err
	}
	if late, err = b.late(ctx, v, "messages", application, n, func(due func(int) time.Time) error { return delay(v, n, due) }); err != nil {
		return nil, 0, err
	}
	due := time.Now().Add(burstAhead(b.size.burst)).Truncate(time.Microsecond)
	if err := delay(v, b.size.burst, func(int) time.Time { return due }); err != nil {
		return nil, 0, err
	}
	pause(ctx, time.Until(due))
	at, err := watch.filled(ctx, application, b.size.burst, 5*time.Minute)
	if err != nil {
		return nil, 0, err
	}
	_, err = watch.ch.QueuePurge(application, false)
	return late, at.Round(0).Sub(due.Round(0)), err
}

// undelayed publishes the same messages without Millrace.
func (b *bench) undelayed(ctx context.Context, v *vhost, p *publisher) (own []time.Duration, took time.Duration, err error) {
	publish := func(i int) error { return p.publish(application, "a.b", ownMessage(i)) }
	own, err = b.underway(ctx, v, application, publish)
	if err != nil {
		return nil, 0, err
	}
	begin := time.Now()
	for i := range b.size.burst {
		if err := publish(i); err != nil {
			return nil, 0, err
		}
	}
	if err := p.drain(); err != nil {
		return nil, 0, err
	}
	at, err := p.filled(ctx, application, b.size.burst, 5*time.Minute)
	return own, at.Sub(begin), err
}

func ownMessage(i int) amqp.Publishing {
	return amqp.Publishing{DeliveryMode: amqp.Persistent, MessageId: jid(i), Headers: amqp.Table{"millrace-jid": jid(i)}, Body: messageBody}
}

// delay has n messages delayed. due returns the due time of each.
func delay(v *vhost, n int, due func(i int) time.Time) error {
	return publishEntries(v, 0, n, func(i int) []byte {
		return fmt.Appendf(nil, `{"type":"scheduled_job","jid":%[1]q,"scheduled_at":%.6[2]f,"job":{"jid":%[1]q,"class":%[3]q,"queue":%[4]q,"args":[`+
			`{"exchange":%[5]q,"routing_key":"a.b","body":%[6]q,"properties":{"message_id":%[1]q}}]}}`,
			jid(i), wire.Seconds(due(i)), wire.MessageClass, wire.MessageQueue, application, messageBody)
	})
}
