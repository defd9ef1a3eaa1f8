package httpapi

import (
	"context"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/wire"
)

// queueThroughput is how many jobs ended in each queue, step by step.
type queueThroughput struct {
	From   float64       `json:"from"`
	To     float64       `json:"to"`
	Step   float64       `json:"step_seconds"`
	Older  bool          `json:"older_than_kept,omitempty"`
	Queues []queueCounts `json:"queues"`
}

type queueCounts struct {
	Name   string  `json:"name"`
	Other  bool    `json:"other,omitempty"` // all that are over the bound on names
	Counts []int64 `json:"counts"`          // of each step, the first beginning at from
}

// showThroughput counts what ended in all queues, or one.
func (s *Server) showThroughput(c echo.Context) error {
	q, err := s.metricsQuery(c)
	if err != nil {
		return err
	}
	return s.share(c, func(context.Context) (any, error) {
		t, err := s.cfg.Metrics.Throughput(q)
		if err != nil {
			return nil, rangeProblem(err)
		}
		shown := queueThroughput{wire.Seconds(t.From), wire.Seconds(t.To), t.Step.Seconds(), t.Older, make([]queueCounts, len(t.Queues))}
		for i, counted := range t.Queues {
			shown.Queues[i] = queueCounts(counted)
		}
		return shown, nil
	})
}
