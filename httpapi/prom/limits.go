package prom

import (
	"context"
	"time"

	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/tracker/attention"
)

var (
	descLimitUsed       = desc("limit_used", "Slots of a limit that are held.", "limit")
	descLimitMax        = desc("limit_max", "Slots of a limit: those of all its parts, such as keys, that have jobs.", "limit")
	descLimitWaiting    = desc("limit_waiting", "Jobs of a limit that are due and wait.", "limit")
	descLimitBlocked    = desc("limit_blocked", "Jobs that are due and that a limit holds back.", "limit")
	descLimitStalled    = desc("limit_stalled_seconds", "For how long no slot has become free of a part of a limit that is full while jobs wait; 0 if that is less than five minutes, or usual.", "limit")
	descLimitIncomplete = desc("limit_incomplete", "1 if the definition of a limit is incomplete, so that it holds nothing back.", "limit")
	descGatedWaiting    = desc("gated_jobs_waiting", "Jobs that limits may count and that are due, at most 200,000.")
)

// limits sends what limits count, and governed queues. No label is a key: there may be any number
// of these.
type limits struct {
	entries *tracker.Reader
	usual   func(ctx context.Context) (map[string]time.Duration, error)
	now     func() time.Time
}

func (p *limits) collect(out sink) {
	now := p.now()
	defined := p.entries.Limits.Limits()
	counts, err := p.entries.Occupancy(now)
	if err != nil {
		return
	}
	out.gauge(descGatedWaiting, float64(counts.Waiting))
	out.governed(p.entries.Governed.GovernedQueues(), counts)
	if len(defined) == 0 {
		return
	}
	usual, err := p.usual(context.Background())
	if err != nil {
		return
	}
	all := attention.LimitsOf(defined, counts)
	for i := range all {
		l := &all[i]
		_, stalled, _ := l.Stalled(now, usual)
		out.gauge(descLimitUsed, float64(l.Used), l.Name)
		if l.Slots > 0 {
			out.gauge(descLimitMax, float64(l.Slots), l.Name)
		}
		out.gauge(descLimitWaiting, float64(l.Waiting), l.Name)
		out.gauge(descLimitBlocked, float64(l.Blocked), l.Name)
		out.gauge(descLimitStalled, stalled.Seconds(), l.Name)
		out.gauge(descLimitIncomplete, truth(l.Incomplete != ""), l.Name)
	}
}
