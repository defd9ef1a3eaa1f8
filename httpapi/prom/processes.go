package prom

import (
	"context"
	"strconv"
	"time"

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

// workers sends what the worker processes say of themselves.
type workers struct {
	processes *processes.Processes
	usual     func(ctx context.Context) (map[string]time.Duration, error)
}

func (p workers) collect(out sink) {
	if p.processes == nil {
		return
	}
	all := p.processes.List()
	sum := processes.Sum(all)
	for state, n := range sum.States {
		out.gauge(descProcesses, float64(n), state)
	}
	out.gauge(descSlots, float64(sum.Concurrency))
	out.gauge(descBusySlots, float64(sum.Busy))
	if usual, err := p.usual(context.Background()); err == nil {
		out.gauge(descStuckJobs, float64(attention.StuckJobs(all, usual)))
	}
	if len(all) > maxProcessSeries {
		return
	}
	seen := map[[2]string]bool{} // several processes may give the same host and pid
	for i := range all {
		process := &all[i]
		labels := [2]string{process.Hostname, strconv.FormatInt(process.PID, 10)}
		if seen[labels] {
			continue
		}
		seen[labels] = true
		out.gauge(descHeartbeatAge, process.Silent.Seconds(), labels[:]...)
		out.gauge(descRSS, float64(process.RSSKB)*1024, labels[:]...)
	}
}
