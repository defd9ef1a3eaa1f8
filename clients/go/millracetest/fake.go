package millracetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	millrace "github.com/millrace-jobs/millrace/clients/go"
)

// Job is a job that was enqueued.
type Job struct {
	JID     string
	Class   string
	Queue   string
	At      time.Time       // when it is due; zero means now
	Attempt int             // the next attempt, from 1; of a dead job, the last one
	Args    json.RawMessage // as a handler gets them
	Body    []byte          // the job, as it would be published
	Err     error           // of its last attempt, if that failed
}

// Fake collects jobs. It is safe for concurrent use.
type Fake struct {
	pusher
	definer
	mu      sync.Mutex
	jobs    []Job
	retries []Job
	dead    []Job
	running map[string]context.CancelCauseFunc // by jid
	keys    uniqueKeys
}

// Inline runs each job when it is enqueued, even one that is scheduled. The caller gets the error
// of an attempt that fails. There are no retries.
type Inline struct {
	pusher
	definer
	keys uniqueKeys
}

var (
	_ millrace.Enqueuer = (*Fake)(nil)
	_ millrace.Enqueuer = (*Inline)(nil)
	_ millrace.Definer  = (*Fake)(nil)
	_ millrace.Definer  = (*Inline)(nil)
)

// NewFake returns a Fake that runs jobs in a worker's handlers. The worker may be nil if no job is
// run.
func NewFake(worker *millrace.Worker) *Fake {
	f := &Fake{running: map[string]context.CancelCauseFunc{}}
	f.pusher = pusher{worker: worker, take: func(_ context.Context, j Job) (millrace.Decision, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		decision := f.keys.decide(j, f.remove)
		if !decision.Duplicate {
			f.jobs = append(f.jobs, j)
		}
		return decision, nil
	}}
	return f
}

// NewInline returns an Inline that runs jobs in a worker's handlers.
func NewInline(worker *millrace.Worker) *Inline {
	i := &Inline{}
	i.pusher = pusher{worker: worker, take: func(ctx context.Context, j Job) (millrace.Decision, error) {
		decision := i.keys.decide(j, func(string) bool { return false })
		if decision.Duplicate {
			return decision, nil
		}
		i.keys.begins(j)
		defer i.keys.ends(j)
		o := i.perform(ctx, j)
		if o.Status == millrace.StatusHandedBack {
			return decision, millrace.ErrHandBack
		}
		return decision, o.Err
	}}
	return i
}

// Enqueued returns the args of all jobs of a kind that were enqueued and not drained.
func Enqueued[T millrace.JobArgs](t testing.TB, f *Fake) []T {
	t.Helper()
	var all []T
	kind, err := millrace.KindOf[T]()
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range f.Jobs(kind) {
		var args []T
		if err := json.Unmarshal(j.Args, &args); err != nil || len(args) != 1 {
			t.Fatalf("the args of %s are %s, which is not one %T: %v", j.Class, j.Args, args, err)
		}
		all = append(all, args[0])
	}
	return all
}

// Jobs returns the jobs that were enqueued and not drained. With classes, it returns only jobs of
// these.
func (f *Fake) Jobs(classes ...string) []Job { return f.list(&f.jobs, classes) }

// Retries returns the jobs that failed and wait for a retry. At is when the retry would be due.
func (f *Fake) Retries(classes ...string) []Job { return f.list(&f.retries, classes) }

// Dead returns the jobs that were given up or had expired, and are kept as dead jobs. Err is the
// reason.
func (f *Fake) Dead(classes ...string) []Job { return f.list(&f.dead, classes) }

func (f *Fake) list(jobs *[]Job, classes []string) (found []Job) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, j := range *jobs {
		if len(classes) == 0 || slices.Contains(classes, j.Class) {
			found = append(found, j)
		}
	}
	return found
}

// remove removes an enqueued job that has not run, for a later one with the same key.
func (f *Fake) remove(jid string) bool {
	i := slices.IndexFunc(f.jobs, func(j Job) bool { return j.JID == jid && j.Attempt == 1 })
	if i >= 0 {
		f.jobs = slices.Delete(f.jobs, i, i+1)
	}
	return i >= 0
}

// Clear removes all jobs.
func (f *Fake) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.jobs, f.retries, f.dead = nil, nil, nil
	f.keys.clear()
}

// Cancel cancels a running job, as the web UI does: its context ends with ErrCancelled. Call it
// from a handler, or from another goroutine while Drain runs. It reports whether the job was
// running.
func (f *Fake) Cancel(jid string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	cancel := f.running[jid]
	if cancel != nil {
		cancel(millrace.ErrCancelled)
	}
	return cancel != nil
}

// Drain runs the enqueued jobs in order, even those that are scheduled for later, and the jobs that
// they enqueue. It continues after a job that fails, and returns the errors of all. A job that its
// handler discards is not an error.
func (f *Fake) Drain(ctx context.Context) error {
	var errs []error
	var handedBack []Job
	for ctx.Err() == nil {
		next, found := f.next()
		if !found {
			break
		}
		f.keys.begins(next)
		o := f.run(ctx, next)
		if o.Status == millrace.StatusHandedBack {
			handedBack = append(handedBack, next)
			continue
		}
		if err := f.settle(next, o); err != nil {
			errs = append(errs, fmt.Errorf("%s %s, attempt %d: %w", next.Class, next.JID, next.Attempt, err))
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.jobs = append(handedBack, f.jobs...)
	return errors.Join(append(errs, ctx.Err())...)
}

// Retry runs the jobs that wait for a retry, as Drain does, without waiting until they are due. A
// job that fails again waits for its next retry.
func (f *Fake) Retry(ctx context.Context) error {
	f.mu.Lock()
	f.jobs, f.retries = append(f.retries, f.jobs...), nil
	f.mu.Unlock()
	return f.Drain(ctx)
}

func (f *Fake) next() (Job, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.jobs) == 0 {
		return Job{}, false
	}
	next := f.jobs[0]
	f.jobs = f.jobs[1:]
	return next, true
}

func (f *Fake) run(ctx context.Context, j Job) millrace.Outcome {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f.mu.Lock()
	f.running[j.JID] = cancel
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.running, j.JID)
	}()
	return f.perform(ctx, j)
}

// settle moves a job that has run to its list, and returns its error.
func (f *Fake) settle(j Job, o millrace.Outcome) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	j.Err = o.Err
	switch o.Status {
	case millrace.StatusFailed:
		body, err := sjson.SetBytes(j.Body, "retry_count", j.Attempt)
		if err != nil {
			return err
		}
		j.Body, j.At = body, o.RetryAt
		j.Attempt++
		f.retries = append(f.retries, j)
		return o.Err
	case millrace.StatusDead:
		f.dead = append(f.dead, j)
	case millrace.StatusExpired:
		if gjson.GetBytes(j.Body, "dead").Type != gjson.False {
			f.dead = append(f.dead, j)
		}
		o.Err = nil
	}
	f.keys.ends(j)
	return o.Err
}

// pusher is the common part of Fake and Inline: it checks a job and takes it.
type pusher struct {
	worker *millrace.Worker
	take   func(context.Context, Job) (millrace.Decision, error)
}

func (p pusher) perform(ctx context.Context, j Job) millrace.Outcome {
	if p.worker == nil {
		panic("millracetest: there is no worker to run jobs: give one to NewFake or NewInline")
	}
	return p.worker.Perform(ctx, j.Body, j.Queue)
}

func (p pusher) push(ctx context.Context, n millrace.EnqueueParams) (jid string, decision millrace.Decision, err error) {
	jid, body, err := n.Message(time.Now())
	if err != nil {
		return "", decision, err
	}
	j := Job{JID: jid, Class: n.Class(), Body: body, Attempt: 1}
	// A scheduled job is inside a record. A unique one has its time in the gate.
	found := gjson.GetManyBytes(body, "class", "job", "scheduled_at", "gate.at")
	at := found[3]
	if !found[0].Exists() {
		j.Body, at = []byte(found[1].Raw), found[2]
	}
	if at.Exists() {
		j.At = time.UnixMicro(int64(at.Float() * 1e6))
	}
	j.Queue = gjson.GetBytes(j.Body, "queue").String()
	j.Args = json.RawMessage(gjson.GetBytes(j.Body, "args").Raw)
	decision, err = p.take(ctx, j)
	return jid, decision, err
}

// Enqueue checks a job and takes it. It returns the jid of a duplicate too, which is not taken.
func (p pusher) Enqueue(ctx context.Context, args millrace.JobArgs, options *millrace.EnqueueOptions) (string, error) {
	jid, _, err := p.push(ctx, paramsOf(args, options))
	return jid, err
}

func paramsOf(args millrace.JobArgs, options *millrace.EnqueueOptions) millrace.EnqueueParams {
	n := millrace.EnqueueParams{Args: args}
	if options != nil {
		n.Options = *options
	}
	return n
}

// EnqueueIn takes a job that is due after a duration.
func (p pusher) EnqueueIn(ctx context.Context, after time.Duration, args millrace.JobArgs, options *millrace.EnqueueOptions) (string, error) {
	return p.EnqueueAt(ctx, time.Now().Add(after), args, options)
}

// EnqueueAt takes a job that is due at a time.
func (p pusher) EnqueueAt(ctx context.Context, at time.Time, args millrace.JobArgs, options *millrace.EnqueueOptions) (string, error) {
	var with millrace.EnqueueOptions
	if options != nil {
		with = *options
	}
	with.ScheduledAt = at
	return p.Enqueue(ctx, args, &with)
}

// PublishAt takes the job that delivers a message at a time.
func (p pusher) PublishAt(ctx context.Context, at time.Time, message millrace.Message, options *millrace.EnqueueOptions) (string, error) {
	return p.EnqueueAt(ctx, at, message, options)
}

// PublishIn takes the job that delivers a message after a duration.
func (p pusher) PublishIn(ctx context.Context, after time.Duration, message millrace.Message, options *millrace.EnqueueOptions) (string, error) {
	return p.EnqueueIn(ctx, after, message, options)
}

// EnqueueBulk takes many jobs.
func (p pusher) EnqueueBulk(ctx context.Context, jobs []millrace.EnqueueParams) ([]millrace.Result, error) {
	results := make([]millrace.Result, len(jobs))
	var errs []error
	for i, job := range jobs {
		results[i].JID, _, results[i].Err = p.push(ctx, job)
		errs = append(errs, results[i].Err)
	}
	return results, errors.Join(errs...)
}
