package apiclient

import (
	"cmp"
	"context"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/wire"
)

// OverviewPath is where the API has the overview.
const OverviewPath = "/api/overview"

// Sets of jobs, as the API calls them.
const (
	Scheduled = "scheduled-jobs"
	Retries   = "retries"
	Gated     = "gated-jobs"
	Dead      = "dead-jobs"
)

// PeriodicJobs asks for all periodic jobs.
func (c *Client) PeriodicJobs(ctx context.Context) ([]answer.PeriodicJob, error) {
	jobs, err := Get[[]answer.PeriodicJob](ctx, c, "/api/periodic-jobs", nil)
	if err != nil {
		return nil, err
	}
	return *jobs, nil
}

// GovernedQueues asks for all governed queues.
func (c *Client) GovernedQueues(ctx context.Context) ([]answer.GovernedQueue, error) {
	queues, err := Get[[]answer.GovernedQueue](ctx, c, "/api/governed-queues", nil)
	if err != nil {
		return nil, err
	}
	return *queues, nil
}

// Overview asks for the overview.
func (c *Client) Overview(ctx context.Context) (*answer.Overview, error) {
	return Get[answer.Overview](ctx, c, OverviewPath, nil)
}

// Trouble is a reason for which jobs are not dispatched, and what to do about it.
type Trouble struct{ Subject, Text, Remedy string }

// Troubles returns what keeps the sidecar from dispatching jobs.
func Troubles(s *answer.Scheduler) (all []Trouble) {
	add := func(subject, text, remedy string) { all = append(all, Trouble{subject, text, remedy}) }
	if s.Gap != "" {
		add("journal", "may have lost records, so that what was due is held: "+s.Gap,
			"run the held jobs: millrace release (as an administrator)\nor discard them: millrace release --discard")
	}
	if s.Orphaned {
		add("leader", "no sidecar leads, no jobs are dispatched: "+cmp.Or(s.OrphanCause, "a client has the lock "+wire.LeaderInbox), s.OrphanCure)
	}
	if s.Blocked != "" {
		add("leader", "the broker has an alarm and blocks publishers: "+s.Blocked, "free memory or disk on the broker")
	}
	if s.Lacks != "" {
		add("streams", "no jobs are delivered: "+s.Lacks, "start the node that has the stream")
	}
	for _, d := range s.Degraded {
		add(d.Subject, d.Costs+": "+d.Problem, "")
	}
	for _, h := range s.Held {
		add("queue "+h.Queue, "takes no jobs: "+h.Reason, "")
	}
	return all
}
