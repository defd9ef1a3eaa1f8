package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/internal/cli/humantime"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/wire"
)

const overviewPath = "/api/overview"

// overview is the state of everything, as the API gives it.
type overview struct {
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
	Scheduler schedulerState `json:"scheduler"`
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

// schedulerState is what the sidecar that is asked does itself.
type schedulerState struct {
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

// overview asks how everything is.
func (c *client) overview(ctx context.Context) (*overview, error) {
	body, err := c.do(ctx, http.MethodGet, overviewPath, nil, nil)
	if err != nil {
		return nil, err
	}
	return readAnswer[overview](body)
}

// total is how many entries a set has.
func (o *overview) total(s set) int64 { return o.Sets[strings.TrimPrefix(s.path, "/api/")].Total }

// trouble is what keeps a sidecar from firing, and what to do about it.
type trouble struct{ subject, text, remedy string }

func (s *schedulerState) troubles() (all []trouble) {
	if s.Gap != "" {
		all = append(all, trouble{"journal", "may have lost records, so that what was due is held: " + s.Gap,
			"run the held jobs: millrace release (as an administrator)\nor discard them: millrace release --discard"})
	}
	if s.Orphaned {
		all = append(all, trouble{"leader", "no sidecar leads, no jobs are dispatched: " +
			cmp.Or(s.Cause, "a client has the lock "+wire.LeaderInbox), s.Remedy})
	}
	if s.Blocked != "" {
		all = append(all, trouble{"leader", "the broker takes no messages: " + s.Blocked, "free memory or disk on the broker"})
	}
	if s.Lacks != "" {
		all = append(all, trouble{"streams", "nothing fires: " + s.Lacks, "start the node that has the stream"})
	}
	for _, d := range s.Degraded {
		all = append(all, trouble{d.Subject, d.Costs + ": " + d.Problem, ""})
	}
	for _, h := range s.Held {
		all = append(all, trouble{"queue " + h.Queue, "takes no jobs: " + h.Reason, ""})
	}
	return all
}

// facts are the overview, a line each. silent says why the leader gives no sign of life, if it does not.
func (o *overview) facts(silent string) *output.Table {
	t := &output.Table{Columns: []output.Column{output.Plain("SUBJECT"), output.Fact("STATE")}, Bare: true}
	t.Rows = [][]any{
		{"broker", o.broker()},
		{"leader", o.leader(silent)},
		{"sidecar", o.Version + ": " + o.Scheduler.Phase},
		{"views", o.views()},
		{"scheduled", o.scheduled()},
		{"retries", fmt.Sprint(o.total(retriesSet))},
		{"dead", fmt.Sprint(o.total(deadSet))},
		{"rejected", fmt.Sprint(o.rejected())},
		{"processes", o.processes()},
		{"ran", fmt.Sprintf("%d today, %d failed; %d in all, %d failed", o.Jobs.Today, o.Jobs.FailedToday, o.Jobs.Ever, o.Jobs.FailedEver)},
	}
	for _, trouble := range o.Scheduler.troubles() {
		t.Add(trouble.subject, trouble.text)
	}
	return t
}

func (o *overview) broker() string {
	said := fmt.Sprintf("%s %s, virtual host %s", o.Broker.Product, o.Broker.Version, o.VHost)
	if !o.Broker.Connected {
		return strings.TrimSpace(said) + ": not connected"
	}
	return said
}

func (o *overview) leader(silent string) string {
	if o.Leader.Epoch < 0 {
		return "there was none yet"
	}
	since := humantime.Unix(o.Leader.Since)
	said := fmt.Sprintf("%s, since %s (%s)", o.Leader.Identity, since.Format(humantime.WithZone), humantime.Relative(since, humantime.Unix(o.Now)))
	if silent != "" {
		said += ": " + silent
	}
	return said
}

func (o *overview) views() string {
	if o.Views.CaughtUp {
		return fmt.Sprintf("caught up, %.1fs behind", o.Views.Lag)
	}
	var behind []string
	for _, s := range o.Views.Streams {
		switch {
		case s.Fault != "":
			behind = append(behind, s.Stream+" ("+s.Fault+")")
		case !s.CaughtUp:
			behind = append(behind, s.Stream)
		}
	}
	return "not caught up with " + strings.Join(behind, ", ")
}

func (o *overview) scheduled() string {
	said := fmt.Sprint(o.total(scheduledSet))
	if o.Overdue > 0 {
		said += fmt.Sprintf("; the oldest that is due waits for %s", humantime.Short(time.Duration(o.Overdue*float64(time.Second))))
	}
	return said
}

func (o *overview) rejected() (kept int64) {
	for _, r := range o.Rejected {
		kept += r.Kept
	}
	return kept
}

func (o *overview) processes() string {
	p := &o.Processes
	said := fmt.Sprintf("%d run, %d of %d busy, %d MB", p.Running, p.Busy, p.Concurrency, p.RSSKB/1024)
	for _, state := range []string{"quiet", "stopping", "lost"} {
		if n := p.States[state]; n > 0 {
			said += fmt.Sprintf(", %d %s", n, state)
		}
	}
	return said
}
