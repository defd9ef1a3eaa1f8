package millrace

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/clients/go/wire"
)

// outcome is what becomes of a delivery.
type outcome struct {
	stream  string // gets a record before the delivery is settled; or ""
	record  []byte
	requeue bool      // return it to its queue
	reject  bool      // reject it: no worker can use it
	status  string    // of its metric, or ""
	class   string    // of its error, if it has one
	err     error     // why the job did not end well
	failed  bool      // the attempt failed with err: the failure hook is called
	died    bool      // the job was given up because of err: the death hook is called
	retryAt time.Time // when a job that is retried is due
}

// ends reports whether the job has ended: its delivery does not go back to its queue, and it was
// not dropped.
func (o outcome) ends() bool { return !o.requeue && (o.status != "" || o.reject) }

// circumstances are what an outcome depends on in addition to the job and the error.
type circumstances struct {
	now       time.Time
	stopping  bool
	cancelled bool
	retryIn   func(count int, err error, job *RawJob) time.Duration // of the handler, or nil
	log       *slog.Logger                                          // for a RetryIn that panics
}

// judge returns the outcome of a job whose handler returned err.
func judge(j *RawJob, err error, c circumstances) outcome {
	var (
		fatal killError
		later retryInError
		drop  discardError
	)
	switch {
	case err == nil:
		return outcome{status: wire.MetricSuccess}
	case errors.As(err, &drop):
		return outcome{status: wire.MetricDiscarded, err: drop}
	case errors.As(err, &fatal):
		return kill(j, err, c.now)
	case c.stopping && (errors.Is(err, ErrHandBack) || errors.Is(err, ErrStopping)):
		return outcome{requeue: true}
	case c.cancelled:
		return outcome{status: wire.MetricDiscarded, err: ErrCancelled}
	case j.Attempt >= j.MaxAttempts:
		return exhaust(j, err, c.now)
	case errors.As(err, &later):
		return retry(j, err, c.now, later.after)
	}
	return retry(j, err, c.now, c.backoff(j, err))
}

// backoff returns how long a failed job waits. It is the result of the handler's RetryIn if that is
// above 0, and otherwise the usual backoff.
func (c circumstances) backoff(j *RawJob, err error) time.Duration {
	if c.retryIn != nil {
		if after := c.ask(j, err); after > 0 {
			return after
		}
	}
	return wire.Backoff(j.RetryCount, rand.IntN)
}

// ask calls the handler's RetryIn, and returns 0 if it panics.
func (c circumstances) ask(j *RawJob, err error) (after time.Duration) {
	failure := guard(func() { after = c.retryIn(j.RetryCount, bare(err), j) })
	if failure != nil {
		c.log.Warn("millrace: RetryIn failed, the usual backoff is used", append(about(j), "error_class", ErrorClass(failure), "error", failure,
			"stack", strings.Join(firstLines(backtrace(failure), defaultBacktrace), "\n"))...)
		return 0
	}
	return after
}

func retry(j *RawJob, err error, now time.Time, after time.Duration) outcome {
	due := now.Add(after)
	return sized(outcome{
		stream: wire.Retries, record: retryRecord(j, err, now, due), status: wire.MetricFailed, class: ErrorClass(err),
		err: bare(err), failed: true, retryAt: due,
	})
}

func kill(j *RawJob, err error, now time.Time) outcome {
	o := bury(j, err, wire.ReasonKilled, now)
	o.failed = true
	return o
}

func exhaust(j *RawJob, err error, now time.Time) outcome {
	if !j.bury {
		return outcome{status: wire.MetricDiscarded, class: ErrorClass(err), err: bare(err), failed: true, died: true}
	}
	o := bury(j, err, wire.ReasonExhausted, now)
	o.failed = true
	return o
}

func bury(j *RawJob, err error, reason string, now time.Time) outcome {
	return sized(outcome{
		stream: wire.DeadJobs, record: deadRecord(j, err, reason, now), status: wire.MetricDead, class: ErrorClass(err),
		err: bare(err), died: true,
	})
}

// sized rejects a job whose record would be too large. The sidecar then buries the job, shortened.
func sized(o outcome) outcome {
	if len(o.record) <= wire.MaxRecord {
		return o
	}
	return outcome{reject: true, status: wire.MetricDead, class: o.class, err: o.err, failed: o.failed, died: true}
}

type namedError struct{ class, text string }

func (e namedError) Error() string      { return e.text }
func (e namedError) ErrorClass() string { return e.class }

// expire returns the outcome of a job that expired before it began.
func expire(j *RawJob, now time.Time) outcome {
	o := outcome{status: wire.MetricExpired, class: "expired", err: namedError{"expired", "expired before it began"}}
	if j.bury {
		o.stream, o.record = wire.DeadJobs, deadRecord(j, o.err, wire.ReasonExpired, now)
	}
	if len(o.record) > wire.MaxRecord {
		o.stream, o.record, o.reject = "", nil, true
	}
	return o
}

// poisoned returns the outcome of a job that killed too many workers.
func poisoned(j *RawJob, deaths int, now time.Time) outcome {
	return bury(j, namedError{"poison", fmt.Sprintf("its worker died %d times while it ran", deaths)}, wire.ReasonPoison, now)
}
