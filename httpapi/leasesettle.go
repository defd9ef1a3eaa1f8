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

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// held is a lease that is to be settled.
type held struct {
	id    string
	said  wire.Lease
	entry *tracker.Stored // nil if this sidecar does not know it
}

// leaseOf finds the lease in the path. One that has just begun may not have been read yet.
func (s *Server) leaseOf(c echo.Context) (h held, err error) {
	if h.id, err = problem.PathParam(c, "id"); err != nil {
		return h, err
	}
	if err := problem.NoParams(c); err != nil {
		return h, err
	}
	if _, err := reasonGiven(c, ""); err != nil {
		return h, err
	}
	var ok bool
	if h.said, ok = wire.ParseLeaseID(h.id); !ok {
		return h, noLease()
	}
	h.entry, err = s.awaitLease(c.Request().Context(), &h)
	return h, err
}

func noLease() error {
	return problem.New(http.StatusNotFound, "no lease has this id, or it ended too long ago to be known")
}

// awaitLease finds a lease that may be so new that this sidecar has not read it yet, as it may not have any while it reads what there was; nil
// if there is none, or none any more. Who does not know a lease can end it, but not count what was done.
func (s *Server) awaitLease(ctx context.Context, h *held) (entry *tracker.Stored, err error) {
	within := readBackWithin
	if s.cfg.View.Followed(wire.Journal, wire.ScheduledJobs) {
		within -= max(0, s.cfg.Now().Sub(h.said.At))
	}
	s.readBack(ctx, within, func() bool {
		var found []*tracker.Stored
		if found, err = s.cfg.Entries.Find(wire.ScheduledJobs, h.id); err != nil || len(found) > 0 {
			entry = first(found)
			return true
		}
		var happened *wire.Happened
		happened, err = s.cfg.Entries.Happened(wire.ScheduledJobs, h.id)
		return err != nil || happened != nil
	})
	return entry, err
}

func first(all []*tracker.Stored) *tracker.Stored {
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

// ackLease says that a leased job is done.
func (s *Server) ackLease(c echo.Context) error {
	h, err := s.leaseOf(c)
	if err != nil {
		return err
	}
	if err := problem.ReadBody(c, &struct{}{}); err != nil {
		return err
	}
	repeated, err := s.endLease(c, &h, wire.LeaseAck+h.id)
	if err != nil {
		return err
	}
	if !repeated {
		s.countLeased(c, &h, wire.MetricSuccess, "")
	}
	return c.NoContent(http.StatusNoContent)
}

// endLease has the leader forget a lease. repeated tells that it had done so before.
func (s *Server) endLease(c echo.Context, h *held, command string) (repeated bool, err error) {
	if repeated, err = s.cfg.Entries.CarriedOut(command); err != nil || repeated {
		return repeated, err
	}
	return s.commandLease(c, h, wire.Command{ID: command, Command: wire.CommandDelete})
}

// commandLease has the leader do something to a lease. repeated tells that it had done so before.
func (s *Server) commandLease(c echo.Context, h *held, cmd wire.Command) (repeated bool, err error) {
	id := cmd.ID
	cmd.Stream, cmd.JID = wire.ScheduledJobs, h.id
	if cmd, err = sign(c, cmd); err != nil {
		return false, err
	}
	cmd.ID = id
	limit := time.NewTimer(readBackWithin)
	defer limit.Stop()
	for {
		reply, p := s.sendFor(c, cmd)
		switch {
		case p == nil:
			return reply.Repeated, nil
		case p.Happened != nil && p.Status == http.StatusNotFound:
			return false, overLease(p.Happened)
		case p.Status == http.StatusNotFound && h.entry == nil:
			return false, noLease()
		case p.Status != http.StatusNotFound && p.Status != http.StatusConflict:
			return false, p
		}
		select { // the leader has not read it yet, or is just doing something to it
		case <-time.After(lookAgain):
		case <-limit.C:
			return false, p
		case <-c.Request().Context().Done():
			return false, c.Request().Context().Err()
		}
	}
}

// overLease says why a lease cannot be settled.
func overLease(happened *wire.Happened) error {
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

// extendLease has a lease end later.
func (s *Server) extendLease(c echo.Context) error {
	h, err := s.leaseOf(c)
	if err != nil {
		return err
	}
	var body struct {
		Lasts *int64 `json:"lease_ms"`
	}
	if err := problem.ReadBody(c, &body); err != nil {
		return err
	}
	lasts, err := lastsOf(body.Lasts)
	if err != nil {
		return err
	}
	if err := s.moveLease(c, &h, s.cfg.Now().Add(lasts)); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func (s *Server) moveLease(c echo.Context, h *held, until time.Time) error {
	changes := fmt.Appendf(nil, `{"at":%s}`, seconds(wire.Seconds(until)))
	_, err := s.commandLease(c, h, wire.Command{ID: wire.LeaseExtend + rand.Text(), Command: wire.CommandChange, Changes: changes})
	return err
}

// leaseFailure is how a leased job failed.
type leaseFailure struct {
	Class     string   `json:"error_class"`
	Message   string   `json:"error_message"`
	Backtrace string   `json:"backtrace"`
	RetryIn   *float64 `json:"retry_in"` // seconds
	Kill      bool     `json:"kill"`
}

// longestRetry is a hundred years, in seconds, as backoffs are.
const longestRetry = 100 * 365 * 24 * 3600

func readFailure(c echo.Context) (f leaseFailure, err error) {
	if err := problem.ReadBody(c, &f); err != nil {
		return f, err
	}
	if f.RetryIn != nil && !(*f.RetryIn >= 0 && *f.RetryIn <= longestRetry) {
		return f, problem.BadRequest("member retry_in must be a number of seconds from 0 to %d", longestRetry)
	}
	return f, nil
}

// holdFor is how long a lease lasts at least while its failure is written down.
const holdFor = 30 * time.Second

// failLease makes a leased job a retry or a dead job, as a worker would. The lease is made to last first, so that the job cannot go back to its
// queue meanwhile; it ends when the record has been confirmed. A crash before that repeats the job, and loses nothing. Who repeats the call
// while it is under way gets its answer: one failure makes one record.
func (s *Server) failLease(c echo.Context) error {
	h, err := s.leaseOf(c)
	if err != nil {
		return err
	}
	f, err := readFailure(c)
	if err != nil {
		return err
	}
	if _, err, _ := s.failing.Do(h.id, func() (any, error) { return nil, s.failOnce(c, &h, &f) }); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func (s *Server) failOnce(c echo.Context, h *held, f *leaseFailure) error {
	command := wire.LeaseFail + h.id
	if repeated, err := s.cfg.Entries.CarriedOut(command); err != nil || repeated {
		return err
	}
	if h.entry == nil {
		return s.unknownLease(c.Request().Context(), h)
	}
	m, status, err := s.failed(c.Request().Context(), h, f)
	if err != nil {
		return err
	}
	err = s.moveLease(c, h, later(h.entry.At, s.cfg.Now().Add(holdFor)))
	if over := (*problem.Problem)(nil); errors.As(err, &over) && over.Happened != nil {
		_, err = s.endLease(c, h, command) // this sidecar did not know that it is over: all is well if it was this very command that ended it
		return err
	}
	if err != nil {
		return err
	}
	if err := s.publishFailure(c.Request().Context(), m); err != nil {
		return err
	}
	repeated, err := s.endLease(c, h, command)
	if err == nil && !repeated {
		s.countLeased(c, h, status, f.Class)
	}
	return err
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (s *Server) unknownLease(ctx context.Context, h *held) error {
	happened, err := s.cfg.Entries.Happened(wire.ScheduledJobs, h.id)
	if err != nil {
		return err
	}
	if happened != nil {
		return overLease(happened)
	}
	if behind := s.checkViews(ctx); behind != "" { // it may be there all the same
		return problem.New(http.StatusServiceUnavailable, "nothing was done: %s; ask again, or another sidecar", behind)
	}
	return noLease()
}

// failed is the record that a failure makes, nil for a job that is dropped, and what becomes of its attempt.
func (s *Server) failed(ctx context.Context, h *held, f *leaseFailure) (m *wire.Message, status string, err error) {
	raw, err := s.record(ctx, h.entry)
	if err != nil {
		return nil, "", err
	}
	e, err := wire.ParseEntry(wire.ScheduledJobs, h.entry.Offset, raw)
	if err != nil {
		return nil, "", err
	}
	said := wire.Failure{JID: e.Job.JID, RetryCount: e.Job.RetryCount, ErrorClass: f.Class, ErrorMessage: f.Message, Backtrace: f.Backtrace}
	now := s.cfg.Now()
	exhausted := e.Job.RetryCount >= e.Job.Retry
	var record []byte
	stream := wire.DeadJobs
	switch {
	case f.Kill:
		status, record = wire.MetricDead, said.Dead(e.Job.Queue, e.Job.Raw, wire.ReasonKilled, now)
	case exhausted && !e.Job.Dead:
		return nil, wire.MetricDiscarded, nil
	case exhausted:
		status, record = wire.MetricDead, said.Dead(e.Job.Queue, e.Job.Raw, wire.ReasonExhausted, now)
	default:
		after := wire.Backoff(e.Job.RetryCount, mathrand.IntN)
		if f.RetryIn != nil {
			after = time.Duration(*f.RetryIn * float64(time.Second))
		}
		stream, status, record = wire.Retries, wire.MetricFailed, said.Retry(e.Job.Queue, e.Job.Raw, now, now.Add(after))
	}
	if len(record) > wire.MaxRecord {
		return nil, "", problem.BadRequest("with this error the record would have %d bytes, at most %d are read", len(record), wire.MaxRecord)
	}
	out := entryMessage(stream, &e.Job, h.entry.Trace, record)
	out.Timestamp = now
	return &out, status, nil
}

func (s *Server) publishFailure(ctx context.Context, m *wire.Message) error {
	if m == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, commandBudget)
	defer cancel()
	if err := s.cfg.Publish(ctx, *m); err != nil {
		return problem.Unavailable(err, "the failure was not written down: the lease lasts on, repeat it")
	}
	return nil
}

// countLeased writes the metric that a worker would. It is worth no error: the job is settled.
func (s *Server) countLeased(c echo.Context, h *held, status, errorClass string) {
	if h.entry == nil {
		return
	}
	now := s.cfg.Now()
	body, err := json.Marshal(wire.MetricRecord{
		Type: "job_metric", Timestamp: wire.Seconds(now), JobClass: h.entry.Class, Queue: h.entry.Queue,
		DurationMS: max(0, now.Sub(h.said.At).Milliseconds()), Status: status, WorkerIdentity: "lease of " + auth.PrincipalOf(c.Request()).Name,
		JID: h.entry.Leased, Attempt: h.entry.Attempt + 1, ErrorClass: errorClass,
	})
	if err == nil {
		ctx, cancel := context.WithTimeout(c.Request().Context(), commandBudget)
		defer cancel()
		err = s.cfg.Publish(ctx, wire.Message{Key: wire.JobMetrics, Timestamp: now, Body: body})
	}
	if err != nil {
		s.cfg.Log.Warn("httpapi: the metric of a leased job is lost", "lease", h.id, "error", err)
	}
}
