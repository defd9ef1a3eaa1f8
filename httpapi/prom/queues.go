package prom

import (
	"context"
	"strconv"

	"github.com/millrace-jobs/millrace/tracker/attention"
	"github.com/millrace-jobs/millrace/tracker/processes"
)

var (
	descProcesses    = desc("processes", "Worker processes.", "state")
	descSlots        = desc("process_slots", "Jobs that the processes that are not lost can run at once.")
	descBusySlots    = desc("process_busy_slots", "Jobs that they run.")
	descStuckJobs    = desc("stuck_jobs", "Jobs that have run for over five minutes, and ten times as long as usual.")
	descHeartbeatAge = desc("process_heartbeat_age_seconds", "How long a process has not been heard.", "host", "pid")
	descRSS          = desc("process_rss_bytes", "Memory of a worker process, as it says.", "host", "pid")
)

// maxProcessSeries bounds the processes that have series. With more there are only sums.
const maxProcessSeries = 500

func (c *collector) collectProcesses(out sink) {
	if c.cfg.Processes == nil {
		return
	}
	all := c.cfg.Processes.List()
	sum := processes.Sum(all)
	for state, n := range sum.States {
		out.gauge(descProcesses, float64(n), state)
	}
	out.gauge(descSlots, float64(sum.Concurrency))
	out.gauge(descBusySlots, float64(sum.Busy))
	if usual, err := c.cfg.Usual(context.Background()); err == nil {
		out.gauge(descStuckJobs, float64(attention.StuckJobs(all, usual)))
	}
	if len(all) > maxProcessSeries {
		return
	}
	seen := map[[2]string]bool{} // several processes may give the same host and pid
	for i := range all {
		p := &all[i]
		labels := [2]string{p.Hostname, strconv.FormatInt(p.PID, 10)}
		if seen[labels] {
			continue
		}
		seen[labels] = true
		out.gauge(descHeartbeatAge, p.Silent.Seconds(), labels[:]...)
		out.gauge(descRSS, float64(p.RSSKB)*1024, labels[:]...)
	}
}

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

func (c *collector) collectQueues(out sink) {
	if c.cfg.Queues == nil {
		return
	}
	snap, err := c.cfg.Queues.Look(context.Background())
	if err != nil {
		return // broker_connected says so
	}
	serving, full := map[string]processes.Slots{}, map[string]processes.Full{}
	if c.cfg.Processes != nil {
		workers := c.cfg.Processes.List()
		serving, full = processes.Serving(workers), processes.Saturated(workers)
	}
	usual, err := c.cfg.Usual(context.Background())
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
