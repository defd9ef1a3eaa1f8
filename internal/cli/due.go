package cli

import (
	"context"
	"strconv"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/cli/humantime"
	"github.com/millrace-jobs/millrace/internal/cli/output"
)

type dueCmd struct {
	apiFlags

	Set  string        `placeholder:"SET" enum:",scheduled-jobs,retries" default:"" help:"Which jobs: scheduled-jobs (default) or retries."`
	From string        `placeholder:"TIME" help:"Start of the range (now)."`
	To   string        `placeholder:"TIME" help:"End of the range (a day after its start)."`
	Step time.Duration `placeholder:"DURATION" default:"1h" help:"Length of a row (${default})."`
}

const dueTimesPath = "/api/due-times"

// dueTable returns a row for each step in which a job is due.
func dueTable(d *answer.DueTimes) (t *output.Table, total int64) {
	t = &output.Table{Columns: []output.Column{output.Time("DUE FROM"), output.Plain("JOBS")}}
	add := func(when any, n int64) {
		if n > 0 {
			t.Add(when, n)
			total += n
		}
	}
	add("earlier", d.Before)
	for i, n := range d.Counts {
		add(humantime.Unix(d.From+float64(int64(i)*d.Step)), n)
	}
	add("later", d.After)
	return t, total
}

// Run shows how many jobs are due when.
func (c *dueCmd) Run(ctx context.Context, out output.Streams) error {
	query := given("step", seconds(c.Step), "set", c.Set)
	if err := setTimes(query, c.From, c.To, time.Now()); err != nil {
		return err
	}
	return get(ctx, out, &c.apiFlags, dueTimesPath, query, func(p *output.Printer, d *answer.DueTimes) error {
		t, total := dueTable(d)
		end := summary(total, total, nil, 0)
		if !d.Complete {
			end += "; not all could be read: those count as later"
		}
		return p.List(t, end)
	})
}

// seconds returns the whole seconds of a duration, as queries have them.
func seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }
