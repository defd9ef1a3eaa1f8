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

// task is one delivery on its way through the worker.
type task struct {
	w       *Worker
	s       *session
	lane    *lane
	lost    <-chan struct{} // its channel is gone: the broker has given the job to somebody else
	d       amqp.Delivery
	queue   string
	begun   time.Time
	claimed atomic.Bool     // a goroutine is settling it
	settled chan struct{}   // closed when that is done
	base    context.Context // of the handler's context

	mu     sync.Mutex
	job    *RawJob
	since  time.Time // when its handler began
	cancel context.CancelCauseFunc
	ended  error // why its context is to end
}

// current is the job once its handler runs.
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

// work takes the delivery from its beginning to its end.
func (t *task) work() {
	job, err := parseJob(&t.d, t.queue)
	if err != nil {
		t.w.cfg.Logger.Error("millrace: a message is no job, it is rejected", "queue", t.queue, "error", err)
		t.settle(nil, outcome{reject: true})
		return
	}
	job.stopping = t.w.stopped.c
	suspect, deaths, ok := t.suspect(job)
	if !ok {
		t.settle(job, outcome{requeue: true})
		return
	}
	t.run(job, deaths, func(o outcome) {
		t.settle(job, o)
		if suspect {
			t.s.ledger.ended(keyOf(job))
		}
	})
}

// suspect looks into what was delivered before. It tells whether the job may go on.
func (t *task) suspect(job *RawJob) (suspect bool, deaths int, ok bool) {
	if !t.d.Redelivered || t.w.cfg.MaxDeaths < 0 {
		return false, 0, true
	}
	deaths, ok = t.s.ledger.begin(t, job)
	return true, deaths, ok
}

// run runs the job, and gives its outcome to then.
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

// call calls the handler, and then with its error. The cause says why its context ended, if it did before the handler.
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

// final tells whether a handler said itself what is to become of its job.
func final(err error) bool {
	var drop discardError
	var kill killError
	return errors.As(err, &drop) || errors.As(err, &kill)
}

// protect turns a panic, and a handler that ends its goroutine, into an error. So what comes then is deferred: in a goroutine of its own
// the handler would cost as much again as all the rest.
func protect(ctx context.Context, job *RawJob, run Handler, then func(error)) {
	err := error(namedError{"Goexit", "the function ended its goroutine"})
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{value: p, stack: stack()}
		}
		then(err)
	}()
	if err = run(ctx, job); err != nil {
		_, _, _ = err.Error(), errorClass(err), backtrace(err) // an error that panics when it is asked does so here
	}
}

// guard calls a function of the program's, and returns an error if it panics or ends its goroutine. For that it gets one of its own.
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

// measured puts the outcome into the metrics.
func (t *task) measured(job *RawJob, begin, end time.Time, o outcome) outcome {
	if o.status != "" {
		t.w.metrics.add(job, begin, end, o)
	}
	return o
}
