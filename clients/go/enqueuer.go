package millrace

import (
	"context"
	"time"
)

// Enqueuer is implemented by Client and by the fakes of package millracetest. Code that takes an
// Enqueuer can be tested without a broker.
type Enqueuer interface {
	Enqueue(ctx context.Context, args JobArgs, options *EnqueueOptions) (jid string, err error)
	EnqueueAt(ctx context.Context, at time.Time, args JobArgs, options *EnqueueOptions) (jid string, err error)
	EnqueueIn(ctx context.Context, after time.Duration, args JobArgs, options *EnqueueOptions) (jid string, err error)
	EnqueueUnique(ctx context.Context, args JobArgs, options *EnqueueOptions) (Decision, error)
	PublishAt(ctx context.Context, at time.Time, message Message, options *EnqueueOptions) (jid string, err error)
	PublishIn(ctx context.Context, after time.Duration, message Message, options *EnqueueOptions) (jid string, err error)
	EnqueueBulk(ctx context.Context, jobs []EnqueueParams) ([]Result, error)
}

// Definer is implemented by Client and by the fakes of package millracetest.
type Definer interface {
	Define(ctx context.Context, source string, jobs ...PeriodicJob) (Defined, error)
	DefineLimits(ctx context.Context, source string, limits ...Limit) (Defined, error)
	DefineQueues(ctx context.Context, source string, queues ...GovernedQueue) (Defined, error)
}

var (
	_ Enqueuer = (*Client)(nil)
	_ Definer  = (*Client)(nil)
)

// Message checks a job as a Client does, and returns its jid and the bytes that a Client would
// publish. It is for test helpers.
func (p EnqueueParams) Message(now time.Time) (jid string, body []byte, err error) {
	r, err := p.withDefaults().prepare(now)
	return r.jid, r.Body, err
}
