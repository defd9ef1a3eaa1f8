package main

import (
	"context"
	"io"
	"net/url"
	"strconv"
	"time"
)

type metricsCmd struct {
	lookSettings

	Class string        `arg:"" optional:"" help:"Only this class."`
	Queue string        `placeholder:"QUEUE" help:"Only this queue."`
	From  string        `placeholder:"TIME" help:"From this time on, as --at of millrace schedule takes it; an hour ago if not given."`
	To    string        `placeholder:"TIME" help:"Up to this time; now if not given."`
	Step  time.Duration `placeholder:"1h" help:"Show a series with this step in place of sums by class."`
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

func (s *jobSum) cells(first string) []string {
	run, wait := spread{}, spread{}
	if s.Run != nil {
		run = *s.Run
	}
	if s.Wait != nil {
		wait = *s.Wait
	}
	row := []string{first}
	for _, n := range []int64{s.Success, s.Failed, s.Dead} {
		row = append(row, strconv.FormatInt(n, 10))
	}
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
func (c *metricsCmd) Run(ctx context.Context, out output) error {
	query, err := c.query(time.Now())
	if err != nil {
		return err
	}
	path := "/api/job-metrics"
	if c.Class != "" {
		path += "/" + segment(c.Class)
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

func (c *metricsCmd) print(w io.Writer, sums *jobSums) error {
	var rows [][]string
	title := "CLASS"
	switch {
	case c.Step > 0:
		title = "TIME"
		rows = rowsOf(sums.Series, func(s *jobSum) []string { return s.cells(moment(s.At).Format(time.DateTime)) })
	case c.Class != "":
		title = "QUEUE"
		rows = rowsOf(sums.Queues, (*jobSum).named)
	default:
		rows = rowsOf(sums.Classes, (*jobSum).named)
	}
	rows = append(rows, sums.Total.cells("in all"))
	return printTable(w, []string{title, "SUCCESS", "FAILED", "DEAD", "RUN P50", "P95", "P99", "WAIT P95", "RUN IN ALL"}, rows)
}

func (s *jobSum) named() []string { return s.cells(s.Name) }

func (c *metricsCmd) query(now time.Time) (url.Values, error) {
	query := url.Values{}
	setGiven(query, map[string]string{"queue": c.Queue})
	if c.Step > 0 {
		query.Set("step", strconv.FormatInt(int64(c.Step/time.Second), 10))
	}
	return query, setTimes(query, map[string]string{"from": c.From, "to": c.To}, now)
}
