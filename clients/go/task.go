package millrace

import (
	"context"
	"errors"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// task is the work on one delivery.
type task struct {
	w       *Worker
	s       *session
	lane    *lane
	lost    <-chan struct{} // closed with the channel: the broker delivers the job again
	d       amqp.Delivery
	queue   string
	begun   time.Time
	claimed atomic.Bool     // a goroutine settles the delivery
	settled chan struct{}   // closed when the delivery is settled
	base    context.Context // parent of the handler's context

	mu     sync.Mutex
	job    *RawJob
	since  time.Time // when its handler began
	cancel context.CancelCauseFunc
	ended  error // cause for which its context must end
}

// current returns the job, or nil before its handler runs.
func (t *task) current() *RawJob {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.job
}

// end ends the handler's context, now or when it begins.
func (t *task) end(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended == nil {
		t.ended = cause
	}
	if t.cancel != nil {
		t.cancel(cause)
	}
}

// work runs the job of the delivery and settles the delivery.
func (t *task) work() {
	job, err := parseJob(&t.d, t.queue)
	if err != nil {
		t.w.cfg.Logger.Error("millrace: a message is no job, it is rejected", "queue", t.queue, "error", err)
		t.settle(nil, outcome{reject: true})
		return
	}
	job.stopping = t.w.stopped.c
	if o, ok := t.mayRun(); !ok {
		t.settle(job, o)
		return
	}
	suspect, deaths, ok := t.suspect(job)
	if !ok {
		t.settle(job, outcome{requeue: true})
		return
	}
	t.run(job, deaths, func(o outcome) {
		if t.settle(job, o) && suspect && !o.requeue {
			t.s.ledger.ended(keyOf(job))
		}
	})
}

// suspect checks a redelivered job. ok reports whether the job may begin.
func (t *task) suspect(job *RawJob) (suspect bool, deaths int, ok bool) {
	if !t.d.Redelivered || t.w.cfg.MaxDeaths < 0 {
		return false, 0, true
	}
	deaths, ok = t.s.ledger.begin(t, job)
	return true, deaths, ok
}

// run runs the job, and passes its outcome to then.
func (t *task) run(job *RawJob, deaths int, then func(outcome)) {
	now := time.Now()
	if limit := t.w.cfg.MaxDeaths; limit > 0 && deaths >= limit {
		then(t.measured(job, now, now, poisoned(job, deaths, now)))
		return
	}
	if !job.expiresAt.IsZero() && job.expiresAt.Before(now) {
		then(t.measured(job, now, now, expire(job, now)))
		return
	}
	h := t.w.handlerOf(job.Class)
	if h == nil {
		then(t.measured(job, now, now, judge(job, unknownClassError{job.Class}, circumstances{now: now, log: t.w.cfg.Logger})))
		return
	}
	t.call(job, h, func(err, cause error) {
		end := time.Now()
		if err != nil && errors.Is(cause, ErrStopping) {
			err = errors.Join(ErrStopping, err)
		}
		o := judge(job, err, circumstances{
			now: end, stopping: t.w.stopped.isClosed(), cancelled: errors.Is(cause, ErrCancelled), retryIn: h.opts.RetryIn, log: t.w.cfg.Logger,
		})
		then(t.measured(job, now, end, o))
	})
}

// call calls the handler, and passes its error to then. cause is why the handler's context ended,
// if it ended before the handler returned.
func (t *task) call(job *RawJob, h *handler, then func(err, cause error)) {
	ctx, cancel := context.WithCancelCause(context.WithValue(t.base, jobKey{}, job))
	defer cancel(nil)
	limit := job.timeout
	if limit == 0 {
		limit = h.opts.Timeout
	}
	if limit > 0 {
		var release context.CancelFunc
		ctx, release = context.WithTimeoutCause(ctx, limit, timeoutError{limit})
		defer release()
	}
	t.mu.Lock()
	t.job, t.since, t.cancel = job, time.Now(), cancel
	early := t.ended
	t.mu.Unlock()
	if early != nil {
		cancel(early)
	}
	protect(ctx, job, h.run, func(err error) {
		cause := context.Cause(ctx)
		var late timeoutError
		if err != nil && errors.As(cause, &late) && !final(err) {
			err = late
		}
		then(err, cause)
	})
}

// final reports whether a handler decided itself what becomes of its job.
func final(err error) bool {
	var drop discardError
	var kill killError
	return errors.As(err, &drop) || errors.As(err, &kill)
}

// protect turns a panic, and a handler that ends its goroutine, into an error. It calls then in a
// deferred function. To run each handler in its own goroutine would double the cost of a job.
func protect(ctx context.Context, job *RawJob, run Handler, then func(error)) {
	err := error(namedError{"Goexit", "the function ended its goroutine"})
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{value: p, stack: stack()}
		}
		then(err)
	}()
	if err = run(ctx, job); err != nil {
		// An error that panics in one of its methods does so here.
		_, _, _ = err.Error(), ErrorClass(err), backtrace(err)
	}
}

// guard calls a function of the program in its own goroutine. It returns an error if the function
// panics or ends the goroutine.
func guard(call func()) error {
	failed := make(chan error, 1)
	go protect(context.Background(), nil, func(context.Context, *RawJob) error {
		call()
		return nil
	}, func(err error) { failed <- err })
	return <-failed
}

func stack() []string {
	lines := strings.Split(strings.TrimSpace(string(debug.Stack())), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "panic(") && i+2 <= len(lines) {
			return lines[i+2:]
		}
	}
	return lines
}

// measured adds the outcome to the metrics.
func (t *task) measured(job *RawJob, begin, end time.Time, o outcome) outcome {
	if o.status != "" {
		t.w.metrics.add(job, begin, end, o)
	}
	return o
}
