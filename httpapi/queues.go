package httpapi

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/scheduler"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/tracker/attention"
	"github.com/millrace-jobs/millrace/tracker/processes"
	"github.com/millrace-jobs/millrace/tracker/queues"
	"github.com/millrace-jobs/millrace/wire"
)

// queuesAPI shows the job queues.
type queuesAPI struct {
	watch   *queues.Watch // nil: this server does not look at queues
	counts  *tracker.Counts
	pauses  *tracker.Pauses
	workers *workers
	leader  func() scheduler.Status
	seen    atomic.Pointer[answer.QueueTotal] // when a client last looked; nil: none has
}

// States of a queue, besides those that the broker names.
const (
	queueRunning     = "running"
	queueIdle        = "idle"
	queueNoConsumers = "no_consumers"
	queuePaused      = "paused"
	queueSaturated   = attention.Saturated
)

func (q *queuesAPI) all(ctx context.Context) ([]answer.Queue, error) {
	if q.watch == nil {
		return nil, problem.Unavailable(errUnwired, "this server does not look at queues")
	}
	snap, err := q.watch.Look(ctx)
	if err != nil {
		return nil, problem.Unavailable(err, "the broker does not report its queues now")
	}
	q.seen.Store(&answer.QueueTotal{Total: len(snap.Queues)})
	usual, err := q.workers.usual(ctx)
	if err != nil {
		return nil, err
	}
	workers := q.workers.list()
	serving, full := processes.Serving(workers), processes.Saturated(workers)
	held := map[string]*answer.QueueHold{}
	for _, h := range q.leader().Held {
		held[h.Queue] = &answer.QueueHold{Reason: h.Reason, Since: wire.Seconds(h.Since), Until: wire.Seconds(h.Until)}
	}
	paused := q.pauses.Paused()
	all := make([]answer.Queue, len(snap.Queues))
	for i := range snap.Queues {
		all[i] = q.newQueue(&snap.Queues[i], snap.Rates, serving)
		if _, is := attention.Stalled(&snap.Queues[i], full, usual); is && all[i].State == queueRunning {
			all[i].State = queueSaturated
		}
		all[i].Held = held[all[i].Name]
		if p, is := paused[all[i].Name]; is {
			all[i].State, all[i].Paused = queuePaused, &p
		}
	}
	return all, nil
}

func (q *queuesAPI) newQueue(found *queues.Queue, rates bool, serving map[string]processes.Slots) answer.Queue {
	slots := serving[found.Name]
	shown := answer.Queue{
		Name: found.Name, State: queueState(found), Ready: found.Ready, Consumers: found.Consumers, GrowthRate: found.Growth,
		Scheduled: q.counts.InQueue(wire.ScheduledJobs, found.Name), Retries: q.counts.InQueue(wire.Retries, found.Name),
		Dead: q.counts.InQueue(wire.DeadJobs, found.Name), Processes: slots.Processes, Slots: slots.Slots, Busy: slots.Busy,
		Leased: q.counts.LeasedOf(found.Name),
	}
	if found.Ready > 0 {
		shown.Oldest = &answer.QueueAge{Seconds: found.Oldest.Seconds(), Accuracy: "at_least"}
		if found.Exact {
			shown.Oldest.Accuracy = "exact"
		}
	}
	if rates {
		lost := found.DeadLetterTo != wire.ExchangeDead
		shown.Unacked, shown.Bytes, shown.RejectsLost = &found.Unacked, &found.MessageBytes, &lost
		shown.PublishRate, shown.DeliverRate, shown.AckRate = &found.PublishRate, &found.DeliverRate, &found.AckRate
	}
	return shown
}

func queueState(q *queues.Queue) string {
	switch {
	case q.State != "" && q.State != queueRunning && q.State != queueIdle:
		return q.State // down, stopped, flow, closed
	case q.Ready > 0 && q.Consumers == 0:
		return queueNoConsumers
	case q.Ready == 0 && q.Unacked == 0 && q.PublishRate == 0 && q.DeliverRate == 0:
		return queueIdle // not a busy queue that quick workers keep empty
	}
	return queueRunning
}

// list lists the job queues by name.
func (q *queuesAPI) list(in *problem.Request) (any, error) {
	in.Query(append([]string{"state"}, pageParams...)...)
	page := readPaging(in)
	if in.Err() != nil {
		return nil, in.Err()
	}
	all, err := q.all(in.Request().Context())
	state := in.Text("state")
	found := slices.DeleteFunc(slices.Clone(all), func(q answer.Queue) bool { return state != "" && q.State != state })
	return pageOf(page, len(all), found), err
}

func (q *queuesAPI) show(in *problem.Request) (any, error) {
	name := readQueue(in)
	if in.Err() != nil {
		return nil, in.Err()
	}
	all, err := q.all(in.Request().Context())
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Name == name {
			return all[i], nil
		}
	}
	return nil, noQueue(name)
}

func noQueue(name string) error {
	return problem.New(http.StatusNotFound, "there is no queue %q", problem.Shorten(name))
}

// readQueue returns the queue in the path of a request that may have the known parameters.
func readQueue(in *problem.Request, known ...string) string {
	in.Query(known...)
	name := in.PathParam("queue")
	if err := wire.CheckQueueName(name); err != nil {
		in.BadRequest("%s", err)
	}
	return name
}
