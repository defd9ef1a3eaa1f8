package httpapi

import (
	"context"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/live"
	"github.com/millrace-jobs/millrace/tracker/feed"
	"github.com/millrace-jobs/millrace/wire"
)

// liveSource is what the topics show.
type liveSource struct{ *Server }

// maxShown bounds the lists in a frame: beyond, only their sum is sent, and whoever wants more asks for a page.
const (
	maxShown           = 200
	maxShownOperations = 20
)

// What a frame says of the topics that are not answers of other routes.
type (
	shownProcesses struct {
		workerState
		Items []process `json:"items"` // null: there are too many
	}
	shownQueues struct {
		Total int        `json:"total"`
		Ready int64      `json:"ready"`
		Items []jobQueue `json:"items"` // null: there are too many
	}
)

func (s liveSource) Changed() <-chan struct{} { return s.cfg.View.Changed() }

func (s liveSource) Now() time.Time { return s.cfg.Now() }

func (s liveSource) KeepHappened(until time.Time) {
	if s.cfg.Feed != nil {
		s.cfg.Feed.Keep(until)
	}
}

func (s liveSource) Happened(from int64, most int) (items any, count int, next, missed int64) {
	if s.cfg.Feed == nil {
		return nil, 0, 0, 0
	}
	events, next, missed := s.cfg.Feed.Since(from, most)
	if events == nil {
		events = []feed.Event{}
	}
	return events, len(events), next, missed
}

// topic gives what a topic shows now, and what of it is compared.
func (s liveSource) Topic(ctx context.Context, t live.Topic) (shown, essence any, err error) {
	switch t {
	case live.Overview:
		return s.shownOverview()
	case live.Queues:
		shown, err = s.shownQueues(ctx)
	case live.Processes:
		shown, essence, err = s.shownProcesses(ctx)
	case live.Operations:
		shown = s.shownOperations()
	case live.Scheduled:
		shown, err = s.setSize(wire.ScheduledJobs)
	case live.Retries:
		shown, err = s.setSize(wire.Retries)
	case live.Dead:
		shown, err = s.setSize(wire.DeadJobs)
	}
	return shown, essence, err
}

func (s *Server) shownOverview() (shown, essence any, err error) {
	o, err := s.overviewAt(s.cfg.Now())
	if err != nil {
		return nil, nil, err
	}
	still := o
	still.Now, still.Views.Lag, still.Self.LastLate = 0, 0, 0
	still.Views.Streams = slices.Clone(o.Views.Streams)
	for i := range still.Views.Streams {
		still.Views.Streams[i].Lag = 0
	}
	return o, still, nil
}

func (s *Server) shownProcesses(ctx context.Context) (shown, essence any, err error) {
	all := s.processes()
	p := shownProcesses{workerState: s.workers()}
	if len(all) > maxShown {
		return p, nil, nil
	}
	usual, err := s.usual(ctx)
	if err != nil {
		return nil, nil, err
	}
	p.Items = make([]process, len(all))
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

func (s *Server) shownQueues(ctx context.Context) (any, error) {
	all, err := s.jobQueues(ctx)
	if err != nil {
		return nil, err
	}
	q := shownQueues{Total: len(all), Items: all}
	for i := range all {
		q.Ready += all[i].Ready
	}
	if len(all) > maxShown {
		q.Items = nil
	}
	return q, nil
}

func (s *Server) shownOperations() any {
	all := []operation{}
	for _, op := range s.cfg.Entries.Operations() {
		if op.State == wire.OperationRunning || len(all) < maxShownOperations {
			all = append(all, newOperation(&op))
		}
	}
	return all
}
