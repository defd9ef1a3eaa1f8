package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

type jobCmd struct {
	Show   showJobCmd   `cmd:"" default:"withargs" help:"Show where it is, and what happened to it."`
	Cancel cancelJobCmd `cmd:"" help:"Ask the worker that runs it to cancel it."`
	Delete deleteJobCmd `cmd:"" help:"Forget it, in whichever set it waits."`
}

// timeline is what is known of a job, as the API gives it.
type timeline struct {
	Entries []item     `json:"entries"`
	Running []workRow  `json:"running"`
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

// workRow is a job that a worker process runs, as the API gives it.
type workRow struct {
	Identity  string   `json:"identity"`
	Class     string   `json:"class"`
	Queue     string   `json:"queue"`
	StartedAt *float64 `json:"started_at"`
	Stuck     bool     `json:"stuck"`
}

type jobEvent struct {
	At       float64     `json:"at"`
	What     string      `json:"what"`
	Set      string      `json:"set"`
	Identity string      `json:"identity"`
	Actor    string      `json:"actor"`
	Reason   string      `json:"reason"`
	Changes  []jobChange `json:"changes"`
}

// jobChange is a member of the job before and after a change, as JSON text.
type jobChange struct {
	Member string `json:"member"`
	Was    string `json:"was"`
	Is     string `json:"is"`
}

// why is what a table says of the reason for an event, and of what it changed.
func (e *jobEvent) why() string {
	var parts []string
	for _, c := range e.Changes {
		parts = append(parts, fmt.Sprintf("%s: %s -> %s", c.Member, c.Was, c.Is))
	}
	if e.Reason != "" {
		parts = append(parts, e.Reason)
	}
	return strings.Join(parts, "; ")
}

// places are where the job is.
func (t *timeline) places(now time.Time) [][]string {
	rows := rowsOf(t.Entries, func(i *item) []string {
		return []string{i.Millrace.Set, i.time(now), i.Millrace.Class, i.Millrace.Queue, strconv.Itoa(i.Millrace.Attempt), short(i.error())}
	})
	for _, r := range t.Running {
		began, state := "", "running"
		if r.StartedAt != nil {
			began = moment(*r.StartedAt).Format(time.DateTime) + "  " + relative(moment(*r.StartedAt), now)
		}
		if r.Stuck {
			state = "running (stuck)"
		}
		rows = append(rows, []string{state, began, r.Class, r.Queue, "", "on " + r.Identity})
	}
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
		add(e.At, e.What, cmp.Or(e.Set, e.Identity), "", "", e.why(), cmp.Or(e.Actor, "(millrace)"))
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
		if err := printTable(w, []string{"IS IN", "DUE, DIED OR STARTED", "CLASS", "QUEUE", "ATTEMPT", "ERROR"}, places); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(w, "in no set: it went to its queue, or is gone")
	}
	if past := t.past(); len(past) > 0 {
		fmt.Fprintln(w)
		if err := printTable(w, []string{"WHEN", "WHAT", "WHERE", "ATTEMPT", "TOOK", "ERROR, CHANGE OR REASON", "BY"}, past); err != nil {
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

type cancelJobCmd struct {
	clientSettings

	JID    string `arg:"" name:"jid" help:"The job's id."`
	Reason string `placeholder:"TEXT" help:"Why; the journal keeps it."`
}

// Run asks the worker that runs a job to cancel it.
func (c *cancelJobCmd) Run(ctx context.Context, out output) error {
	body, err := c.client().do(ctx, http.MethodPost, jobsPath+"/"+segment(c.JID)+"/cancel", nil, reasonBody(c.Reason))
	if err != nil {
		return fmt.Errorf("job %s: %w", c.JID, err)
	}
	asked := gjson.GetBytes(body, "identity").String()
	if asked == "*" {
		asked = "all workers"
	}
	_, err = fmt.Fprintf(out.Out, "job %s: asked %s to cancel it\n", c.JID, asked)
	return err
}

// Run forgets one job.
func (c *deleteJobCmd) Run(ctx context.Context, out output) error {
	if _, err := c.client().do(ctx, http.MethodDelete, jobsPath+"/"+segment(c.JID), nil, reasonBody(c.Reason)); err != nil {
		return fmt.Errorf("job %s: %w", c.JID, err)
	}
	_, err := fmt.Fprintf(out.Out, "job %s: deleted\n", c.JID)
	return err
}
