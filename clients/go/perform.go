package millrace

import (
	"context"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/clients/go/wire"
)

// Status says how an attempt ended that Perform ran.
type Status string

// Statuses of an attempt.
const (
	StatusSuccess Status = wire.MetricSuccess
	StatusFailed  Status = wire.MetricFailed // it will be retried
	StatusDead    Status = wire.MetricDead   // given up, and kept as a dead job
	// By Discard or by a cancellation, or given up and not kept.
	StatusDiscarded  Status = wire.MetricDiscarded
	StatusExpired    Status = wire.MetricExpired // not run, because it was past its ExpiresAt
	StatusHandedBack Status = "handed back"      // back in its queue
	StatusRejected   Status = "rejected"         // its bytes are not a job
)

// Outcome is what became of a job that Perform ran.
type Outcome struct {
	Status  Status
	Err     error     // why the job failed, expired or was rejected; or nil
	RetryAt time.Time // when a job that failed is due again
}

// Perform runs one attempt of a job without a broker, as if its bytes had been delivered from a
// queue. It is for tests and test helpers: see package millracetest.
//
// Everything except the broker works as in Run: middleware, timeouts, RetryIn, logs, and the hooks
// Failure and Death. To cancel the job, end ctx with the cause ErrCancelled.
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
