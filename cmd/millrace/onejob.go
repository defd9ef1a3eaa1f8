package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"
)

type jobCmd struct {
	Show   showJobCmd   `cmd:"" default:"withargs" aliases:"get" help:"Show where a job is, and its history."`
	Delete deleteJobCmd `cmd:"" aliases:"rm" help:"Delete a job, in whichever list it waits."`
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
func (t *timeline) places() *table {
	columns := []column{{"IS IN", plainKind}, {"DUE OR DIED", dueKind}, {"CLASS", nameKind}, {"QUEUE", nameKind}, {"RETRY", plainKind}, {"ERROR", textKind}}
	places := tableOf(columns, t.Entries, func(i *item) []any {
		return []any{i.Millrace.Set, i.time(), i.Millrace.Class, i.Millrace.Queue, i.Millrace.Attempt, i.error()}
	})
	for _, l := range t.Leases {
		places.add("leased", moment(l.Until), l.Class, l.Queue, l.Attempt, nil)
	}
	return places
}

// past is what became of the job, and the attempts that workers reported, the newest first.
func (t *timeline) past() *table {
	past := &table{columns: []column{{"WHEN", atKind}, {"WHAT", stateKind}, {"WHERE", nameKind}, {"ATTEMPT", plainKind}, {"TOOK", plainKind},
		{"ERROR", textKind}, {"BY", nameKind}}}
	for _, e := range t.Events {
		past.add(moment(e.At), e.What, e.Set, nil, nil, nil, cmp.Or(e.Actor, "(millrace)"))
	}
	for i := range t.Runs {
		r := &t.Runs[i]
		past.add(moment(r.At), r.Status, r.Queue, r.Attempt, r.took(), r.Error, cmp.Or(r.Worker, "-"))
	}
	slices.SortStableFunc(past.rows, func(a, b []any) int { return b[0].(time.Time).Compare(a[0].(time.Time)) })
	return past
}

// print shows where the job is and what became of it. A CSV file has one table: the history.
func (t *timeline) print(p *printer) error {
	if p.forPeople() {
		places := t.places()
		if len(places.rows) == 0 {
			_ = p.say("in no list: it was sent to its queue, or was deleted")
		}
		if err := p.table(places); err != nil {
			return err
		}
		if len(t.Events)+len(t.Runs) > 0 {
			_ = p.say("")
		}
	}
	if err := p.table(t.past()); err != nil || !t.Older {
		return err
	}
	return p.say("older records are not kept")
}

type showJobCmd struct {
	lookSettings

	JID string `arg:"" name:"jid" help:"The job's id."`
}

// Run shows one job.
func (c *showJobCmd) Run(ctx context.Context, out output) error {
	err := look(ctx, out, &c.lookSettings, jobsPath+"/"+segment(c.JID), nil, func(p *printer, t *timeline) error { return t.print(p) })
	if err != nil {
		return fmt.Errorf("job %s: %w", c.JID, err)
	}
	return nil
}

type deleteJobCmd struct {
	lookSettings
	confirmSettings

	JID    string `arg:"" name:"jid" help:"The job's id."`
	Reason string `placeholder:"TEXT" help:"Reason, kept in the journal."`
}

// Run deletes one job.
func (c *deleteJobCmd) Run(ctx context.Context, out output) error {
	if err := c.confirm(out, "Delete job %s?", c.JID); err != nil {
		return err
	}
	if _, err := c.client().do(ctx, http.MethodDelete, jobsPath+"/"+segment(c.JID), nil, reasonBody(c.Reason)); err != nil {
		return fmt.Errorf("job %s: %w", c.JID, err)
	}
	return c.printer(out).did(fields{"jid": c.JID, "done": "deleted"}, "job %s: deleted", c.JID)
}
