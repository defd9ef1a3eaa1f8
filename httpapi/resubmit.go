package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/wire"
)

// dismissRejected takes a rejected record off the list.
func (s *Server) dismissRejected(c echo.Context) error {
	j, err := s.rejectedOf(c)
	if err != nil {
		return err
	}
	reason, err := readReason(c)
	if err != nil {
		return err
	}
	return s.ask(c, wire.Command{Command: wire.CommandDismiss, Stream: j.Stream, Offset: &j.Offset, Reason: reason})
}

// resubmitRejected publishes a mended record to where the rejected one stood, then takes that off the list. In between, a crash
// leaves both: an entry that comes twice is recognised by its bytes.
func (s *Server) resubmitRejected(c echo.Context) error {
	j, err := s.rejectedOf(c)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(c.Request().Body)
	if err != nil {
		return err
	}
	m, err := s.mended(j.Stream, body)
	if err != nil {
		return err
	}
	dismiss, err := sign(c, wire.Command{Command: wire.CommandDismiss, Stream: j.Stream, Offset: &j.Offset, Reason: "resubmitted"})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), commandBudget)
	defer cancel()
	if err := s.cfg.Publish(ctx, m); err != nil {
		return notPublished(err)
	}
	if p := s.send(c, dismiss); p != nil {
		p.Reason = "the record was published, but the old one is still listed: DELETE it. " + p.Reason
		return p
	}
	return c.NoContent(http.StatusNoContent)
}

func notPublished(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		p := problem.New(http.StatusGatewayTimeout, "the broker did not confirm the record in time: it may have it")
		p.Cause = err
		return p
	}
	return problem.Unavailable(err, "the record was not published, and the rejected one is still listed")
}

// mended is a record as a message to where it belongs. It must be one that is taken in there: it carries Millrace's own name, so what
// only Millrace may write (barriers, the journal) must not come in this way.
func (s *Server) mended(stream string, body []byte) (wire.Message, error) {
	m := wire.Message{Key: stream, Timestamp: s.cfg.Now(), Body: body}
	var job wire.Job
	var err error
	switch stream {
	case wire.ScheduledJobs, wire.Retries, wire.DeadJobs, wire.Gated:
		var e wire.Entry
		e, err = wire.ParseEntry(stream, 0, body)
		job = e.Job
	case wire.Heartbeats:
		err = wire.CheckHeartbeat(body)
	case wire.JobMetrics:
		err = wire.CheckMetrics(body)
	case wire.Unrouted:
		job, err = wire.ParseJob(body)
		m.Exchange, m.Key = wire.ExchangeRoute, job.Queue
	case wire.DeadLetters, wire.OldDeadLetters:
		m.Key = wire.DeadLetters
		if job, err = wire.ParseJob(body); err != nil {
			_, err = wire.ParseEntry(wire.DeadJobs, 0, body) // the other form that is taken there
		}
	default:
		return m, problem.New(http.StatusConflict, "records of %s cannot be resubmitted: only Millrace writes there", stream)
	}
	if err != nil {
		return m, problem.BadRequest("this record would be rejected again: %s", err)
	}
	m.MessageID, m.Type = wire.Property(job.JID), wire.Property(job.Class)
	return m, nil
}

// isStream tells whether rejected records of a name stand in a stream, where they can be read again.
func isStream(name string) bool {
	switch name {
	case wire.ScheduledJobs, wire.Retries, wire.DeadJobs, wire.Gated, wire.Heartbeats, wire.JobMetrics, wire.Journal:
		return true
	}
	return false
}
