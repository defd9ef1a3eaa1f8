package millrace

import (
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/clients/go/wire"
)

// report logs an attempt that did not end well, and calls the failure hooks. lost means that the
// outcome has no effect, because the broker gives the job to another worker.
func (w *Worker) report(job *RawJob, o outcome, lost bool) {
	switch kept := o.record != nil || o.reject; {
	case o.requeue && !lost:
		w.cfg.Logger.Info("millrace: job handed back", about(job)...)
	case o.err == nil: // it succeeded, or was not a job
	case o.failed || o.died:
		attributes := append(about(job), o.next(lost)...)
		attributes = append(attributes, "error_class", o.class, "error", o.err.Error())
		if lines := backtrace(o.err); len(lines) > 0 {
			attributes = append(attributes, "stack", strings.Join(firstLines(lines, max(job.backtrace, defaultBacktrace)), "\n"))
		}
		w.cfg.Logger.Warn("millrace: job failed", attributes...)
	case o.status == wire.MetricExpired && kept:
		w.cfg.Logger.Warn("millrace: job expired", append(about(job), "next", "dead")...)
	case o.status == wire.MetricExpired:
		w.cfg.Logger.Info("millrace: job expired", append(about(job), "next", "discarded")...)
	default:
		w.cfg.Logger.Info("millrace: job discarded", append(about(job), "reason", reasonOf(o.err))...)
	}
	if o.failed {
		for _, hooks := range w.hooks {
			w.callWith("failure", hooks.Failure, job, o.err)
		}
	}
}

// about returns the attributes of a log line about an attempt.
func about(job *RawJob) []any {
	return []any{"class", job.Class, "jid", job.JID, "queue", job.Queue, "attempt", job.Attempt}
}

// reasonOf returns why a job was discarded.
func reasonOf(err error) string {
	if drop := (discardError{}); errors.As(err, &drop) {
		return drop.reason
	}
	return err.Error()
}

// next returns the attributes that say what comes after a failure.
func (o outcome) next(lost bool) []any {
	switch {
	case lost:
		return []any{"next", "redelivery"}
	case o.status == wire.MetricFailed:
		return []any{"next", "retry", slog.Time("retry_at", o.retryAt.Round(time.Second)),
			slog.Duration("retry_in", time.Until(o.retryAt).Round(time.Second))}
	case o.status == wire.MetricDead:
		return []any{"next", "dead"}
	}
	return []any{"next", "discarded"}
}

// logStart logs that the worker consumes for the first time.
func (w *Worker) logStart() {
	b := w.describe()
	w.cfg.Logger.Info("millrace: worker started", "version", Version, "identity", w.identity, "queues", b.Queues, "concurrency", b.Concurrency)
}
