package cli

import (
	"context"
	"time"

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

// jobSum is the sum of the attempts of one class, one queue or one step.
type jobSum struct {
	At      float64 `json:"at"`
	Name    string  `json:"name"`
	Success int64   `json:"success"`
	Failed  int64   `json:"failed"`
	Dead    int64   `json:"dead"`
	Total   float64 `json:"total_ms"`
	Run     spread  `json:"run"`
	Wait    spread  `json:"wait"`
}

type spread struct {
	P50 float64 `json:"p50_ms"`
	P95 float64 `json:"p95_ms"`
	P99 float64 `json:"p99_ms"`
}

func (s *jobSum) cells(first any) []any {
	row := []any{first, s.Success, s.Failed, s.Dead}
	for _, ms := range []float64{s.Run.P50, s.Run.P95, s.Run.P99, s.Wait.P95, s.Total} {
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

// jobSums are the sums of a range of time.
type jobSums struct {
	Total   jobSum   `json:"total"`
	Series  []jobSum `json:"series"`
	Classes []jobSum `json:"classes"`
	Queues  []jobSum `json:"queues"`
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

func (c *metricsCmd) print(p *output.Printer, sums *jobSums) error {
	first, items := output.Name("CLASS"), sums.Classes
	cells := func(s *jobSum) []any { return s.cells(s.Name) }
	switch {
	case c.Step > 0:
		first, items = output.Time("TIME"), sums.Series
		cells = func(s *jobSum) []any { return s.cells(humantime.Unix(s.At)) }
	case c.Class != "":
		first, items = output.Name("QUEUE"), sums.Queues
	}
	columns := []output.Column{first, output.Plain("SUCCESS"), output.Plain("FAILED"), output.Plain("DEAD"), output.Plain("RUN P50"),
		output.Plain("RUN P95"), output.Plain("RUN P99"), output.Plain("WAIT P95"), output.Plain("RUN TOTAL")}
	t := output.TableOf(columns, items, cells)
	t.Rows = append(t.Rows, sums.Total.cells("total"))
	return p.Table(t)
}
