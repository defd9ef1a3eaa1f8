package millrace

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// outcome is what becomes of a delivery.
type outcome struct {
	stream  string // that gets a record before the delivery is settled, or ""
	record  []byte
	requeue bool   // hand it back
	reject  bool   // no worker can do anything with it
	status  string // of its metric, or ""
	class   string // of its error, if it has one
	died    error  // it was given up: the death hooks are told
}

// circumstances are what an outcome depends on beside the job and the error.
type circumstances struct {
	now       time.Time
	stopping  bool
	cancelled bool
	retryIn   func(count int, err error, job *RawJob) time.Duration // the handler's own backoff, or nil
}

// judge says what becomes of a job whose handler returned err.
func judge(j *RawJob, err error, c circumstances) outcome {
	var (
		kill  killError
		later retryInError
		drop  discardError
	)
	switch {
	case err == nil:
		return outcome{status: wire.MetricSuccess}
	case errors.As(err, &drop):
		return outcome{status: wire.MetricDiscarded}
	case errors.As(err, &kill):
		return bury(j, err, wire.ReasonKilled, c.now)
	case c.stopping && (errors.Is(err, ErrHandBack) || errors.Is(err, ErrStopping)):
		return outcome{requeue: true}
	case c.cancelled:
		return outcome{status: wire.MetricDiscarded}
	case j.Attempt >= j.MaxAttempts:
		return exhaust(j, err, c.now)
	case errors.As(err, &later):
		return retry(j, err, c.now, later.after)
	}
	return retry(j, err, c.now, backoff(j, err, c.retryIn))
}

// backoff is how long a failed job waits: the handler's own answer, if it has one that makes sense.
func backoff(j *RawJob, err error, own func(int, error, *RawJob) time.Duration) time.Duration {
	if own != nil {
		if after := ask(own, j, err); after > 0 {
			return after
		}
	}
	return wire.Backoff(j.RetryCount, rand.IntN)
}

func ask(own func(int, error, *RawJob) time.Duration, j *RawJob, err error) (after time.Duration) {
	defer func() {
		if recover() != nil {
			after = 0
		}
	}()
	return own(j.RetryCount, err, j)
}

func retry(j *RawJob, err error, now time.Time, after time.Duration) outcome {
	return sized(outcome{
		stream: wire.Retries, record: retryRecord(j, err, now, now.Add(after)), status: wire.MetricFailed, class: errorClass(err),
	}, err)
}

func exhaust(j *RawJob, err error, now time.Time) outcome {
	if !j.bury {
		return outcome{status: wire.MetricDiscarded, class: errorClass(err), died: err}
	}
	return bury(j, err, wire.ReasonExhausted, now)
}

func bury(j *RawJob, err error, reason string, now time.Time) outcome {
	return sized(outcome{
		stream: wire.DeadJobs, record: deadRecord(j, err, reason, now), status: wire.MetricDead, class: errorClass(err), died: err,
	}, err)
}

// sized rejects what would be too large to be read: the sidecar buries it, shortened.
func sized(o outcome, err error) outcome {
	if len(o.record) <= wire.MaxRecord {
		return o
	}
	return outcome{reject: true, status: wire.MetricDead, class: o.class, died: err}
}

type namedError struct{ class, text string }

func (e namedError) Error() string      { return e.text }
func (e namedError) ErrorClass() string { return e.class }

// expire is the outcome of a job that is past its time before it begins.
func expire(j *RawJob, now time.Time) outcome {
	o := outcome{status: wire.MetricExpired, class: "expired"}
	if j.bury {
		o.stream, o.record = wire.DeadJobs, deadRecord(j, namedError{"expired", "expired before it began"}, wire.ReasonExpired, now)
	}
	return o
}

// poisoned is the outcome of a job that killed too many workers.
func poisoned(j *RawJob, deaths int, now time.Time) outcome {
	return bury(j, namedError{"poison", fmt.Sprintf("its worker died %d times while it ran", deaths)}, wire.ReasonPoison, now)
}
