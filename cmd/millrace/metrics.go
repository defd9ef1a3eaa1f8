package main

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/humantime"
	"github.com/millrace-jobs/millrace/internal/cli/output"
)

type metricsCmd struct {
	lookSettings

	Class string        `arg:"" optional:"" help:"Only jobs of this class, by queue."`
	Queue string        `short:"q" placeholder:"QUEUE" help:"Only this queue."`
	From  string        `placeholder:"TIME" help:"Start of the range (an hour ago)."`
	To    string        `placeholder:"TIME" help:"End of the range (now)."`
	Step  time.Duration `placeholder:"DURATION" help:"Show a row for each step of this length, instead of one for each class."`
}

// jobSum is what was done of one kind or in one step.
type jobSum struct {
	At        float64 `json:"at"`
	Name      string  `json:"name"`
	Success   int64   `json:"success"`
	Failed    int64   `json:"failed"`
	Dead      int64   `json:"dead"`
	Discarded int64   `json:"discarded"`
	Expired   int64   `json:"expired"`
	Total     float64 `json:"total_ms"`
	Run       *spread `json:"run"`
	Wait      *spread `json:"wait"`
}

type spread struct {
	P50 float64 `json:"p50_ms"`
	P95 float64 `json:"p95_ms"`
	P99 float64 `json:"p99_ms"`
}

func (s *jobSum) cells(first any) []any {
	run, wait := spread{}, spread{}
	if s.Run != nil {
		run = *s.Run
	}
	if s.Wait != nil {
		wait = *s.Wait
	}
	row := []any{first, s.Success, s.Failed, s.Dead}
	for _, ms := range []float64{run.P50, run.P95, run.P99, wait.P95, s.Total} {
		row = append(row, inMillis(ms))
	}
	return row
}

// inMillis is a span as people read it.
func inMillis(ms float64) string {
	d := time.Duration(ms * float64(time.Millisecond))
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}

// Run prints what was done.
func (c *metricsCmd) Run(ctx context.Context, out output.Streams) error {
	query, err := c.query(time.Now())
	if err != nil {
		return err
	}
	path := "/api/job-metrics"
	if c.Class != "" {
		path += "/" + apiclient.Segment(c.Class)
	}
	return look(ctx, out, &c.lookSettings, path, query, c.print)
}

// jobSums are what was done, as the API gives it.
type jobSums struct {
	Total   jobSum   `json:"total"`
	Series  []jobSum `json:"series"`
	Classes []jobSum `json:"classes"`
	Queues  []jobSum `json:"queues"`
}

func (c *metricsCmd) print(p *output.Printer, sums *jobSums) error {
	columns := []output.Column{output.Name("CLASS"), output.Plain("SUCCESS"), output.Plain("FAILED"), output.Plain("DEAD"), output.Plain("RUN P50"),
		output.Plain("RUN P95"), output.Plain("RUN P99"), output.Plain("WAIT P95"), output.Plain("RUN TOTAL")}
	items, cells := sums.Classes, (*jobSum).named
	switch {
	case c.Step > 0:
		columns[0] = output.Time("TIME")
		items, cells = sums.Series, func(s *jobSum) []any { return s.cells(humantime.Unix(s.At)) }
	case c.Class != "":
		columns[0] = output.Name("QUEUE")
		items = sums.Queues
	}
	t := output.TableOf(columns, items, cells)
	t.Rows = append(t.Rows, sums.Total.cells("total"))
	return p.Table(t)
}

func (s *jobSum) named() []any { return s.cells(s.Name) }

func (c *metricsCmd) query(now time.Time) (url.Values, error) {
	query := url.Values{}
	setGiven(query, map[string]string{"queue": c.Queue})
	if c.Step > 0 {
		query.Set("step", strconv.FormatInt(int64(c.Step/time.Second), 10))
	}
	return query, setTimes(query, map[string]string{"from": c.From, "to": c.To}, now)
}
