package httpapi

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker/attention"
	"github.com/millrace-jobs/millrace/tracker/metrics"
)

// attentionAnswer is what an operator should look at.
type attentionAnswer struct {
	Now   float64          `json:"now"`
	Items []attention.Item `json:"items"`
}

// attention lists what needs a look, the gravest first. What cannot be found out now is left out. The health checks are not shared: a
// leader that is silent takes long to ask, and the list would say so long after it is back.
func (s *Server) attention(c echo.Context) error {
	if err := problem.NoParams(c); err != nil {
		return err
	}
	ctx := c.Request().Context()
	found, err := s.shared.get(ctx, sharedKey(c.Request()), 0, s.facts)
	if err != nil {
		return err
	}
	answer := found.(attentionAnswer)
	answer.Items = s.withChecks(ctx, answer.Items)
	return c.JSON(http.StatusOK, answer)
}

// Kinds of health checks that fail.
const (
	brokerDisconnected = "broker_disconnected"
	noWorkers          = "no_workers"
)

// withChecks adds the health checks that fail and that are not listed yet. Without the broker neither the leader nor the workers are heard.
func (s *Server) withChecks(ctx context.Context, items []attention.Item) []attention.Item {
	if reason := s.checkBroker(ctx); reason != "" {
		return slices.Concat([]attention.Item{failed(brokerDisconnected, "critical", reason)}, items)
	}
	critical := []attention.Item{} // a list even if it is empty
	for _, c := range []struct {
		kind  string
		check func(context.Context) string
	}{{attention.Alarm, s.checkAlarms}, {attention.NoLeader, s.leading.remember(s.checkLeader)}} {
		if slices.ContainsFunc(items, func(i attention.Item) bool { return i.Kind == c.kind }) {
			continue
		}
		if reason := c.check(ctx); reason != "" {
			critical = append(critical, failed(c.kind, "critical", reason))
		}
	}
	items = append(critical, items...)
	if reason := s.checkWorkers(ctx); reason != "" {
		items = append(items, failed(noWorkers, "warning", reason))
	}
	return items
}

func failed(kind, severity, reason string) attention.Item {
	return attention.Item{Kind: kind, Severity: severity, Text: reason, Value: 1}
}

// facts gathers what may need a look.
func (s *Server) facts(ctx context.Context) (any, error) {
	now := s.cfg.Now()
	f := attention.Facts{Processes: s.processes(), Lag: s.cfg.View.Lag(), SLO: s.cfg.QueueSLO, Paused: s.cfg.Entries.Paused()}
	if leader := s.cfg.Leader(); leader.Orphaned {
		f.NoLeader = leader.OrphanCause + "; " + leader.OrphanCure
	}
	var err error
	if f.Usual, err = s.usual(ctx); err != nil {
		return nil, err
	}
	for _, d := range s.degraded() {
		f.Degraded = append(f.Degraded, attention.Failing{Subject: d.Subject, Problem: d.Problem, Costs: d.Costs, Node: d.Node, For: now.Sub(d.Since)})
	}
	if s.cfg.Queues != nil {
		if snap, err := s.cfg.Queues.Look(ctx); err == nil {
			f.Queues, f.Alarms = snap.Queues, snap.Alarms
		}
	}
	if f.Overdue, err = s.cfg.Entries.Overdue(now); err != nil {
		return nil, err
	}
	if err := s.failures(ctx, &f, now); err != nil {
		return nil, err
	}
	return attentionAnswer{Now: float64(now.UnixMicro()) / 1e6, Items: attention.Look(f)}, nil
}

// usualEvery is how old what is usual may be, usualOver the time that it is of.
const (
	usualEvery = time.Minute
	usualOver  = 7 * 24 * time.Hour
)

// usual returns how long jobs of each class usually run: the 95th percentile of the last week.
func (s *Server) usual(ctx context.Context) (map[string]time.Duration, error) {
	if s.cfg.Metrics == nil {
		return nil, nil
	}
	found, err := s.shared.get(ctx, "usual", usualEvery, func(context.Context) (any, error) {
		now, usual := s.cfg.Now(), map[string]time.Duration{}
		sums, err := s.cfg.Metrics.Ask(metrics.Query{From: now.Add(-usualOver), To: now, Step: 24 * time.Hour})
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

// failuresEvery is how old what is said of failures may be: pages ask for what needs a look whenever anything has changed.
const failuresEvery = 5 * time.Second

// failures compares the last minutes with the day before.
func (s *Server) failures(ctx context.Context, f *attention.Facts, now time.Time) error {
	if s.cfg.Metrics == nil {
		return nil
	}
	counted, err := s.shared.get(ctx, "failures", failuresEvery, func(context.Context) (any, error) { return s.countFailures(now) })
	if err != nil {
		return err
	}
	short, long := counted.(failureCounts).short, counted.(failureCounts).long
	f.Died = short.Dead
	f.Failed = float64(short.Failures()) / short.To.Sub(short.From).Seconds()
	if f.Before = short.From.Sub(long.First); !long.First.IsZero() && f.Before > 0 {
		f.FailedBefore = float64(long.Failures()-short.Failures()) / f.Before.Seconds()
	}
	return nil
}

type failureCounts struct{ short, long metrics.Counted }

func (s *Server) countFailures(now time.Time) (c failureCounts, err error) {
	if c.short, err = s.cfg.Metrics.Count(metrics.Query{From: now.Add(-15 * time.Minute), To: now}); err != nil {
		return c, err
	}
	c.long, err = s.cfg.Metrics.Count(metrics.Query{From: now.Add(-24 * time.Hour), To: now, Step: time.Hour})
	return c, err
}
