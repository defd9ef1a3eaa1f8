package httpapi

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// activeLease is a lease that a worker ends or extends.
type activeLease struct {
	id    string
	given wire.Lease      // what the id says
	entry *tracker.Stored // nil if this sidecar does not know it
}

// activeLease returns the lease in the path. It waits for one that has just begun.
func (l *leasesAPI) activeLease(in *problem.Request) (a activeLease, err error) {
	a.id = in.PathParam("id")
	in.Query()
	checkReason(in, "")
	if in.Err() != nil {
		return a, in.Err()
	}
	var ok bool
	if a.given, ok = wire.ParseLeaseID(a.id); !ok {
		return a, noLease()
	}
	a.entry, err = l.await(in.Request().Context(), &a)
	return a, err
}

func noLease() error {
	return problem.New(http.StatusNotFound, "no lease has this id, or it ended too long ago to be known")
}

// await waits for a lease that this sidecar may not have read yet; nil if it does not find it. It
// can end a lease that it does not know, but not count what was done.
func (l *leasesAPI) await(ctx context.Context, a *activeLease) (entry *tracker.Stored, err error) {
	limit := readBackLimit
	if l.leader.view.CaughtUp(wire.Journal, wire.ScheduledJobs) {
		limit -= max(0, l.now().Sub(a.given.At))
	}
	l.leader.readBack(ctx, limit, func() bool {
		var found []*tracker.Stored
		if found, err = l.entries.Find(wire.ScheduledJobs, a.id); err != nil || len(found) > 0 {
			if len(found) > 0 {
				entry = found[0]
			}
			return true
		}
		var happened *wire.Happened
		happened, err = l.entries.LastOutcome(wire.ScheduledJobs, a.id)
		return err != nil || happened != nil
	})
	return entry, err
}

func (l *leasesAPI) ack(in *problem.Request) error {
	a, err := l.activeLease(in)
	if err != nil {
		return err
	}
	in.Body(&struct{}{})
	if in.Err() != nil {
		return in.Err()
	}
	if err := l.freeSlot(in.Request().Context(), &a); err != nil {
		return err
	}
	repeated, err := l.end(in, &a, wire.LeaseAck+a.id)
	if err == nil && !repeated {
		l.count(in, &a, wire.MetricSuccess, "")
	}
	return err
}

// freeSlot reports that the job of a lease has ended, if it holds a slot. The lease ends only then:
// a crash in between brings the job back, and the worker that gets it drops it.
func (l *leasesAPI) freeSlot(ctx context.Context, a *activeLease) error {
	if a.entry == nil || a.entry.Slot == "" {
		return nil
	}
	m, err := wire.End{Type: wire.TypeEnded, Slot: a.entry.Slot, Process: "lease", At: wire.Seconds(l.now())}.Message()
	if err != nil {
		return err
	}
	return l.publishFailure(ctx, &m)
}

// end makes the leader delete a lease. repeated reports that it had done so before.
func (l *leasesAPI) end(in *problem.Request, a *activeLease, command string) (repeated bool, err error) {
	if in.Err() != nil {
		return false, in.Err()
	}
	if repeated, err = l.entries.CarriedOut(command); err != nil || repeated {
		return repeated, err
	}
	return l.command(in, a, wire.Command{ID: command, Command: wire.CommandDelete})
}

// command makes the leader do something to a lease. repeated reports that it had done so before.
func (l *leasesAPI) command(in *problem.Request, a *activeLease, cmd wire.Command) (repeated bool, err error) {
	id := cmd.ID
	cmd.Stream, cmd.JID = wire.ScheduledJobs, a.id
	cmd = sign(in, cmd)
	cmd.ID = id
	limit := time.NewTimer(readBackLimit)
	defer limit.Stop()
	for {
		reply, p := l.leader.send(in, cmd)
		switch {
		case p == nil:
			return reply.Repeated, nil
		case p.Happened != nil && p.Status == http.StatusNotFound:
			return false, leaseOver(p.Happened)
		case p.Status == http.StatusNotFound && a.entry == nil:
			return false, noLease()
		case p.Status != http.StatusNotFound && p.Status != http.StatusConflict:
			return false, p
		}
		select { // the leader has not read the lease yet, or is changing it now
		case <-time.After(lookAgain):
		case <-limit.C:
			return false, p
		case <-in.Request().Context().Done():
			return false, in.Request().Context().Err()
		}
	}
}

// leaseOver says why a lease has ended.
func leaseOver(happened *wire.Happened) error {
	reason := "the lease was ended before: it was " + happened.What
	switch {
	case reachedQueue[happened.What]:
		reason = "the lease ran out: the job went back to its queue"
	case happened.What == wire.OpExpired:
		reason = "the lease ran out, and the job has expired"
	}
	p := problem.New(http.StatusConflict, "%s", reason)
	p.Happened = happened
	return p
}

func (l *leasesAPI) extend(in *problem.Request) error {
	a, err := l.activeLease(in)
	if err != nil {
		return err
	}
	var body struct {
		Lasts *int64 `json:"lease_ms"`
	}
	in.Body(&body)
	lasts := lastsOf(in, body.Lasts)
	return l.extendTo(in, &a, l.now().Add(lasts))
}

func (l *leasesAPI) extendTo(in *problem.Request, a *activeLease, until time.Time) error {
	changes := fmt.Appendf(nil, `{"at":%s}`, secondsText(wire.Seconds(until)))
	_, err := l.command(in, a, wire.Command{ID: wire.LeaseExtend + rand.Text(), Command: wire.CommandChange, Changes: changes})
	return err
}

type leaseFailure struct {
	Class     string   `json:"error_class"`
	Message   string   `json:"error_message"`
	Backtrace string   `json:"backtrace"`
	RetryIn   *float64 `json:"retry_in"` // seconds
	Kill      bool     `json:"kill"`
}

const (
	longestRetry = 100 * 365 * 24 * 3600 // a hundred years, in seconds, as for backoffs
	holdFor      = 30 * time.Second      // that a lease lasts while its failure is recorded
)

func readFailure(in *problem.Request) (f leaseFailure) {
	in.Body(&f)
	if f.RetryIn != nil && !(*f.RetryIn >= 0 && *f.RetryIn <= longestRetry) {
		in.BadRequest("member retry_in must be a number of seconds from 0 to %d", int64(longestRetry))
	}
	return f
}

// fail makes a leased job a retry or a dead job, as a worker would. First the lease is extended, so
// that the job cannot return to its queue meanwhile; it ends when the record is confirmed. A crash
// before that repeats the job, and loses nothing. Concurrent calls make one record.
func (l *leasesAPI) fail(in *problem.Request) error {
	a, err := l.activeLease(in)
	if err != nil {
		return err
	}
	f := readFailure(in)
	if in.Err() != nil {
		return in.Err()
	}
	_, err, _ = l.failing.Do(a.id, func() (any, error) { return nil, l.failOnce(in, &a, &f) })
	return err
}

func (l *leasesAPI) failOnce(in *problem.Request, a *activeLease, f *leaseFailure) error {
	command := wire.LeaseFail + a.id
	if repeated, err := l.entries.CarriedOut(command); err != nil || repeated {
		return err
	}
	ctx := in.Request().Context()
	if a.entry == nil {
		return l.unknown(ctx, a)
	}
	m, status, err := l.failureRecord(ctx, a, f)
	if err != nil {
		return err
	}
	until := l.now().Add(holdFor)
	if a.entry.At.After(until) {
		until = a.entry.At
	}
	err = l.extendTo(in, a, until)
	if over := (*problem.Problem)(nil); errors.As(err, &over) && over.Happened != nil {
		_, err = l.end(in, a, command) // the lease is over: no error, if this very command ended it
		return err
	}
	if err != nil {
		return err
	}
	if err := l.publishFailure(ctx, m); err != nil {
		return err
	}
	if m == nil {
		if err := l.freeSlot(ctx, a); err != nil {
			return err
		}
	}
	repeated, err := l.end(in, a, command)
	if err == nil && !repeated {
		l.count(in, a, status, f.Class)
	}
	return err
}

// unknown says why this sidecar knows no lease.
func (l *leasesAPI) unknown(ctx context.Context, a *activeLease) error {
	happened, err := l.entries.LastOutcome(wire.ScheduledJobs, a.id)
	if err != nil {
		return err
	}
	if happened != nil {
		return leaseOver(happened)
	}
	if behind := l.health.checkViews(ctx); behind != "" { // the lease may be there
		return problem.New(http.StatusServiceUnavailable, "nothing was done: %s; ask again, or another sidecar", behind)
	}
	return noLease()
}

// failureRecord returns the record of a failure, nil for a dropped job, and the attempt's status.
func (l *leasesAPI) failureRecord(ctx context.Context, a *activeLease, f *leaseFailure) (m *wire.Message, status string, err error) {
	raw, err := l.records.of(ctx, a.entry)
	if err != nil {
		return nil, "", err
	}
	e, err := wire.ParseEntry(wire.ScheduledJobs, a.entry.Offset, raw)
	if err != nil {
		return nil, "", err
	}
	failure := wire.Failure{JID: e.Job.JID, RetryCount: e.Job.RetryCount, ErrorClass: f.Class, ErrorMessage: f.Message, Backtrace: f.Backtrace}
	now := l.now()
	exhausted := e.Job.RetryCount >= e.Job.Retry
	var record []byte
	stream := wire.DeadJobs
	switch {
	case f.Kill:
		status, record = wire.MetricDead, failure.Dead(e.Job.Queue, e.Job.Raw, wire.ReasonKilled, now)
	case exhausted && !e.Job.Dead:
		return nil, wire.MetricDiscarded, nil
	case exhausted:
		status, record = wire.MetricDead, failure.Dead(e.Job.Queue, e.Job.Raw, wire.ReasonExhausted, now)
	default:
		after := wire.Backoff(e.Job.RetryCount, mathrand.IntN)
		if f.RetryIn != nil {
			after = time.Duration(*f.RetryIn * float64(time.Second))
		}
		stream, status, record = wire.Retries, wire.MetricFailed, failure.Retry(e.Job.Queue, e.Job.Raw, now, now.Add(after))
	}
	if len(record) > wire.MaxRecord {
		return nil, "", problem.BadRequest("with this error the record would have %d bytes, at most %d are read", len(record), wire.MaxRecord)
	}
	out := entryMessage(stream, &e.Job, a.entry.Trace, record, a.entry.Slot)
	out.Timestamp = now
	return &out, status, nil
}

func (l *leasesAPI) publishFailure(ctx context.Context, m *wire.Message) error {
	if m == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, commandBudget)
	defer cancel()
	if err := l.publish(ctx, *m); err != nil {
		return problem.Unavailable(err, "the failure was not written down: the lease lasts on, repeat it")
	}
	return nil
}

// count publishes the metric that a worker would. A failure is logged only: the lease has ended.
func (l *leasesAPI) count(in *problem.Request, a *activeLease, status, errorClass string) {
	if a.entry == nil {
		return
	}
	now := l.now()
	body, err := json.Marshal(wire.MetricRecord{
		Type: "job_metric", Timestamp: wire.Seconds(now), JobClass: a.entry.Class, Queue: a.entry.Queue,
		DurationMS: max(0, now.Sub(a.given.At).Milliseconds()), Status: status, WorkerIdentity: "lease of " + auth.PrincipalOf(in.Request()).Name,
		JID: a.entry.Leased, Attempt: a.entry.Attempt + 1, ErrorClass: errorClass,
	})
	if err == nil {
		ctx, cancel := context.WithTimeout(in.Request().Context(), commandBudget)
		defer cancel()
		err = l.publish(ctx, wire.Message{Key: wire.JobMetrics, Timestamp: now, Body: body})
	}
	if err != nil {
		l.log.Warn("httpapi: the metric of a leased job is lost", "lease", a.id, "error", err)
	}
}
