package httpapi

import (
	"context"
	"time"

	"github.com/millrace-jobs/millrace/tracker/metrics"
	"github.com/millrace-jobs/millrace/tracker/processes"
)

// workers are the worker processes, and what is known of the jobs that they run.
type workers struct {
	processes *processes.Processes
	metrics   *metrics.Reader
	answers   *answerCache
	now       func() time.Time
}

// list returns all processes; none where they are not known.
func (w *workers) list() []processes.Process {
	if w.processes == nil {
		return nil
	}
	return w.processes.List()
}

func (w *workers) get(identity string) (p processes.Process, ok bool) {
	if w.processes == nil {
		return p, false
	}
	return w.processes.Get(identity)
}

// usual returns how long jobs of each class usually run: the 95th percentile of the last week.
func (w *workers) usual(ctx context.Context) (map[string]time.Duration, error) {
	if w.metrics == nil {
		return nil, nil
	}
	found, err := w.answers.get(ctx, "usual", time.Minute, func(context.Context) (any, error) {
		now, usual := w.now(), map[string]time.Duration{}
		sums, err := w.metrics.Ask(metrics.Query{From: now.Add(-7 * 24 * time.Hour), To: now, Step: 24 * time.Hour})
		for _, c := range sums.Classes {
			if !c.Other && c.Run.Count > 0 {
				usual[c.Name] = c.Run.P95
			}
		}
		return usual, err
	})
	if err != nil {
		return nil, err
	}
	return found.(map[string]time.Duration), nil
}
