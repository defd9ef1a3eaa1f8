package httpapi

import (
	"time"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/scheduler"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/tracker/metrics"
	"github.com/millrace-jobs/millrace/tracker/processes"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// overviewAPI sums everything up.
type overviewAPI struct {
	version string
	vhost   string
	deadMax int           // dead jobs that are kept; 0: not shown
	deadAge time.Duration // for which they are kept; 0: not shown
	entries *tracker.Reader
	view    *view.View
	workers *workers
	queues  *queuesAPI
	metrics *metrics.Reader // may be nil
	leader  func() scheduler.Status
	broker  func() (connected bool, product, version string)
	now     func() time.Time
}

func (a *overviewAPI) show(in *problem.Request) (any, error) {
	in.Query()
	return a.at(a.now())
}

func (a *overviewAPI) at(now time.Time) (o answer.Overview, err error) {
	state := a.entries.State()
	o = answer.Overview{
		Product: "Millrace", Version: a.version, VHost: a.vhost, Now: wire.Seconds(now), Scheduler: newScheduler(a.leader()),
		Leader:    answer.LeaderState{Identity: state.Identity, Epoch: state.Epoch, Since: state.OpenedAt},
		Views:     newViewState(a.view.Status()),
		Journal:   answer.JournalState{Fired: state.Fired, Buried: state.Buried, Duplicates: state.Duplicates, Void: state.Void, Held: state.Held},
		Processes: newWorkerTotals(a.workers.list()), Queues: a.queues.seen.Load(),
		Sets: map[string]answer.SetSize{}, Rejected: map[string]answer.RejectedCounts{},
	}
	o.Broker.Connected, o.Broker.Product, o.Broker.Version = a.broker()
	late, err := a.entries.Overdue(now)
	if err != nil {
		return o, err
	}
	o.Overdue = late.Seconds()
	if a.metrics != nil {
		today, ever, err := a.metrics.Totals(now)
		if err != nil {
			return o, err
		}
		o.Jobs = answer.JobTotals{ProcessedToday: today.Processed(), FailedToday: today.Failures(), Processed: ever.Processed(), Failed: ever.Failures()}
	}
	for _, set := range entrySets {
		if o.Sets[set.path], err = a.setSize(set.stream); err != nil {
			return o, err
		}
	}
	kept, err := a.entries.RejectedKept()
	for stream, n := range state.Rejected {
		o.Rejected[stream] = answer.RejectedCounts{Kept: kept[stream], Ever: n}
	}
	return o, err
}

func (a *overviewAPI) setSize(stream string) (answer.SetSize, error) {
	asOf, err := a.entries.Position(stream)
	size := answer.SetSize{Total: a.entries.Total(stream), Bytes: a.entries.Bytes(stream), AsOf: asOf}
	if stream == wire.DeadJobs {
		size.Max, size.MaxAge = a.deadMax, a.deadAge.Seconds()
	}
	return size, err
}

func newWorkerTotals(all []processes.Process) answer.WorkerTotals {
	sum := processes.Sum(all)
	return answer.WorkerTotals{Running: sum.Processes, States: sum.States, Concurrency: sum.Concurrency, Busy: sum.Busy, RSSKB: sum.RSSKB}
}

func newViewState(streams []view.Status) answer.ViewState {
	v := answer.ViewState{CaughtUp: true}
	var most time.Duration
	for _, t := range streams {
		v.CaughtUp = v.CaughtUp && t.CaughtUp
		most = max(most, t.Lag)
		v.Streams = append(v.Streams, answer.StreamState{
			Stream: t.Stream, Position: t.Position, CaughtUp: t.CaughtUp, Lag: t.Lag.Seconds(), Recreated: t.Recreated, Fault: t.Fault,
		})
	}
	v.Lag = most.Seconds()
	return v
}

func newScheduler(s scheduler.Status) answer.Scheduler {
	shown := answer.Scheduler{
		Leader: s.Leader, Phase: s.Phase, Epoch: s.Epoch, Since: s.Since, Unconfirmed: s.Unconfirmed, Overdue: s.Overdue,
		Blocked: s.Blocked, Gap: s.Gap, Orphaned: s.Orphaned, OrphanCause: s.OrphanCause, OrphanCure: s.OrphanCure,
		Lacks: s.Lacks, Accepts: s.Accepts, LastError: s.LastError, LastLate: s.LastLate,
		Counters: answer.Counters{
			Epochs: s.Counters.Epochs, Fired: s.Counters.Fired, Returned: s.Counters.Returned, Refused: s.Counters.Refused,
			DeadLettered: s.Counters.DeadLettered, Commands: s.Counters.Commands, Lost: s.Counters.Lost,
		},
	}
	for _, h := range s.Held {
		shown.Held = append(shown.Held, answer.HeldQueue(h))
	}
	for _, d := range s.Degraded {
		shown.Degraded = append(shown.Degraded, answer.Degradation(d))
	}
	return shown
}
