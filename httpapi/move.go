package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/wire"
)

// moveBudget bounds how long one call moves jobs: repeating goes on.
const moveBudget = 20 * time.Second

// movedJobs is what a move came to.
type movedJobs struct {
	Moved    int  `json:"moved"`
	Complete bool `json:"complete"` // all that waited when it began
}

// moveQueue moves the jobs that wait in a queue to another.
func (s *Server) moveQueue(c echo.Context) error {
	name, err := queueOf(c)
	if err != nil {
		return err
	}
	var body struct {
		To     string `json:"to"`
		Reason string `json:"reason"`
	}
	if err := problem.ReadBody(c, &body); err != nil {
		return err
	}
	if err := wire.CheckQueueName(body.To); err != nil {
		return problem.BadRequest("member to: %s", err)
	}
	if body.To == name {
		return problem.BadRequest("member to is the queue itself")
	}
	if _, err := reasonGiven(c, body.Reason); err != nil {
		return err
	}
	began := time.Now()
	var did movedJobs
	err = s.withBroker(c, name, func(ctx context.Context, conn *broker.Conn, name string) error {
		// The request's time, not that of a single step: what is in hand is finished.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), moveBudget)
		defer cancel()
		waiting, _, err := conn.QueueDepth(ctx, wire.QueuePrefix+name)
		if err != nil {
			return err
		}
		if _, _, err := conn.QueueDepth(ctx, wire.QueuePrefix+body.To); err != nil {
			return err
		}
		if waiting == 0 {
			did.Complete = true
			return nil
		}
		if err := s.noted(c, wire.Noted{Op: wire.NotedMoved, Queue: name, To: body.To, Count: int64(waiting)}, body.Reason); err != nil {
			return err
		}
		did.Moved, err = conn.Move(ctx, wire.QueuePrefix+name, waiting, func(d wire.Delivery) wire.Message {
			return wire.MovedJob(d, body.To, s.cfg.Now())
		})
		did.Complete = err == nil && (did.Moved >= waiting || ctx.Err() == nil)
		if errors.Is(err, context.DeadlineExceeded) && did.Moved > 0 {
			return nil // the rest is there as before
		}
		return err
	})
	problem.InfoOf(c.Request()).Command = []any{"moved", did.Moved, "to", problem.Shorten(body.To), "took", time.Since(began)}
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, did)
}
