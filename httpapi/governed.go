package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/tracker/occupancy"
	"github.com/millrace-jobs/millrace/tracker/queues"
	"github.com/millrace-jobs/millrace/wire"
)

// governedAPI shows and changes which queues are governed.
type governedAPI struct {
	*definer
	entries *tracker.Reader
	queues  *queues.Watch // nil: this server does not look at queues
	now     func() time.Time
}

// list lists all governed queues, by name.
func (a *governedAPI) list(in *problem.Request) (any, error) {
	in.Query()
	counts, err := a.entries.Occupancy(a.now())
	if err != nil {
		return nil, err
	}
	all, found := []answer.GovernedQueue{}, counts.Queues()
	for _, q := range a.entries.Governed.GovernedQueues() {
		if q.Governs() {
			all = append(all, newGovernedQueue(q, found[q.Name], counts.More))
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

// set sets the operator's layer of a governed queue. With dry_run it answers what that would mean.
func (a *governedAPI) set(in *problem.Request) error {
	in.Query("dry_run")
	dry := dryRun(in)
	raw, err := layer(in)
	if err != nil {
		return err
	}
	all := wire.Definitions{Queues: []json.RawMessage{raw}}
	cmd := operators(all)
	// The leader is asked in any case: only it finds out whether a queue can be governed.
	cmd.DryRun = dry
	if _, err := a.command(in, cmd); err != nil {
		return err
	}
	if dry {
		return a.preview(in, all)
	}
	return in.NoContent(http.StatusNoContent)
}

// preview answers what it would mean to govern a queue with another layer of the operator.
func (a *governedAPI) preview(in *problem.Request, all wire.Definitions) error {
	named, err := all.GovernedQueues()
	if err != nil {
		return err
	}
	would := &wire.DefinedQueue{Name: named[0].Name}
	if q := a.entries.Governed.GovernedQueue(would.Name); q != nil && q.Governs() {
		would.State, would.Layers = q.State, q.Layers
	}
	would.Layers = withOperator(would.Layers, named[0].Value, a.now())
	shown := answer.GovernedPreview{Name: would.Name, State: would.State, Limits: a.limitsOf(would.Name), Gated: a.entries.InQueue(wire.Gated, would.Name),
		Scheduled: a.entries.InQueue(wire.ScheduledJobs, would.Name), Retries: a.entries.InQueue(wire.Retries, would.Name)}
	if shown.Definition, err = would.Merged(); err != nil {
		return err
	}
	def, err := would.Definition()
	if err != nil {
		return err
	}
	if def.MaxWaiting > 0 {
		full := def.Full(shown.Gated, would.State == wire.QueueFull || would.State == wire.QueueSuspended)
		shown.Full = &full
	}
	shown.Ready, shown.Unacked = a.within(in.Request().Context(), would.Name)
	return in.JSON(http.StatusOK, shown)
}

// limitsOf returns the names of the limits that count jobs of a queue.
func (a *governedAPI) limitsOf(queue string) []string {
	names := []string{}
	for _, d := range a.entries.Limits.Limits() {
		if def, err := d.Definition(); err == nil && def.CoversQueue(queue) {
			names = append(names, d.Name)
		}
	}
	return names
}

// within returns how many jobs are in a queue itself, and how many of it workers have. It returns
// nil for what the broker does not report.
func (a *governedAPI) within(ctx context.Context, queue string) (ready, unacked *int64) {
	if a.queues == nil {
		return nil, nil
	}
	snap, err := a.queues.Look(ctx)
	if err != nil {
		return nil, nil
	}
	for i := range snap.Queues {
		if q := &snap.Queues[i]; q.Name == queue {
			if ready = &q.Ready; snap.Rates {
				unacked = &q.Unacked
			}
		}
	}
	return ready, unacked
}

func governedNamed(c *wire.Command, name string) { c.Governed = name }

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
