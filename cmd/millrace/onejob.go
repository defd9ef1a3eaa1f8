package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"
)

type jobCmd struct {
	Show   showJobCmd   `cmd:"" default:"withargs" help:"Show where it is, and what became of it."`
	Delete deleteJobCmd `cmd:"" help:"Forget it, in whichever set it waits."`
}

// timeline is what is known of a job, as the API gives it.
type timeline struct {
	Entries []item     `json:"entries"`
	Leases  []leaseRow `json:"leases"`
	Runs    []runRow   `json:"runs"`
	Events  []jobEvent `json:"events"`
	Older   bool       `json:"older_than_kept"`
}

type leaseRow struct {
	Until   float64 `json:"until"`
	Class   string  `json:"class"`
	Queue   string  `json:"queue"`
	Attempt int64   `json:"attempt"`
}

type jobEvent struct {
	At    float64 `json:"at"`
	What  string  `json:"what"`
	Set   string  `json:"set"`
	Actor string  `json:"actor"`
}

// places are where the job is.
func (t *timeline) places(now time.Time) [][]string {
	rows := rowsOf(t.Entries, func(i *item) []string {
		return []string{i.Millrace.Set, i.time(now), i.Millrace.Class, i.Millrace.Queue, strconv.Itoa(i.Millrace.Attempt), short(i.error())}
	})
	for _, l := range t.Leases {
		until := moment(l.Until)
		rows = append(rows, []string{"leased", until.Format(time.DateTime) + "  " + relative(until, now), l.Class, l.Queue, strconv.FormatInt(l.Attempt, 10), ""})
	}
	return rows
}

// past is what became of the job, and the attempts that workers reported, the newest first.
func (t *timeline) past() [][]string {
	type line struct {
		at    float64
		cells []string
	}
	var lines []line
	add := func(at float64, cells ...string) {
		lines = append(lines, line{at, append([]string{moment(at).Format(time.DateTime)}, cells...)})
	}
	for _, e := range t.Events {
		add(e.At, e.What, e.Set, "", "", "", cmp.Or(e.Actor, "(millrace)"))
	}
	for i := range t.Runs {
		r := &t.Runs[i]
		add(r.At, r.Status, r.Queue, strconv.FormatInt(r.Attempt, 10), r.took(), short(r.Error), cmp.Or(r.Worker, "-"))
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(b.at, a.at) })
	return rowsOf(lines, func(l *line) []string { return l.cells })
}

func (t *timeline) print(w io.Writer) error {
	if places := t.places(time.Now()); len(places) > 0 {
		if err := printTable(w, []string{"IS IN", "DUE OR DIED", "CLASS", "QUEUE", "ATTEMPT", "ERROR"}, places); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(w, "in no set: it went to its queue, or is gone")
	}
	if past := t.past(); len(past) > 0 {
		fmt.Fprintln(w)
		if err := printTable(w, []string{"WHEN", "WHAT", "WHERE", "ATTEMPT", "TOOK", "ERROR", "BY"}, past); err != nil {
			return err
		}
	}
	if t.Older {
		_, err := fmt.Fprintln(w, "what is older is not kept")
		return err
	}
	return nil
}

type showJobCmd struct {
	lookSettings

	JID string `arg:"" name:"jid" help:"The job's id."`
}

// Run shows one job.
func (c *showJobCmd) Run(ctx context.Context, out output) error {
	err := look(ctx, out, &c.lookSettings, jobsPath+"/"+segment(c.JID), nil, func(w io.Writer, t *timeline) error { return t.print(w) })
	if err != nil {
		return fmt.Errorf("job %s: %w", c.JID, err)
	}
	return nil
}

type deleteJobCmd struct {
	clientSettings

	JID    string `arg:"" name:"jid" help:"The job's id."`
	Reason string `placeholder:"TEXT" help:"Why; the journal keeps it."`
}

// Run forgets one job.
func (c *deleteJobCmd) Run(ctx context.Context, out output) error {
	if _, err := c.client().do(ctx, http.MethodDelete, jobsPath+"/"+segment(c.JID), nil, reasonBody(c.Reason)); err != nil {
		return fmt.Errorf("job %s: %w", c.JID, err)
	}
	_, err := fmt.Fprintf(out.Out, "job %s: deleted\n", c.JID)
	return err
}
