package millrace

import (
	"context"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/clients/go/wire"
)

// Status says how an attempt that Perform ran has ended.
type Status string

// How an attempt may end.
const (
	StatusSuccess    Status = wire.MetricSuccess
	StatusFailed     Status = wire.MetricFailed    // it is retried
	StatusDead       Status = wire.MetricDead      // it was given up, and is kept as a dead job
	StatusDiscarded  Status = wire.MetricDiscarded // by Discard, by a cancellation, or when it was given up and is not kept
	StatusExpired    Status = wire.MetricExpired   // it was not run, for it was past its ExpiresAt
	StatusHandedBack Status = "handed back"        // it is in its queue again
	StatusRejected   Status = "rejected"           // its bytes are no job
)

// Outcome is what became of a job that Perform ran.
type Outcome struct {
	Status  Status
	Err     error     // why it failed, expired or was rejected; nil if it was not
	RetryAt time.Time // when a job that failed is due again
}

// Perform runs one attempt of a job as if its bytes had been delivered from a queue, without a broker. It is for tests and test helpers:
// see package millracetest.
//
// Everything but the broker is as it is in Run: middleware, timeouts, RetryIn, logs, and the hooks Failure and Death. If ctx ends with
// the cause ErrCancelled, the job was cancelled.
func (w *Worker) Perform(ctx context.Context, body []byte, queue string) Outcome {
	job, err := parseJob(&amqp.Delivery{Body: body}, queue)
	if err != nil {
		return Outcome{Status: StatusRejected, Err: err}
	}
	job.stopping = w.stopped.c
	t := &task{w: w, base: ctx}
	ended := make(chan outcome, 1)
	go t.run(job, 0, func(o outcome) { ended <- o }) // the handler may end its goroutine
	o := <-ended
	w.report(job, o, false)
	if o.died {
		for _, hooks := range w.hooks {
			w.callWith("death", hooks.Death, job, o.err)
		}
	}
	return o.public()
}

func (o outcome) public() Outcome {
	if o.requeue {
		return Outcome{Status: StatusHandedBack}
	}
	p := Outcome{Status: Status(o.status), RetryAt: o.retryAt}
	if o.failed || o.died || o.status == wire.MetricExpired {
		p.Err = o.err
	}
	return p
}
