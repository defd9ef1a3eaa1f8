package millracetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	millrace "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/wire"
)

// Job is a job that was enqueued.
type Job struct {
	JID   string
	Class string
	Queue string
	At    time.Time // zero: at once
	Body  []byte    // the job, as it would be published
}

// Fake collects jobs. It is safe for concurrent use.
type Fake struct {
	pusher
	mu   sync.Mutex
	jobs []Job
}

// Inline runs each job when it is enqueued; a failure is the caller's. Scheduled jobs run at once too.
type Inline struct{ pusher }

var (
	_ millrace.Enqueuer = (*Fake)(nil)
	_ millrace.Enqueuer = (*Inline)(nil)
)

// NewFake makes a fake that drains into a worker's handlers. worker may be nil if nothing is drained.
func NewFake(worker *millrace.Worker) *Fake {
	f := &Fake{}
	f.pusher = pusher{worker: worker, take: func(_ context.Context, j Job) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.jobs = append(f.jobs, j)
		return nil
	}}
	return f
}

// NewInline makes an Inline that runs a worker's handlers.
func NewInline(worker *millrace.Worker) *Inline {
	i := &Inline{}
	i.pusher = pusher{worker: worker, take: func(ctx context.Context, j Job) error { return i.perform(ctx, j) }}
	return i
}

// Jobs lists what was enqueued and not drained, of some classes or of all.
func (f *Fake) Jobs(classes ...string) (found []Job) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, j := range f.jobs {
		wanted := len(classes) == 0
		for _, c := range classes {
			wanted = wanted || c == j.Class
		}
		if wanted {
			found = append(found, j)
		}
	}
	return found
}

// Clear forgets all jobs.
func (f *Fake) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.jobs = nil
}

// Drain runs what was enqueued, and what that enqueues, in order. It goes on after failures and joins them.
func (f *Fake) Drain(ctx context.Context) error {
	var errs []error
	for {
		f.mu.Lock()
		if len(f.jobs) == 0 || ctx.Err() != nil {
			f.mu.Unlock()
			return errors.Join(append(errs, ctx.Err())...)
		}
		next := f.jobs[0]
		f.jobs = f.jobs[1:]
		f.mu.Unlock()
		if err := f.perform(ctx, next); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", next.Class, err))
		}
	}
}

// pusher is what both do: check a job, and take it.
type pusher struct {
	worker *millrace.Worker
	take   func(context.Context, Job) error
}

func (p pusher) perform(ctx context.Context, j Job) error {
	return p.worker.Perform(ctx, j.Body, j.Queue)
}

func (p pusher) push(ctx context.Context, n millrace.EnqueueParams) (string, error) {
	jid, body, err := n.Message(time.Now())
	if err != nil {
		return "", err
	}
	j := Job{JID: jid, Class: n.Class(), Queue: n.Options.Queue, At: n.Options.ScheduledAt, Body: body}
	if j.Queue == "" {
		j.Queue = wire.DefaultQueue
	}
	if !j.At.IsZero() {
		var entry struct {
			Job json.RawMessage `json:"job"`
		}
		if err := json.Unmarshal(body, &entry); err != nil {
			return "", err
		}
		j.Body = entry.Job
	}
	return jid, p.take(ctx, j)
}

// Enqueue takes a job.
func (p pusher) Enqueue(ctx context.Context, args millrace.JobArgs, options *millrace.EnqueueOptions) (string, error) {
	n := millrace.EnqueueParams{Args: args}
	if options != nil {
		n.Options = *options
	}
	return p.push(ctx, n)
}

// EnqueueIn takes a job for later.
func (p pusher) EnqueueIn(ctx context.Context, after time.Duration, args millrace.JobArgs, options *millrace.EnqueueOptions) (string, error) {
	return p.EnqueueAt(ctx, time.Now().Add(after), args, options)
}

// EnqueueAt takes a job for a time.
func (p pusher) EnqueueAt(ctx context.Context, at time.Time, args millrace.JobArgs, options *millrace.EnqueueOptions) (string, error) {
	var with millrace.EnqueueOptions
	if options != nil {
		with = *options
	}
	with.ScheduledAt = at
	return p.Enqueue(ctx, args, &with)
}

// EnqueueBulk takes many.
func (p pusher) EnqueueBulk(ctx context.Context, jobs []millrace.EnqueueParams) ([]millrace.Result, error) {
	results := make([]millrace.Result, len(jobs))
	var errs []error
	for i, job := range jobs {
		results[i].JID, results[i].Err = p.push(ctx, job)
		errs = append(errs, results[i].Err)
	}
	return results, errors.Join(errs...)
}
