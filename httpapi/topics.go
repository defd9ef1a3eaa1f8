package httpapi

import (
	"context"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/httpapi/live"
	"github.com/millrace-jobs/millrace/tracker/feed"
	"github.com/millrace-jobs/millrace/wire"
)

// topics is the live.Source: it computes what viewers are shown.
type topics struct {
	overview     *overviewAPI
	queues       *queuesAPI
	fingerprints *fingerprints
	feed         *feed.Feed // may be nil
}

// Bounds of the lists in a frame. A longer list is left out: viewers ask for its pages.
const (
	maxShown           = 200
	maxShownOperations = 20
)

// Changed returns a channel that is closed at the next change of the view.
func (t *topics) Changed() <-chan struct{} { return t.overview.view.Changed() }

// Now returns the time.
func (t *topics) Now() time.Time { return t.overview.now() }

// KeepHappened makes the feed keep its events until then.
func (t *topics) KeepHappened(until time.Time) {
	if t.feed != nil {
		t.feed.Keep(until)
	}
}

// Happened returns events of the feed.
func (t *topics) Happened(from int64, most int) (items any, count int, next, missed int64) {
	if t.feed == nil {
		return nil, 0, 0, 0
	}
	events, next, missed := t.feed.Since(from, most)
	if events == nil {
		events = []feed.Event{}
	}
	return events, len(events), next, missed
}

// Topic returns what a topic shows now, and what of it is compared.
func (t *topics) Topic(ctx context.Context, topic live.Topic) (shown, essence any, err error) {
	switch topic {
	case live.Overview:
		return t.showOverview()
	case live.Queues:
		shown, err = t.showQueues(ctx)
	case live.Processes:
		return t.showProcesses(ctx)
	case live.Operations:
		shown = t.showOperations()
	case live.Scheduled:
		shown, err = t.overview.setSize(wire.ScheduledJobs)
	case live.Retries:
		shown, err = t.overview.setSize(wire.Retries)
	case live.Dead:
		shown, err = t.overview.setSize(wire.DeadJobs)
	}
	return shown, nil, err
}

func (t *topics) showOverview() (shown, essence any, err error) {
	o, err := t.overview.at(t.Now())
	if err != nil {
		return nil, nil, err
	}
	still := o
	still.Now, still.Views.Lag, still.Scheduler.LastLate = 0, 0, 0
	still.Views.Streams = slices.Clone(o.Views.Streams)
	for i := range still.Views.Streams {
		still.Views.Streams[i].Lag = 0
	}
	return o, still, nil
}

func (t *topics) showProcesses(ctx context.Context) (shown, essence any, err error) {
	all := t.overview.workers.list()
	p := answer.LiveProcesses{WorkerTotals: newWorkerTotals(all)}
	if len(all) > maxShown {
		return p, nil, nil
	}
	usual, err := t.overview.workers.usual(ctx)
	if err != nil {
		return nil, nil, err
	}
	p.Items = make([]answer.Process, len(all))
	for i := range all {
		p.Items[i] = newProcess(&all[i], usual)
	}
	still := p
	still.Items = slices.Clone(p.Items)
	for i := range still.Items {
		still.Items[i].Silent = 0
	}
	return p, still, nil
}

func (t *topics) showQueues(ctx context.Context) (any, error) {
	all, err := t.queues.all(ctx)
	if err != nil {
		return nil, err
	}
	q := answer.LiveQueues{Total: len(all), Items: all}
	for i := range all {
		q.Ready += all[i].Ready
	}
	if len(all) > maxShown {
		q.Items = nil
	}
	return q, nil
}

func (t *topics) showOperations() any {
	all := []answer.Operation{}
	for _, op := range t.overview.entries.Operations() {
		if op.State == wire.OperationRunning || len(all) < maxShownOperations {
			all = append(all, t.fingerprints.operation(&op))
		}
	}
	return all
}
