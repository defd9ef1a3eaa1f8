package millrace

import (
	"context"
	"time"
)

// Enqueuer is what a Client and the fakes of millracetest have in common: what code takes that enqueues jobs and is to be tested.
type Enqueuer interface {
	Enqueue(ctx context.Context, class string, args []any, options ...Options) (string, error)
	EnqueueAt(ctx context.Context, at time.Time, class string, args []any, options ...Options) (string, error)
	EnqueueIn(ctx context.Context, after time.Duration, class string, args []any, options ...Options) (string, error)
	EnqueueBulk(ctx context.Context, jobs []NewJob) ([]Result, error)
	Push(ctx context.Context, job NewJob) (string, error)
}

var _ Enqueuer = (*Client)(nil)

// Message checks a job as a Client does, and gives its jid and the bytes that it would publish. It is for test helpers.
func (n NewJob) Message(now time.Time) (jid string, body []byte, err error) {
	r, err := n.prepare(now)
	return r.jid, r.Body, err
}

// Perform runs a job's bytes through a worker's handlers and middleware, as if it had been delivered from that queue: for tests, without a
// broker. The error is the handler's.
func (w *Worker) Perform(ctx context.Context, body []byte, queue string) error {
	return w.perform(ctx, body, queue)
}
