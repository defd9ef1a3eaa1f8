package cli

import (
	"context"
	"net/http"
	"net/url"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/wire"
)

type releaseCmd struct {
	apiFlags
	output.Confirm

	Discard bool `help:"Delete the held jobs that are due instead of delivering them. The others stay scheduled."`
	reasonFlag
}

// Run releases the jobs that are held because the journal lost records.
func (c *releaseCmd) Run(ctx context.Context, out output.Streams) error {
	held, overdue, err := c.held(ctx)
	if err != nil {
		return err
	}
	if !held {
		return c.Printer(out).Done(fields{"released": 0}, "no jobs are held")
	}
	request, verb, done := fields{"reason": c.Reason}, "Deliver", "delivered"
	if c.Discard {
		request["discard"] = true
		verb, done = "Delete", "deleted"
	}
	jobs := wire.Counted(overdue, "job")
	if err := c.Ask(out, "%s %s now that are held and due?", verb, jobs); err != nil {
		return err
	}
	return c.act(ctx, out, action{
		Request: apiclient.Request{Method: http.MethodPost, Path: "/api/release", Body: request.JSON()}, did: fields{"released": overdue, "done": done},
		said: "released: " + jobs + " that were due are " + done + " now, the others when they are due",
	})
}

// held reports whether jobs are held, and how many of them are due.
func (c *releaseCmd) held(ctx context.Context) (held bool, overdue int64, err error) {
	api := c.APIClient()
	o, err := api.Overview(ctx)
	if err != nil || o.Scheduler.Gap == "" {
		return false, 0, err
	}
	for _, set := range []string{apiclient.Scheduled, apiclient.Retries} {
		d, err := apiclient.Get[answer.DueTimes](ctx, api, dueTimesPath, url.Values{"set": {set}})
		if err != nil {
			return false, 0, err
		}
		overdue += d.Before
	}
	return true, overdue, nil
}
