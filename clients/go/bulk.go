package millrace

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Result is what became of one job of many.
type Result struct {
	JID string // empty if the job was not enqueued; with ErrUnconfirmed it may have been, and the jid is there
	Err error
}

// EnqueueBulk publishes many jobs, in order, and returns when all are answered: a result for each, and an error that joins those of
// the jobs that failed.
func (c *Client) EnqueueBulk(ctx context.Context, jobs []EnqueueParams) ([]Result, error) {
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	results := make([]Result, len(jobs))
	if len(c.cfg.Middleware) > 0 {
		for i := range jobs {
			results[i].JID, results[i].Err = c.enqueue(ctx, &jobs[i])
		}
		return results, joined(results)
	}
	b := &bulk{client: c, results: results}
	b.prepare(jobs)
	for len(b.todo) > 0 {
		if err := b.round(ctx); err != nil {
			b.fail(err)
		}
	}
	return results, joined(results)
}

// bulk is many publishes in one window.
type bulk struct {
	client  *Client
	results []Result
	jobs    []ready
	todo    []int        // which are not answered yet, in order
	sent    map[int]bool // which may have arrived
}

func (b *bulk) prepare(jobs []EnqueueParams) {
	b.jobs, b.sent = make([]ready, len(jobs)), map[int]bool{}
	now := time.Now()
	for i, job := range jobs {
		r, err := job.prepare(now)
		if err != nil {
			b.results[i].Err = fmt.Errorf("job %d, %s: %w", i, job.Class(), err)
			continue
		}
		b.jobs[i] = r
		b.todo = append(b.todo, i)
	}
}

// round publishes what is left on one connection. An error ends it all.
func (b *bulk) round(ctx context.Context) error {
	pub, err := b.client.publisher(ctx)
	if err != nil {
		return err
	}
	answers := make(chan waiting, window)
	stop := make(chan error, 1)
	go func() {
		defer close(answers)
		stop <- b.send(ctx, pub, answers)
	}()
	var left []int
	for w := range answers {
		if again := b.settle(ctx, w); again {
			left = append(left, w.index)
		}
	}
	err = <-stop
	var unsent unsentError
	if errors.As(err, &unsent) {
		left, err = append(left, unsent.indexes...), unsent.cause
	}
	b.todo = left
	if errors.Is(err, errLost) || err == nil {
		if len(left) > 0 {
			b.client.forget(pub)
		}
		return ctx.Err()
	}
	return err
}

// waiting is a publish that was sent.
type waiting struct {
	index int
	*answer
}

// unsentError ends a sender.
type unsentError struct {
	cause   error
	indexes []int
}

func (e unsentError) Error() string { return e.cause.Error() }

func (b *bulk) send(ctx context.Context, pub *publisher, answers chan<- waiting) error {
	for n, i := range b.todo {
		a, err := pub.send(ctx, b.jobs[i].message)
		if err != nil {
			return unsentError{err, b.todo[n:]}
		}
		answers <- waiting{i, a}
	}
	return nil
}

// settle waits for an answer and tells whether the job is to be published again.
func (b *bulk) settle(ctx context.Context, w waiting) (again bool) {
	b.sent[w.index] = true
	err := w.wait(ctx)
	if err == nil {
		b.results[w.index].JID = b.jobs[w.index].jid
		return false
	}
	if errors.Is(err, ErrRefused) {
		b.results[w.index].Err = fmt.Errorf("job %d: %w", w.index, err)
		return false
	}
	return true
}

// fail gives up what is not answered.
func (b *bulk) fail(err error) {
	for _, i := range b.todo {
		err := b.jobs[i].ended(err, b.sent[i])
		b.results[i] = Result{jidOf(err), fmt.Errorf("job %d: %w", i, err)}
	}
	b.todo = nil
}

func joined(results []Result) error {
	var errs []error
	for _, r := range results {
		if r.Err != nil {
			errs = append(errs, r.Err)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("millrace: %d of %d jobs were not enqueued: %w", len(errs), len(results), errors.Join(errs...))
}
