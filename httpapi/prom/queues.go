package prom

import (
	"context"
	"time"

	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/tracker/attention"
	"github.com/millrace-jobs/millrace/tracker/processes"
	"github.com/millrace-jobs/millrace/tracker/queues"
)

var (
	descQueueJobs    = desc("queue_jobs", "Jobs in a queue.", "queue", "state")
	descEnqueued     = desc("jobs_enqueued_total", "Jobs that came into a queue, as the broker counts them: those that Millrace delivers too.", "queue")
	descQueueOldest  = desc("queue_oldest_job_age_seconds", "How long the oldest job of a queue waits, at least.", "queue")
	descQueueWorkers = desc("queue_workers", "Consumers of a queue.", "queue")
	descQueuePaused  = desc("queue_paused", "1 if the queue is paused.", "queue")
	descQueueSlots   = desc("queue_slots", "Jobs of a queue that live processes can run at once.", "queue")
	descQueueBusy    = desc("queue_busy_slots", "Jobs of a queue that processes say they run.", "queue")
	descQueueFull    = desc("queue_saturated", "1 if jobs wait, no worker of the queue has a free slot, and no job was taken for a minute or longer.", "queue")
	descQueueSLO     = desc("queue_slo_seconds", "How long a job may wait in a queue.", "queue")
)

// maxQueueSeries bounds the queues that have series. Millrace itself makes no more.
const maxQueueSeries = 1000

// depths sends what waits in the queues, and who takes it.
type depths struct {
	queues    *queues.Watch
	processes *processes.Processes
	entries   *tracker.Reader
	usual     func(ctx context.Context) (map[string]time.Duration, error)
	slo       func(queue string) time.Duration
}

func (p *depths) collect(out sink) {
	if p.queues == nil {
		return
	}
	snap, err := p.queues.Look(context.Background())
	if err != nil {
		return // broker_connected says so
	}
	serving, full := map[string]processes.Slots{}, map[string]processes.Full{}
	if p.processes != nil {
		workers := p.processes.List()
		serving, full = processes.Serving(workers), processes.Saturated(workers)
	}
	usual, err := p.usual(context.Background())
	if err != nil {
		return
	}
	paused := p.entries.Paused()
	for i := range snap.Queues[:min(len(snap.Queues), maxQueueSeries)] {
		q := &snap.Queues[i]
		out.gauge(descQueueJobs, float64(q.Ready), q.Name, "ready")
		if snap.Rates {
			out.gauge(descQueueJobs, float64(q.Unacked), q.Name, "unacked")
			out.counter(descEnqueued, q.Published, q.Name)
		}
		out.gauge(descQueueOldest, q.Oldest.Seconds(), q.Name)
		out.gauge(descQueueWorkers, float64(q.Consumers), q.Name)
		_, isPaused := paused[q.Name]
		out.gauge(descQueuePaused, truth(isPaused), q.Name)
		_, stalls := attention.Stalled(q, full, usual)
		out.gauge(descQueueFull, truth(stalls && !isPaused), q.Name)
		out.gauge(descQueueSlots, float64(serving[q.Name].Slots), q.Name)
		out.gauge(descQueueBusy, float64(serving[q.Name].Busy), q.Name)
		if p.slo == nil {
			continue
		}
		if slo := p.slo(q.Name); slo > 0 {
			out.gauge(descQueueSLO, slo.Seconds(), q.Name)
		}
	}
}
