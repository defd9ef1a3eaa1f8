package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/humantime"
	"github.com/millrace-jobs/millrace/internal/cli/output"
)

type statusCmd struct{ apiFlags }

// Run shows everything on one screen.
func (c *statusCmd) Run(ctx context.Context, out output.Streams) error {
	return get(ctx, out, &c.apiFlags, apiclient.OverviewPath, nil, func(p *output.Printer, o *overview) error {
		leader, err := c.APIClient().Check(ctx, "leader")
		if err != nil {
			return err
		}
		if err := p.Table(o.facts(leader.Reason)); err != nil || !p.ForPeople() {
			return err
		}
		if len(apiclient.Troubles(&o.Scheduler)) > 0 {
			_ = p.Note("millrace doctor says what to do")
		}
		if err := p.Note(""); err != nil {
			return err
		}
		return get(ctx, out, &c.apiFlags, attentionPath, nil, func(p *output.Printer, all *answer.Attention) error {
			return printProblems(p, all, "nothing needs attention")
		})
	})
}

// overview is the state of everything, as people read it.
type overview struct{ answer.Overview }

// facts returns the overview, a line each. silent says why the leader gives no sign of life, if it
// does not.
func (o *overview) facts(silent string) *output.Table {
	t := &output.Table{Columns: []output.Column{output.Plain("SUBJECT"), output.Fact("STATE")}, Bare: true}
	t.Rows = [][]any{
		{"broker", o.broker()},
		{"leader", o.leader(silent)},
		{"sidecar", o.Version + ": " + o.Scheduler.Phase},
		{"views", o.views()},
		{"scheduled", o.scheduled()},
		{"retries", fmt.Sprint(o.Sets[apiclient.Retries].Total)},
		{"dead", fmt.Sprint(o.Sets[apiclient.Dead].Total)},
		{"rejected", fmt.Sprint(o.rejected())},
		{"processes", o.processes()},
		{"ran", fmt.Sprintf("%d today, %d failed; %d in all, %d failed", o.Jobs.ProcessedToday, o.Jobs.FailedToday, o.Jobs.Processed, o.Jobs.Failed)},
	}
	for _, trouble := range apiclient.Troubles(&o.Scheduler) {
		t.Add(trouble.Subject, trouble.Text)
	}
	return t
}

func (o *overview) broker() string {
	text := fmt.Sprintf("%s %s, virtual host %s", o.Broker.Product, o.Broker.Version, o.VHost)
	if !o.Broker.Connected {
		return strings.TrimSpace(text) + ": not connected"
	}
	return text
}

func (o *overview) leader(silent string) string {
	if o.Leader.Epoch < 0 {
		return "there was none yet"
	}
	since := humantime.Unix(o.Leader.Since)
	text := fmt.Sprintf("%s, since %s (%s)", o.Leader.Identity, since.Format(humantime.WithZone), humantime.Relative(since, humantime.Unix(o.Now)))
	if silent != "" {
		text += ": " + silent
	}
	return text
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
	text := fmt.Sprint(o.Sets[apiclient.Scheduled].Total)
	if o.Overdue > 0 {
		text += fmt.Sprintf("; the oldest due job is %s late", humantime.Short(time.Duration(o.Overdue*float64(time.Second))))
	}
	return text
}

func (o *overview) rejected() (kept int64) {
	for _, r := range o.Rejected {
		kept += r.Kept
	}
	return kept
}

func (o *overview) processes() string {
	p := &o.Processes
	text := fmt.Sprintf("%d run, %d of %d busy, %d MB", p.Running, p.Busy, p.Concurrency, p.RSSKB/1024)
	for _, state := range []string{"quiet", "stopping", "lost"} {
		if n := p.States[state]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, state)
		}
	}
	return text
}
