package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace-jobs/millrace/tracker/metrics"
)

var (
	descFinished   = desc("jobs_finished_total", "Attempts by outcome, as workers report them.", "class", "queue", "outcome")
	descJobsFailed = desc("jobs_failed_total", "Attempts that failed, by error class.", "class", "queue", "error")
	descRun        = desc("job_run_seconds", "How long attempts ran.", "queue")
	descWait       = desc("job_wait_seconds", "How long jobs waited for their first attempt.", "queue")
	descAttempts   = desc("job_attempts", "At which attempt jobs came to their end: they succeeded, died or were discarded.", "class", "queue")
)

// jobs sends all that was ever counted, which every sidecar knows alike. Package metrics bounds the
// classes and queues; the error classes are bounded here.
type jobs struct{ metrics *metrics.Reader }

func (p jobs) collect(out sink) {
	if p.metrics == nil {
		return
	}
	run, wait := map[string]metrics.Spread{}, map[string]metrics.Spread{}
	series := 0
	err := p.metrics.AllTime(func(class, queue string, s metrics.Sum, errors map[string]int64) {
		for outcome, n := range map[string]int64{"success": s.Success, "failed": s.Failed, "dead": s.Dead, "discarded": s.Discarded, "expired": s.Expired} {
			out.counter(descFinished, n, class, queue, outcome) // also 0: the first is an increase
		}
		for name, n := range errors {
			if series++; series <= maxErrorSeries {
				out.counter(descJobsFailed, n, class, queue, name)
			}
		}
		out.attempts(s.Attempts, class, queue) // also 0
		run[queue], wait[queue] = addSpread(run[queue], s.Run), addSpread(wait[queue], s.Wait)
	})
	if err != nil {
		return // the API reports the reason
	}
	for queue := range run {
		out.spread(descRun, run[queue], queue)
		out.spread(descWait, wait[queue], queue)
	}
}

// maxErrorSeries bounds the series by error class.
const maxErrorSeries = 2000

func addSpread(a, b metrics.Spread) metrics.Spread {
	a.Count, a.Sum = a.Count+b.Count, a.Sum+b.Sum
	if a.Buckets == nil {
		a.Buckets = make([]int64, len(b.Buckets))
	}
	for i, n := range b.Buckets {
		a.Buckets[i] += n
	}
	return a
}

func (s sink) spread(d *prometheus.Desc, v metrics.Spread, labels ...string) {
	s.histogram(d, metrics.Bounds, v.Buckets, v.Count, v.Sum, labels...)
}

// attemptBounds are the upper ends of the buckets of attempts. By default a job is tried 26 times.
var attemptBounds = []int{1, 2, 3, 5, 10, 15, 25}

// attempts sends jobs by the attempt at which they ended: jobs[0] ended at the first.
func (s sink) attempts(jobs []int64, labels ...string) {
	upTo := map[float64]uint64{}
	for _, b := range attemptBounds {
		upTo[float64(b)] = 0
	}
	var count, sum int64
	for i, n := range jobs {
		count, sum = count+n, sum+n*int64(i+1)
		for _, b := range attemptBounds {
			if i < b {
				upTo[float64(b)] += uint64(n)
			}
		}
	}
	s <- prometheus.MustNewConstHistogram(descAttempts, uint64(count), float64(sum), upTo, labels...)
}
