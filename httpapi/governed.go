package httpapi

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/tracker/occupancy"
	"github.com/millrace-jobs/millrace/wire"
)

// governedAPI shows and changes which queues are governed.
type governedAPI struct {
	*definer
	entries *tracker.Reader
	now     func() time.Time
}

// list lists all governed queues, by name.
func (a *governedAPI) list(in *problem.Request) (any, error) {
	in.Query()
	counts, err := a.entries.Occupancy(a.now())
	if err != nil {
		return nil, err
	}
	all, queues := []answer.GovernedQueue{}, counts.Queues()
	for _, q := range a.entries.Governed.GovernedQueues() {
		if q.Governs() {
			all = append(all, newGovernedQueue(q, queues[q.Name], counts.More))
		}
	}
	return all, nil
}

// show shows one governed queue.
func (a *governedAPI) show(in *problem.Request) (any, error) {
	name := in.PathParam("name")
	in.Query()
	q := a.entries.Governed.GovernedQueue(name)
	if q == nil || !q.Governs() {
		return nil, problem.New(http.StatusNotFound, "there is no governed queue %q", problem.Shorten(name))
	}
	counts, err := a.entries.Occupancy(a.now())
	if err != nil {
		return nil, err
	}
	return newGovernedQueue(q, counts.Queues()[name], counts.More), nil
}

func newGovernedQueue(q *wire.DefinedQueue, count occupancy.Queue, more bool) answer.GovernedQueue {
	shown := answer.GovernedQueue{Name: q.Name, State: q.State, Since: q.Since, Definition: json.RawMessage("{}"), Layers: answer.LayersOf(q.Layers), WaitingMore: more, Waiting: count.Waiting, Out: count.Used}
	if merged, err := q.Merged(); err == nil {
		shown.Definition = merged
	}
	if def, err := q.Definition(); err == nil {
		shown.Paused = def.Paused
	}
	return shown
}

func governedNamed(c *wire.Command, name string) { c.Governed = name }

func governedDefined(one json.RawMessage) wire.Definitions {
	return wire.Definitions{Queues: []json.RawMessage{one}}
}

// sendJob sets where a job goes that is enqueued over HTTP: to its queue, or to jobs.gated if
// limits count it.
func sendJob(queues *tracker.GovernedQueues, m *wire.Message, job *wire.Job) {
	m.Exchange, m.Key = wire.ExchangeRoute, job.Queue
	if gated, _ := queues.Gates(job); gated {
		m.Exchange, m.Key = "", wire.Gated
	}
}

// refuseFull returns an error if so many jobs wait for a queue that no more are taken.
func refuseFull(queues *tracker.GovernedQueues, queue string) error {
	if q := queues.GovernedQueue(queue); q != nil && q.State == wire.QueueFull {
		return problem.New(http.StatusTooManyRequests, "queue %q is full: as many jobs wait for it as its max_waiting allows", problem.Shorten(queue))
	}
	return nil
}
