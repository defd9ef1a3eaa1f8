package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"
)

type dueCmd struct {
	lookSettings

	Set  string        `placeholder:"SET" enum:",scheduled-jobs,retries" default:"" help:"Of scheduled-jobs, or of retries; scheduled-jobs if not given."`
	From string        `placeholder:"TIME" help:"From this time on, as --at of millrace schedule takes it; now if not given."`
	To   string        `placeholder:"TIME" help:"Up to this time; a day later if not given."`
	Step time.Duration `placeholder:"1h" default:"1h" help:"In steps of so long (${default})."`
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

// rows are the steps in which something is due.
func (d *dueTimes) rows() (rows [][]string, total int64) {
	add := func(when string, n int64) {
		if n > 0 {
			rows = append(rows, []string{when, strconv.FormatInt(n, 10)})
			total += n
		}
	}
	add("earlier", d.Before)
	for i, n := range d.Counts {
		add(moment(d.From+float64(int64(i)*d.Step)).Format(time.DateTime), n)
	}
	add("later", d.After)
	return rows, total
}

// Run shows how many jobs are due when.
func (c *dueCmd) Run(ctx context.Context, out output) error {
	query := url.Values{"step": {strconv.FormatInt(int64(c.Step/time.Second), 10)}}
	setGiven(query, map[string]string{"set": c.Set})
	if err := setTimes(query, map[string]string{"from": c.From, "to": c.To}, time.Now()); err != nil {
		return err
	}
	return look(ctx, out, &c.lookSettings, "/api/due-times", query, func(w io.Writer, d *dueTimes) error {
		rows, total := d.rows()
		if err := printTable(w, []string{"DUE FROM", "JOBS"}, rows); err != nil {
			return err
		}
		said := summary(total, total, nil, 0)
		if !d.Complete {
			said += "; not all could be looked at: those count as later"
		}
		_, err := fmt.Fprintln(w, said)
		return err
	})
}
