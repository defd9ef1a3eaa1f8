package httpapi

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker/feed"
	"github.com/millrace-jobs/millrace/wire"
)

// topic is something that viewers watch, or several of them.
type topic uint16

const (
	topicOverview topic = 1 << iota
	topicQueues
	topicProcesses
	topicScheduled
	topicRetries
	topicDead
	topicOperations
	topicJobs

	topicAll = topicJobs<<1 - 1
)

var topicNames = []string{"overview", "queues", "processes", "scheduled", "retries", "dead", "operations", "jobs"}

func (t topic) name() string {
	for i, name := range topicNames {
		if t == 1<<i {
			return name
		}
	}
	return ""
}

// split gives the topics one by one.
func (t topic) split() []topic {
	var all []topic
	for i := range topicNames {
		if one := topic(1 << i); t&one != 0 {
			all = append(all, one)
		}
	}
	return all
}

// topicsOf reads names with commas between them; none means all.
func topicsOf(text string) (t topic, err error) {
	if text == "" {
		return topicAll, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		i := slices.Index(topicNames, name)
		if i < 0 {
			return 0, problem.BadRequest("topic %q is not known: use %s", problem.Shorten(name), strings.Join(topicNames, ", "))
		}
		t |= 1 << i
	}
	return t, nil
}

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

// Server is the hub's source.

func (s *Server) changed() <-chan struct{} { return s.cfg.View.Changed() }

func (s *Server) now() time.Time { return s.cfg.Now() }

func (s *Server) keepHappening(until time.Time) {
	if s.cfg.Feed != nil {
		s.cfg.Feed.Keep(until)
	}
}

func (s *Server) happened(from int64, most int) (items any, count int, next, missed int64) {
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
func (s *Server) topic(ctx context.Context, t topic) (shown, essence any, err error) {
	switch t {
	case topicOverview:
		return s.shownOverview()
	case topicQueues:
		shown, err = s.shownQueues(ctx)
	case topicProcesses:
		shown, essence, err = s.shownProcesses(ctx)
	case topicOperations:
		shown = s.shownOperations()
	case topicScheduled:
		shown, err = s.setSize(wire.ScheduledJobs)
	case topicRetries:
		shown, err = s.setSize(wire.Retries)
	case topicDead:
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

// eventsAsked is what somebody wants to watch.
type eventsAsked struct {
	topics topic
	id     string        // of the last event that was seen
	lasts  time.Duration // until it ends
	socket bool
}

// eventsLast is how long a connection lasts at most: then the viewer connects again, and goes on where it was.
const eventsLast = 3600 // seconds

func parseEvents(c echo.Context) (e eventsAsked, err error) {
	p, err := problem.ParseParams(c.Request(), "topics", "last_event_id", "for")
	if err != nil {
		return e, err
	}
	if e.topics, err = topicsOf(p["topics"]); err != nil {
		return e, err
	}
	seconds, err := p.Number("for", eventsLast, 0, eventsLast)
	if err != nil {
		return e, err
	}
	e.lasts, e.socket = time.Duration(seconds)*time.Second, asksForSocket(c.Request())
	if e.id = c.Request().Header.Get("Last-Event-ID"); e.id == "" {
		e.id = p["last_event_id"]
	}
	return e, nil
}
