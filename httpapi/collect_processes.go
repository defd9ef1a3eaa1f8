package httpapi

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

// maxProcessSeries bounds the processes that have metrics of their own; with more, only sums are there.
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
	if usual, err := c.usual(context.Background()); err == nil {
		out.gauge(descStuckJobs, float64(attention.StuckJobs(all, usual)))
	}
	if len(all) > maxProcessSeries {
		return
	}
	seen := map[[2]string]bool{} // several processes may say the same of themselves
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
