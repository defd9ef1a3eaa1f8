package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/wire"
)

// noted has the journal say who does something past the leader, and why, before it is done: without a leader it is not done. What stands there
// may, after a crash or where the broker refuses it, not have been done; but what was done always stands there.
func (s *Server) noted(c echo.Context, n wire.Noted, reason string) error {
	cmd, err := sign(c, wire.Command{Command: wire.CommandNote, Noted: &n, Reason: reason})
	if err != nil {
		return err
	}
	switch p := s.send(c, cmd); {
	case p == nil:
		return nil
	case p.Status == http.StatusBadRequest:
		return problem.Unavailable(errors.New(p.Reason), "the leader cannot journal this, and nothing was done: it may be of an older version")
	case p.Status == http.StatusGatewayTimeout:
		return problem.Unavailable(errors.New(p.Reason), "nothing was done: the leader did not say that it has journaled this")
	default:
		return p
	}
}

// noteOnQueue has the journal say what is about to be done to a queue, if it can be.
func (s *Server) noteOnQueue(ctx context.Context, c echo.Context, conn *broker.Conn, n wire.Noted, reason string) error {
	waiting, _, err := conn.QueueDepth(ctx, wire.QueuePrefix+n.Queue)
	var refusal *broker.QueueError
	missing := errors.As(err, &refusal) && refusal.Reason == broker.ReasonMissing
	switch {
	case n.Op == wire.NotedMade && err == nil:
		return nil // it is left as it is
	case err != nil && (n.Op != wire.NotedMade || !missing):
		return err
	}
	n.Count = int64(waiting)
	return s.noted(c, n, reason)
}
