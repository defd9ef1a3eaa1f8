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

// overview is the state of everything on one page.
type overview struct {
	Product  string              `json:"product_name"`
	Version  string              `json:"product_version"`
	VHost    string              `json:"vhost"`
	Now      float64             `json:"now"` // this machine's clock
	Broker   brokerState         `json:"broker"`
	Leader   leaderState         `json:"leader"`
	Self     scheduler.Status    `json:"scheduler"`
	Sets     map[string]setSize  `json:"sets"`
	Overdue  float64             `json:"scheduled_overdue_seconds"` // of the oldest due entry
	Views    viewState           `json:"views"`
	Rejected map[string]counts   `json:"rejected"`
	Journal  journalState        `json:"journal"`
	Workers  answer.WorkerTotals `json:"processes"`
	Queues   *answer.QueueTotal  `json:"queues,omitempty"` // nil: no client has looked
	Jobs     jobTotals           `json:"jobs"`
}

type brokerState struct {
	Connected bool   `json:"connected"`
	Product   string `json:"product"`
	Version   string `json:"version"`
}

// leaderState is the newest leader that the journal has.
type leaderState struct {
	Identity string  `json:"identity"`
	Epoch    int64   `json:"epoch"` // -1: there was none
	Since    float64 `json:"since"`
}

type setSize struct {
	Total  int64   `json:"total"`
	Bytes  int64   `json:"bytes"` // of the records
	AsOf   int64   `json:"as_of"`
	Max    int     `json:"max,omitempty"`             // how many are kept
	MaxAge float64 `json:"max_age_seconds,omitempty"` // how long they are kept
}

type viewState struct {
	CaughtUp bool          `json:"caught_up"`
	Lag      float64       `json:"lag_seconds"`
	Streams  []streamState `json:"streams"`
}

type streamState struct {
	Stream    string  `json:"stream"`
	Position  int64   `json:"position"`
	CaughtUp  bool    `json:"caught_up"`
	Lag       float64 `json:"lag_seconds"`
	Recreated bool    `json:"recreated,omitempty"`
	Fault     string  `json:"fault,omitempty"`
}

type counts struct {
	Kept int64 `json:"kept"`
	Ever int64 `json:"ever"`
}

// journalState is what leaders did, as the journal has it.
type journalState struct {
	Fired      int64            `json:"fired"`
	Buried     int64            `json:"buried"`
	Duplicates int64            `json:"duplicates"`
	Void       map[string]int64 `json:"void_records"`
	Held       map[string]int64 `json:"held"` // up to which offset, by stream, after a gap
}

// jobTotals count the attempts of jobs.
type jobTotals struct {
	ProcessedToday int64 `json:"processed_today"` // since midnight UTC
	FailedToday    int64 `json:"failed_today"`
	Processed      int64 `json:"processed"`
	Failed         int64 `json:"failed"`
}

func (a *overviewAPI) show(in *problem.Request) (any, error) {
	in.Query()
	return a.at(a.now())
}

func (a *overviewAPI) at(now time.Time) (o overview, err error) {
	state := a.entries.State()
	o = overview{
		Product: "Millrace", Version: a.version, VHost: a.vhost, Now: wire.Seconds(now), Self: a.leader(),
		Leader:  leaderState{state.Identity, state.Epoch, state.OpenedAt},
		Views:   newViewState(a.view.Status()),
		Journal: journalState{state.Fired, state.Buried, state.Duplicates, state.Void, state.Held},
		Workers: newWorkerTotals(a.workers.list()), Queues: a.queues.seen.Load(),
		Sets: map[string]setSize{}, Rejected: map[string]counts{},
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
		o.Jobs = jobTotals{today.Processed(), today.Failures(), ever.Processed(), ever.Failures()}
	}
	for _, set := range entrySets {
		if o.Sets[set.path], err = a.setSize(set.stream); err != nil {
			return o, err
		}
	}
	kept, err := a.entries.RejectedKept()
	for stream, n := range state.Rejected {
		o.Rejected[stream] = counts{Kept: kept[stream], Ever: n}
	}
	return o, err
}

func (a *overviewAPI) setSize(stream string) (setSize, error) {
	asOf, err := a.entries.Position(stream)
	size := setSize{Total: a.entries.Total(stream), Bytes: a.entries.Bytes(stream), AsOf: asOf}
	if stream == wire.DeadJobs {
		size.Max, size.MaxAge = a.deadMax, a.deadAge.Seconds()
	}
	return size, err
}

func newWorkerTotals(all []processes.Process) answer.WorkerTotals {
	sum := processes.Sum(all)
	return answer.WorkerTotals{Running: sum.Processes, States: sum.States, Concurrency: sum.Concurrency, Busy: sum.Busy, RSSKB: sum.RSSKB}
}

func newViewState(streams []view.Status) viewState {
	v := viewState{CaughtUp: true}
	var most time.Duration
	for _, t := range streams {
		v.CaughtUp = v.CaughtUp && t.CaughtUp
		most = max(most, t.Lag)
		v.Streams = append(v.Streams, streamState{t.Stream, t.Position, t.CaughtUp, t.Lag.Seconds(), t.Recreated, t.Fault})
	}
	v.Lag = most.Seconds()
	return v
}
