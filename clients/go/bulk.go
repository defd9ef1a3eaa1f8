package millrace

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Result is the outcome of one job of a bulk.
type Result struct {
	// JID is empty if the job was not enqueued. With ErrUnconfirmed it is set, because the job may
	// have been.
	JID string
	Err error
}

// EnqueueBulk publishes many jobs, in order, and returns when the broker has answered all of them.
// It returns a result for each job, and an error that joins the errors of the jobs that failed.
func (c *Client) EnqueueBulk(ctx context.Context, jobs []EnqueueParams) ([]Result, error) {
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	b := &bulk{client: c, results: make([]Result, len(jobs)), jobs: make([]ready, len(jobs)), sent: map[int]bool{}, parts: 1}
	if len(c.cfg.Middleware) > 0 {
		for from := 0; from < len(jobs); from += window {
			b.parts = (len(jobs) - from + window - 1) / window
			b.throughMiddleware(ctx, jobs[from:min(from+window, len(jobs))], from)
		}
	} else {
		b.prepare(jobs)
		b.run(ctx)
	}
	return b.results, b.joined(jobs)
}

// bulk is many publishes in one window.
type bulk struct {
	client  *Client
	results []Result
	jobs    []ready
	todo    []int        // jobs that are not answered yet, in order
	sent    map[int]bool // jobs that may have arrived

	returned map[int]error // jobs that the broker returned in this round
	// parts is how many parts of the bulk are still to be published, with this one. They share the
	// time.
	parts int
}

func (b *bulk) prepare(jobs []EnqueueParams) {
	now := time.Now()
	for i, job := range jobs {
		r, err := job.withDefaults().prepare(now)
		if err != nil {
			b.results[i].Err = err
			continue
		}
		b.add(i, r)
	}
}

func (b *bulk) add(i int, r ready) {
	b.jobs[i] = r
	b.todo = append(b.todo, i)
}

// run publishes until all jobs are answered.
func (b *bulk) run(ctx context.Context) {
	tries := b.client.tries(ctx)
	tries.share(b.parts)
	for len(b.todo) > 0 {
		err := b.round(ctx)
		if err == nil && len(b.returned) > 0 {
			if err = tries.wait(ctx); errors.Is(err, errNoTime) {
				b.giveUpReturned(tries)
				err = nil
			}
		}
		if err != nil {
			b.fail(err, tries)
		}
	}
}

// round publishes the remaining jobs on one connection. An error ends the bulk.
func (b *bulk) round(ctx context.Context) error {
	b.returned = map[int]error{}
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
		if len(left) > len(b.returned) {
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

// unsentError ends a sender. indexes are the jobs that it has not sent.
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

// settle waits for an answer, and reports whether the job must be published again.
func (b *bulk) settle(ctx context.Context, w waiting) (again bool) {
	err := w.wait(ctx)
	switch {
	case err == nil:
		b.results[w.index].JID = b.jobs[w.index].jid
		return false
	case isReturned(err):
		b.returned[w.index] = err
		return true
	case errors.Is(err, ErrRefused):
		b.results[w.index].Err = err
		return false
	}
	b.sent[w.index] = true
	return true
}

// giveUpReturned gives up the jobs that the broker returned.
func (b *bulk) giveUpReturned(tries *tries) {
	left := b.todo[:0]
	for _, i := range b.todo {
		if returned := b.returned[i]; returned != nil {
			b.giveUp(i, tries.over(returned, errNoTime))
		} else {
			left = append(left, i)
		}
	}
	b.todo = left
}

// fail gives up all jobs that are not answered.
func (b *bulk) fail(err error, tries *tries) {
	for _, i := range b.todo {
		if returned := b.returned[i]; returned != nil {
			b.giveUp(i, tries.over(returned, err))
		} else {
			b.giveUp(i, err)
		}
	}
	b.todo = nil
}

func (b *bulk) giveUp(i int, err error) {
	err = b.jobs[i].ended(err, b.sent[i])
	b.results[i] = Result{jidOf(err), err}
}

// joined adds to each error which job it belongs to, and joins the errors.
func (b *bulk) joined(jobs []EnqueueParams) error {
	var errs []error
	for i := range b.results {
		if r := &b.results[i]; r.Err != nil {
			r.Err = fmt.Errorf("job %d, %s: %w", i, jobs[i].Class(), r.Err)
			errs = append(errs, r.Err)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("millrace: %d of %d jobs were not enqueued: %w", len(errs), len(b.results), errors.Join(errs...))
}
