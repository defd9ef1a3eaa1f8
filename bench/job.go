package main

import (
	"context"
	"fmt"
	"maps"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// queue is the queue for all jobs.
const (
	queueName = "bench"
	queue     = wire.QueuePrefix + queueName
)

// jid returns the id of job i. All ids have the same length, and so have all records.
func jid(i int) string { return fmt.Sprintf("job-%08d", i) }

// record returns an entry in the form that the specification defines. As a job it has about 300
// bytes.
func record(i int, due time.Time) []byte {
	return fmt.Appendf(nil, `{"type":"scheduled_job","jid":%q,"scheduled_at":%.6f,"job":{"class":"SendWelcomeMail","args":[1%07d,"someone@example.com",`+
		`{"template":"welcome","locale":"en","campaign":"spring","note":"what a job carries along, so that it has the size of one"}],`+
		`"queue":%q,"retry":25,"enqueued_at":1700000000.123,"tags":["mail","welcome"]}}`, jid(i), wire.Seconds(due), i, queueName)
}

// schedule publishes n entries with a plain client. due returns the due time of each.
func schedule(v *vhost, n int, due func(i int) time.Time) error { return scheduleFrom(v, 0, n, due) }

// scheduleFrom publishes entries first to end-1.
func scheduleFrom(v *vhost, first, end int, due func(i int) time.Time) error {
	return publishEntries(v, first, end, func(i int) []byte { return record(i, due(i)) })
}

func publishEntries(v *vhost, first, end int, record func(i int) []byte) error {
	p, err := newPublisher(v)
	if err != nil {
		return err
	}
	defer p.close()
	for i := first; i < end; i++ {
		m := amqp.Publishing{DeliveryMode: amqp.Persistent, ContentType: "application/json", Body: record(i)}
		if err := p.publish("", wire.ScheduledJobs, m); err != nil {
			return err
		}
	}
	return p.drain()
}

// template is a job that Millrace has published. The measurements of the broker alone publish the
// same.
type template struct{ job amqp.Delivery }

// warmUp makes the sidecar fire two jobs. The first one makes it declare the queue. The second
// takes the same route as all later ones.
func warmUp(ctx context.Context, v *vhost) (t template, err error) {
	p, err := newPublisher(v)
	if err != nil {
		return t, err
	}
	defer p.close()
	if err := p.publish("", wire.ScheduledJobs, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: record(1, time.Unix(1, 0))}); err != nil {
		return t, err
	}
	err = wait(ctx, startWithin, "the queue is declared and bound", func() (bool, error) {
		names, err := v.queues(ctx)
		return names[queue], err
	})
	if err != nil {
		return t, err
	}
	if _, err := get(ctx, p.plain); err != nil {
		return t, err
	}
	if err := p.publish("", wire.ScheduledJobs, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: record(2, time.Unix(1, 0))}); err != nil {
		return t, err
	}
	if t.job, err = get(ctx, p.plain); err != nil {
		return t, err
	}
	if t.job.Headers[wire.HeaderOp] != wire.OpFired {
		return t, fmt.Errorf("the second job did not come straight from the scheduler: headers %v", t.job.Headers)
	}
	return t, nil
}

// get takes one job from the queue.
func get(ctx context.Context, p *plain) (d amqp.Delivery, err error) {
	err = wait(ctx, startWithin, "a job comes", func() (ok bool, err error) {
		d, ok, err = p.ch.Get(queue, true)
		return ok, err
	})
	return d, err
}

// message returns job i as Millrace would fire it, with the same bytes, headers and properties.
func (t template) message(i int) amqp.Publishing {
	d := &t.job
	headers := maps.Clone(d.Headers)
	headers[wire.HeaderOffset], headers[wire.HeaderSeq], headers[wire.HeaderJID] = int64(i), int64(i), jid(i)
	return amqp.Publishing{
		Headers: headers, ContentType: d.ContentType, DeliveryMode: d.DeliveryMode, Priority: d.Priority, MessageId: jid(i),
		Timestamp: d.Timestamp, Type: d.Type, UserId: d.UserId, AppId: d.AppId, Body: d.Body,
	}
}
