package millrace

import (
	"context"
	"errors"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// settle publishes the record of an outcome, and answers the delivery only after the record is
// confirmed. It returns false if the delivery was handed back before.
func (t *task) settle(job *RawJob, o outcome) bool {
	if !t.claimed.CompareAndSwap(false, true) {
		return false
	}
	defer close(t.settled)
	t.w.report(job, o, t.isLost())
	if o.record != nil && !t.publish(job, o) || o.ends() && !t.reportEnd() {
		return true
	}
	t.answer(o)
	if o.died {
		for _, hooks := range t.w.hooks {
			t.w.callWith("death", hooks.Death, job, o.err)
		}
	}
	return true
}

// isLost reports whether the broker delivers the job again, so that its outcome here does not
// count.
func (t *task) isLost() bool {
	select {
	case <-t.lost:
		return true
	case <-t.s.lost:
		return true
	default:
		return false
	}
}

// publish publishes an outcome's record, and repeats that until it is confirmed, however long that
// takes. It gives up when the delivery is lost, because then the broker delivers the job again.
func (t *task) publish(job *RawJob, o outcome) bool {
	m := message{key: o.stream, Publishing: publishing(job.JID, job.Class, job.Priority, job.Traceparent(), time.Now(), o.record)}
	if t.w.cfg.Record != nil {
		t.w.cfg.Record(job).addTo(&m.Publishing)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-t.lost:
			cancel()
		case <-t.s.lost:
			cancel()
		case <-ctx.Done():
		}
	}()
	var pause pauses
	for {
		err := t.s.pub.publish(ctx, m)
		switch {
		case err == nil:
			return true
		case errors.Is(err, errLost) || ctx.Err() != nil:
			return false
		}
		t.w.cfg.Logger.Error("millrace: the broker does not take what became of a job; it is tried again", "jid", job.JID, "stream", o.stream, "error", err)
		if pause.wait(ctx) != nil {
			return false
		}
	}
}

func (p RecordProperties) addTo(m *amqp.Publishing) {
	m.UserId = p.UserID
	if m.Headers == nil && len(p.Headers) > 0 {
		m.Headers = amqp.Table{}
	}
	for name, value := range p.Headers {
		m.Headers[name] = value
	}
}

// answer answers the delivery. An error means that the channel is lost, which the broker notices
// too.
func (t *task) answer(o outcome) {
	switch {
	case o.requeue:
		_ = t.d.Nack(false, true)
	case o.reject:
		_ = t.d.Reject(false)
	default:
		_ = t.d.Ack(false)
	}
}

// handBack returns a job that has not ended to its queue.
func (t *task) handBack() {
	if t.claimed.CompareAndSwap(false, true) {
		t.answer(outcome{requeue: true})
		if job := t.current(); job != nil {
			t.w.cfg.Logger.Warn("millrace: job handed back, its handler did not end within the stop timeout", about(job)...)
		}
		close(t.settled)
	}
}
