package cli

import (
	"cmp"
	"context"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/humantime"
	"github.com/millrace-jobs/millrace/internal/cli/output"
)

type metricsCmd struct {
	apiFlags

	Class string        `arg:"" optional:"" help:"Only jobs of this class, by queue."`
	Queue string        `short:"q" placeholder:"QUEUE" help:"Only this queue."`
	From  string        `placeholder:"TIME" help:"Start of the range (an hour ago)."`
	To    string        `placeholder:"TIME" help:"End of the range (now)."`
	Step  time.Duration `placeholder:"DURATION" help:"Show a row for each step of this length, instead of one for each class."`
}

// sumCells returns the cells of a sum; first says what it is of.
func sumCells(first any, s *answer.JobSum) []any {
	row, unknown := []any{first, s.Success, s.Failed, s.Dead}, &answer.Spread{}
	run, wait := cmp.Or(s.Run, unknown), cmp.Or(s.Wait, unknown)
	for _, ms := range []float64{run.P50, run.P95, run.P99, wait.P95, s.Total} {
		row = append(row, millis(ms))
	}
	return row
}

// millis returns a duration as people read it.
func millis(ms float64) string {
	d := time.Duration(ms * float64(time.Millisecond))
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}

// Run shows how many attempts there were, and how long they took.
func (c *metricsCmd) Run(ctx context.Context, out output.Streams) error {
	query := given("queue", c.Queue)
	if c.Step > 0 {
		query.Set("step", seconds(c.Step))
	}
	if err := setTimes(query, c.From, c.To, time.Now()); err != nil {
		return err
	}
	path := "/api/job-metrics"
	if c.Class != "" {
		path += "/" + apiclient.Segment(c.Class)
	}
	return get(ctx, out, &c.apiFlags, path, query, c.print)
}

func (c *metricsCmd) print(p *output.Printer, sums *answer.JobMetrics) error {
	columns := []output.Column{output.Name("CLASS"), output.Plain("SUCCESS"), output.Plain("FAILED"), output.Plain("DEAD"), output.Plain("RUN P50"),
		output.Plain("RUN P95"), output.Plain("RUN P99"), output.Plain("WAIT P95"), output.Plain("RUN TOTAL")}
	named := func(s *answer.NamedSum) []any { return sumCells(s.Name, &s.JobSum) }
	var t *output.Table
	switch {
	case c.Step > 0:
		columns[0] = output.Time("TIME")
		t = output.TableOf(columns, sums.Series, func(s *answer.JobPoint) []any { return sumCells(humantime.Unix(s.At), &s.JobSum) })
	case c.Class != "":
		columns[0] = output.Name("QUEUE")
		t = output.TableOf(columns, sums.Queues, named)
	default:
		t = output.TableOf(columns, sums.Classes, named)
	}
	t.Add(sumCells("total", &sums.Total)...)
	return p.Table(t)
}
