package httpapi

import (
	"context"

	"github.com/millrace-jobs/millrace/tracker/attention"
	"github.com/millrace-jobs/millrace/tracker/processes"
)

var (
	descQueueJobs    = desc("queue_jobs", "Jobs in a queue.", "queue", "state")
	descEnqueued     = desc("jobs_enqueued_total", "Jobs that came into a queue, as the broker counts them: those that Millrace fires too.", "queue")
	descQueueOldest  = desc("queue_oldest_job_age_seconds", "How long the oldest job of a queue waits, at least.", "queue")
	descQueueWorkers = desc("queue_workers", "Consumers of a queue.", "queue")
	descQueuePaused  = desc("queue_paused", "1 if the queue is paused.", "queue")
	descQueueSlots   = desc("queue_slots", "Jobs of a queue that live processes can run at once.", "queue")
	descQueueBusy    = desc("queue_busy_slots", "Jobs of a queue that processes say they run.", "queue")
	descQueueFull    = desc("queue_saturated", "1 if jobs wait, no worker of the queue has a free slot, and no job was taken for a minute or longer.", "queue")
	descQueueSLO     = desc("queue_slo_seconds", "How long a job may wait in a queue.", "queue")
)

// maxQueueSeries bounds the queues that have metrics; Millrace itself makes no more.
const maxQueueSeries = 1000

func (c *collector) collectQueues(out sink) {
	if c.cfg.Queues == nil {
		return
	}
	snap, err := c.cfg.Queues.Look(context.Background())
	if err != nil {
		return // broker_connected tells
	}
	serving, full := map[string]processes.Slots{}, map[string]processes.Full{}
	if c.cfg.Processes != nil {
		workers := c.cfg.Processes.List()
		serving, full = processes.Serving(workers), processes.Saturated(workers)
	}
	usual, err := c.usual(context.Background())
	if err != nil {
		return
	}
	paused := c.cfg.Entries.Paused()
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
		if c.cfg.QueueSLO == nil {
			continue
		}
		if slo := c.cfg.QueueSLO(q.Name); slo > 0 {
			out.gauge(descQueueSLO, slo.Seconds(), q.Name)
		}
	}
}
