package httpapi

import (
	"context"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/scheduler"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/tracker/attention"
	"github.com/millrace-jobs/millrace/tracker/audit"
	"github.com/millrace-jobs/millrace/tracker/metrics"
	"github.com/millrace-jobs/millrace/tracker/queues"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// attentionAPI lists what an operator should look at.
type attentionAPI struct {
	entries *tracker.Reader
	view    *view.View
	workers *workers
	metrics *metrics.Reader // may be nil
	queues  *queues.Watch   // may be nil
	slo     func(queue string) time.Duration
	leader  func() scheduler.Status
	health  *healthAPI
	answers *answerCache
	now     func() time.Time
}

// list lists what needs a look, the most severe first. What takes long to ask is not shared: a
// broker or a leader that does not answer now. The answer would outlive its return.
func (a *attentionAPI) list(in *problem.Request) (any, error) {
	in.Query()
	ctx := in.Request().Context()
	seen := a.look(ctx)
	if err := ctx.Err(); err != nil { // the client has gone: share nothing that lacks the queues
		return nil, err
	}
	found, err := a.answers.share(in, func(ctx context.Context) (any, error) { return a.facts(ctx, seen) })
	if err != nil {
		return nil, err
	}
	shown := found.(answer.Attention)
	shown.Items = a.withChecks(ctx, shown.Items)
	return shown, nil
}

// withChecks adds the health checks that fail. Without the broker no others are worth a look.
func (a *attentionAPI) withChecks(ctx context.Context, items []answer.Problem) []answer.Problem {
	if reason := a.health.checkBroker(ctx); reason != "" {
		return slices.Concat([]answer.Problem{failed("broker_disconnected", "critical", reason)}, items)
	}
	critical := []answer.Problem{} // a list even if it is empty
	for _, c := range []struct {
		kind  string
		check func(context.Context) string
	}{{attention.Alarm, a.health.checkAlarms}, {attention.NoLeader, a.health.checkLeader}} {
		if slices.ContainsFunc(items, func(i answer.Problem) bool { return i.Kind == c.kind }) {
			continue
		}
		if reason := c.check(ctx); reason != "" {
			critical = append(critical, failed(c.kind, "critical", reason))
		}
	}
	items = append(critical, items...)
	if reason := a.health.checkWorkers(ctx); reason != "" {
		items = append(items, failed("no_workers", "warning", reason))
	}
	return items
}

func failed(kind, severity, reason string) answer.Problem {
	return answer.Problem{Kind: kind, Severity: severity, Text: reason, Value: 1}
}

// lookWithin is how long the other problems wait for those of the queues. While a node of the
// broker hangs, its management API does not answer.
const lookWithin = 2 * time.Second

// look returns what is known of the queues, nothing if the broker does not say.
func (a *attentionAPI) look(ctx context.Context) (seen queues.Snapshot) {
	if a.queues == nil {
		return seen
	}
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	if snap, err := a.queues.Look(ctx); err == nil {
		seen = snap
	}
	return seen
}

func (a *attentionAPI) facts(ctx context.Context, seen queues.Snapshot) (any, error) {
	now := a.now()
	f := attention.Facts{Processes: a.workers.list(), Lag: a.view.Lag(), SLO: a.slo, Paused: a.entries.Paused(), Queues: seen.Queues, Alarms: seen.Alarms,
		DefinedFacts: attention.DefinedFacts{Ticks: attention.TicksOf(a.entries.Periodics.PeriodicJobs(), now), Governed: attention.GovernedOf(a.entries.Governed.GovernedQueues(), now),
			Unique: attention.Unique{Undecided: a.entries.UndecidedJobs(), For: a.entries.UndecidedFor(now)}}}
	if leader := a.leader(); leader.Orphaned {
		f.NoLeader = leader.OrphanCause + "; " + leader.OrphanCure
	}
	var err error
	if f.Usual, err = a.workers.usual(ctx); err != nil {
		return nil, err
	}
	if err := a.addLimits(ctx, &f, now); err != nil {
		return nil, err
	}
	for _, d := range a.health.degraded() {
		f.Degraded = append(f.Degraded, attention.Failing{Subject: d.Subject, Problem: d.Problem, Costs: d.Costs, Node: d.Node, For: now.Sub(d.Since)})
	}
	if f.Overdue, err = a.entries.Overdue(now); err != nil {
		return nil, err
	}
	if err := a.addFailures(ctx, &f, now); err != nil {
		return nil, err
	}
	shown := answer.Attention{Now: wire.Seconds(now), Items: []answer.Problem{}}
	for _, i := range attention.Look(f) {
		shown.Items = append(shown.Items, answer.Problem(i))
	}
	return shown, nil
}

// maxFreed is how many actions of the audit log are looked at for freed slots.
const (
	maxFreed  = 2000
	keepFreed = 15 * time.Second
)

// addLimits adds what limits count, and the slots that were freed. Without limits nothing is
// counted.
func (a *attentionAPI) addLimits(ctx context.Context, f *attention.Facts, now time.Time) error {
	defined := a.entries.Limits.Limits()
	if len(defined) == 0 {
		return nil
	}
	counts, err := a.entries.Occupancy(now)
	if err != nil {
		return err
	}
	freed, err := a.answers.get(ctx, "freed", keepFreed, func(context.Context) (any, error) { return freedSince(a.entries, now.Add(-time.Hour)) })
	if err != nil {
		return err
	}
	f.Now, f.Limits, f.Freed = now, attention.LimitsOf(defined, counts), freed.(int64)
	return nil
}

// freedSince returns how many slots were freed because their jobs were gone.
func freedSince(entries *tracker.Reader, from time.Time) (n int64, err error) {
	found, err := entries.Audit.Search(audit.Query{Op: wire.TypeFreed, From: wire.Seconds(from), Limit: maxFreed, Most: maxFreed})
	for i := range found.Entries {
		if e := &found.Entries[i]; e.Actor == "" && e.Reason == scheduler.GoneReason {
			n += e.Count
		}
	}
	return n, err
}

// keepFailures is how long counts are kept: pages ask whenever anything has changed.
const keepFailures = 5 * time.Second

type failureCounts struct{ short, long metrics.Counted }

// addFailures compares the last minutes with the day before.
func (a *attentionAPI) addFailures(ctx context.Context, f *attention.Facts, now time.Time) error {
	if a.metrics == nil {
		return nil
	}
	counted, err := a.answers.get(ctx, "failures", keepFailures, func(context.Context) (any, error) {
		short, err := a.metrics.Count(metrics.Query{From: now.Add(-15 * time.Minute), To: now})
		if err != nil {
			return nil, err
		}
		long, err := a.metrics.Count(metrics.Query{From: now.Add(-24 * time.Hour), To: now, Step: time.Hour})
		return failureCounts{short, long}, err
	})
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
