package apiclient

import (
	"cmp"
	"context"

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

// Overview is the state of everything.
type Overview struct {
	Version string  `json:"product_version"`
	VHost   string  `json:"vhost"`
	Now     float64 `json:"now"`
	Broker  struct {
		Connected bool   `json:"connected"`
		Product   string `json:"product"`
		Version   string `json:"version"`
	} `json:"broker"`
	Leader struct {
		Identity string  `json:"identity"`
		Epoch    int64   `json:"epoch"`
		Since    float64 `json:"since"`
	} `json:"leader"`
	Scheduler Scheduler `json:"scheduler"`
	Sets      map[string]struct {
		Total int64 `json:"total"`
	} `json:"sets"`
	Overdue float64 `json:"scheduled_overdue_seconds"`
	Views   struct {
		CaughtUp bool    `json:"caught_up"`
		Lag      float64 `json:"lag_seconds"`
		Streams  []struct {
			Stream   string `json:"stream"`
			CaughtUp bool   `json:"caught_up"`
			Fault    string `json:"fault"`
		} `json:"streams"`
	} `json:"views"`
	Rejected map[string]struct {
		Kept int64 `json:"kept"`
	} `json:"rejected"`
	Processes struct {
		Running     int64            `json:"running"`
		States      map[string]int64 `json:"states"`
		Concurrency int64            `json:"concurrency"`
		Busy        int64            `json:"busy"`
		RSSKB       int64            `json:"rss_kb"`
	} `json:"processes"`
	Jobs struct {
		Today       int64 `json:"processed_today"`
		FailedToday int64 `json:"failed_today"`
		Ever        int64 `json:"processed"`
		FailedEver  int64 `json:"failed"`
	} `json:"jobs"`
}

// Scheduler is the state of the scheduler of the sidecar that answers.
type Scheduler struct {
	Phase    string `json:"phase"`
	Gap      string `json:"gap"`
	Orphaned bool   `json:"orphaned"`
	Cause    string `json:"orphan_cause"`
	Remedy   string `json:"orphan_remedy"`
	Blocked  string `json:"blocked"`
	Lacks    string `json:"lacks"`
	Held     []struct {
		Queue  string `json:"queue"`
		Reason string `json:"reason"`
	} `json:"held"`
	Degraded []struct {
		Subject string `json:"subject"`
		Problem string `json:"problem"`
		Costs   string `json:"costs"`
	} `json:"degraded"`
}

// Overview asks for the overview.
func (c *Client) Overview(ctx context.Context) (*Overview, error) {
	return Get[Overview](ctx, c, OverviewPath, nil)
}

// Total returns how many jobs a set has.
func (o *Overview) Total(set string) int64 { return o.Sets[set].Total }

// Trouble is a reason for which jobs are not dispatched, and what to do about it.
type Trouble struct{ Subject, Text, Remedy string }

// Troubles returns what keeps the sidecar from dispatching jobs.
func (s *Scheduler) Troubles() (all []Trouble) {
	add := func(subject, text, remedy string) { all = append(all, Trouble{subject, text, remedy}) }
	if s.Gap != "" {
		add("journal", "may have lost records, so that what was due is held: "+s.Gap,
			"run the held jobs: millrace release (as an administrator)\nor discard them: millrace release --discard")
	}
	if s.Orphaned {
		add("leader", "no sidecar leads, no jobs are dispatched: "+cmp.Or(s.Cause, "a client has the lock "+wire.LeaderInbox), s.Remedy)
	}
	if s.Blocked != "" {
		add("leader", "the broker takes no messages: "+s.Blocked, "free memory or disk on the broker")
	}
	if s.Lacks != "" {
		add("streams", "nothing fires: "+s.Lacks, "start the node that has the stream")
	}
	for _, d := range s.Degraded {
		add(d.Subject, d.Costs+": "+d.Problem, "")
	}
	for _, h := range s.Held {
		add("queue "+h.Queue, "takes no jobs: "+h.Reason, "")
	}
	return all
}
