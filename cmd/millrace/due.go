package main

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/millrace-jobs/millrace/internal/cli/humantime"
	"github.com/millrace-jobs/millrace/internal/cli/output"
)

type dueCmd struct {
	lookSettings

	Set  string        `placeholder:"SET" enum:",scheduled-jobs,retries" default:"" help:"Which jobs: scheduled-jobs (default) or retries."`
	From string        `placeholder:"TIME" help:"Start of the range (now)."`
	To   string        `placeholder:"TIME" help:"End of the range (a day after its start)."`
	Step time.Duration `placeholder:"DURATION" default:"1h" help:"Length of a row (${default})."`
}

// dueTimes are how many jobs are due when, as the API gives it.
type dueTimes struct {
	From     float64 `json:"from"`
	Step     int64   `json:"step"`
	Counts   []int64 `json:"counts"`
	Before   int64   `json:"before"`
	After    int64   `json:"after"`
	Complete bool    `json:"complete"`
}

// table has a row for each step in which something is due.
func (d *dueTimes) table() (t *output.Table, total int64) {
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
	query := url.Values{"step": {strconv.FormatInt(int64(c.Step/time.Second), 10)}}
	setGiven(query, map[string]string{"set": c.Set})
	if err := setTimes(query, map[string]string{"from": c.From, "to": c.To}, time.Now()); err != nil {
		return err
	}
	return look(ctx, out, &c.lookSettings, "/api/due-times", query, func(p *output.Printer, d *dueTimes) error {
		t, total := d.table()
		if err := p.Table(t); err != nil {
			return err
		}
		said := summary(total, total, nil, 0)
		if !d.Complete {
			said += "; not all could be read: those count as later"
		}
		return p.Note("%s", said)
	})
}
