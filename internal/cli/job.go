package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/humantime"
	"github.com/millrace-jobs/millrace/internal/cli/output"
)

type jobCmd struct {
	Show   showJobCmd   `cmd:"" default:"withargs" aliases:"get" help:"Show where a job is, and its history."`
	Cancel cancelJobCmd `cmd:"" help:"Ask the worker that runs a job to cancel it."`
	Delete deleteJobCmd `cmd:"" aliases:"rm" help:"Delete a job, in whichever list it waits."`
}

const jobsPath = "/api/jobs"

type (
	jobArg struct {
		JID string `arg:"" name:"jid" help:"The job's id."`
	}
	showJobCmd struct {
		apiFlags
		jobArg
	}
	jobActionCmd struct {
		apiFlags
		output.Confirm
		jobArg
		reasonFlag
	}
	cancelJobCmd struct{ jobActionCmd }
	deleteJobCmd struct{ jobActionCmd }
)

func (j *jobArg) path() string { return jobsPath + "/" + apiclient.Segment(j.JID) }

func (j *jobArg) about() string { return "job " + j.JID }

// Run shows one job.
func (c *showJobCmd) Run(ctx context.Context, out output.Streams) error {
	return named(c.about(), get(ctx, out, &c.apiFlags, c.path(), nil, printTimeline))
}

// Run asks the worker that runs a job to cancel it.
func (c *cancelJobCmd) Run(ctx context.Context, out output.Streams) error {
	if err := c.Ask(out, "Cancel job %s? It will not be retried.", c.JID); err != nil {
		return err
	}
	body, err := c.APIClient().Do(ctx, apiclient.Request{Method: http.MethodPost, Path: c.path() + "/cancel", Body: c.body()})
	if err != nil {
		return named(c.about(), err)
	}
	asked := gjson.GetBytes(body, "identity").String()
	process := fmt.Sprintf("process %q", asked)
	if asked == everyProcess {
		process = "all processes"
	}
	return c.Printer(out).Done(fields{"jid": c.JID, "process": asked, "asked": "cancel"}, "job %s: asked %s to cancel it", c.JID, process)
}

// Run deletes one job.
func (c *deleteJobCmd) Run(ctx context.Context, out output.Streams) error {
	if err := c.Ask(out, "Delete job %s?", c.JID); err != nil {
		return err
	}
	return c.act(ctx, out, action{
		Request: apiclient.Request{Method: http.MethodDelete, Path: c.path(), Body: c.body()}, about: c.about(),
		did: fields{"jid": c.JID, "done": "deleted"}, said: c.about() + ": deleted",
	})
}

// details returns what an event changed, and the reason for it.
func details(e *answer.JobEvent) string {
	var parts []string
	for _, c := range e.Changes {
		parts = append(parts, fmt.Sprintf("%s: %s -> %s", c.Member, c.Was, c.Is))
	}
	if e.Reason != "" {
		parts = append(parts, e.Reason)
	}
	return strings.Join(parts, "; ")
}

// placesOf returns where the job is.
func placesOf(t *answer.Timeline) *output.Table {
	columns := []output.Column{output.Plain("IS IN"), output.Due("DUE OR SINCE"), output.Name("CLASS"), output.Name("QUEUE"), output.Plain("RETRY"), output.Text("DETAILS")}
	places := output.TableOf(columns, t.Entries, func(record *json.RawMessage) []any {
		i, _ := apiclient.Decode[answer.Entry](*record) // it is JSON, as the answer was
		return []any{i.Millrace.Set, dueAt(i), i.Millrace.Class, i.Millrace.Queue, i.Millrace.Attempt, lastError(i)}
	})
	for _, r := range t.Running {
		state := "running"
		if r.Stuck {
			state = "running (stuck)"
		}
		var since any
		if r.StartedAt != nil {
			since = humantime.Unix(*r.StartedAt)
		}
		places.Add(state, since, r.Class, r.Queue, nil, "on "+r.Identity)
	}
	for _, l := range t.Leases {
		places.Add("leased", humantime.Unix(l.Until), l.Class, l.Queue, l.Attempt-1, nil) // its attempt counts from 1
	}
	return places
}

// pastOf returns what happened to the job, and the attempts that workers reported, the newest
// first.
func pastOf(t *answer.Timeline) *output.Table {
	past := &output.Table{Columns: []output.Column{output.Time("WHEN"), output.State("WHAT"), output.Name("WHERE"), output.Plain("ATTEMPT"), output.Plain("TOOK"),
		output.Text("DETAILS"), output.Name("BY")}}
	for i := range t.Events {
		e := &t.Events[i]
		past.Add(humantime.Unix(e.At), e.What, cmp.Or(e.Set, e.Identity), nil, nil, details(e), cmp.Or(e.Actor, "(millrace)"))
	}
	for i := range t.Runs {
		r := &t.Runs[i]
		past.Add(humantime.Unix(r.At), r.Status, r.Queue, r.Attempt, took(r), r.Error, cmp.Or(r.Worker, "-"))
	}
	slices.SortStableFunc(past.Rows, func(a, b []any) int { return b[0].(time.Time).Compare(a[0].(time.Time)) })
	return past
}

// outcomes are plain words for events of a job. Other events have the API's words.
var outcomes = map[string]string{
	"fired": sentToQueue, "triggered": sentToQueue, "retried": sentToQueue, "enqueued": sentToQueue, "refired": sentToQueue,
	"killed": movedToDead, "buried": movedToDead, "undone": "restored", "cancelled": "a worker was asked to cancel it",
	"success": "completed", "failed": "an attempt failed", "dead": "it failed for the last time",
}

// lastOutcome says what happened to the job last, or nothing if that is not known.
func lastOutcome(t *answer.Timeline) string {
	what, newest := "", math.Inf(-1)
	for _, e := range t.Events {
		if e.At > newest {
			what, newest = e.What, e.At
		}
	}
	for i := range t.Runs {
		r := &t.Runs[i]
		at := r.At
		// The broker's clock may be ahead of the worker's, and a completed job is not sent again.
		if r.Status == "success" {
			at += humantime.MaxSkew.Seconds()
		}
		if at >= newest {
			what, newest = r.Status, at
		}
	}
	return cmp.Or(outcomes[what], what)
}

// printTimeline prints where the job is and what happened to it. As CSV there is one table: the
// history.
func printTimeline(p *output.Printer, t *answer.Timeline) error {
	if p.ForPeople() {
		places := placesOf(t)
		if last := lastOutcome(t); len(places.Rows) == 0 && last != "" {
			_ = p.Note("in no list: %s", last)
		}
		if err := p.Table(places); err != nil {
			return err
		}
		if len(t.Events)+len(t.Runs) > 0 {
			_ = p.Note("")
		}
	}
	if err := p.Table(pastOf(t)); err != nil || !t.OlderThan {
		return err
	}
	return p.Note("older records are not kept")
}
