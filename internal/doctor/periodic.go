package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace-jobs/millrace/wire"
)

const periodicJobs = "periodic jobs"

// periodicJobs looks for periodic jobs that are never due, and for those that no worker runs.
func (e *examination) periodicJobs(ctx context.Context) error {
	jobs, err := e.cfg.API.PeriodicJobs(ctx)
	if err != nil || len(jobs) == 0 {
		return nil // an older sidecar has none
	}
	consumed, err := e.consumed(ctx)
	if err != nil {
		return err
	}
	var idle, queues []string
	fine := true
	for _, j := range jobs {
		switch {
		case j.State == "incomplete":
			fine = false
			e.reportOn(periodicJobs, failure, fmt.Sprintf("%s has no ticks: %s", j.Name, j.Problem), "define it again, or delete it: millrace periodic delete "+j.Name)
		case j.State == "active" && consumed != nil && !consumed[wire.QueuePrefix+j.Queue]:
			idle, queues = append(idle, j.Name), append(queues, j.Queue)
		}
	}
	if len(idle) > 0 {
		slices.Sort(queues)
		e.reportOn(periodicJobs, note, fmt.Sprintf("no worker consumes the queue of %s", named(idle)), "start one for: "+strings.Join(slices.Compact(queues), ", "))
		fine = false
	}
	if fine {
		e.reportOn(periodicJobs, ok, wire.Counted(int64(len(jobs)), "periodic job")+": all have ticks, and workers for their queues", "")
	}
	return nil
}

// consumed returns which queues have consumers, or nil if the management API cannot be asked. A
// queue that does not exist yet has none: the sidecar makes it for its first job.
func (e *examination) consumed(ctx context.Context) (map[string]bool, error) {
	if e.mgmt == nil {
		return nil, nil
	}
	all, err := e.allQueues(ctx)
	if err != nil {
		return nil, err
	}
	consumed := map[string]bool{}
	for _, q := range all {
		consumed[q.Name] = q.Consumers > 0
	}
	return consumed, nil
}
