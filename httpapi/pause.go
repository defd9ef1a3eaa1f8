package httpapi

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/wire"
)

// pauseQueue has nobody take jobs of a queue, or lets them again: the leader journals it and tells the workers, and then the broker is told,
// where it can pause a queue for everybody.
func (s *Server) pauseQueue(verb string) echo.HandlerFunc {
	return func(c echo.Context) error {
		name, err := queueOf(c)
		if err != nil {
			return err
		}
		reason, err := readReason(c)
		if err != nil {
			return err
		}
		pauses := verb == wire.CommandPause
		if pauses { // one that is gone may be resumed
			if err := s.withBroker(c, name, mustExist); err != nil {
				return err
			}
		}
		cmd, err := sign(c, wire.Command{Command: verb, Queue: name, Reason: reason})
		if err != nil {
			return err
		}
		if p := s.send(c, cmd); p != nil {
			return p
		}
		if s.cfg.Queues != nil {
			s.cfg.Queues.Forget()
		}
		ctx, cancel := context.WithTimeout(c.Request().Context(), queueBudget)
		defer cancel()
		if err := s.cfg.PauseQueue(ctx, name, pauses); err != nil {
			return problem.Unavailable(err, "the change is journaled and the workers know it, but the broker has not applied it: repeat the request")
		}
		return c.NoContent(http.StatusNoContent)
	}
}

func mustExist(ctx context.Context, conn *broker.Conn, name string) error {
	_, _, err := conn.QueueDepth(ctx, wire.QueuePrefix+name)
	return err
}
