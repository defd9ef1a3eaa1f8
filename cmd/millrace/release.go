package main

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/wire"
)

type releaseCmd struct {
	lookSettings
	output.Confirm

	Discard bool   `help:"Delete the held jobs that are due instead of delivering them. The others stay scheduled."`
	Reason  string `placeholder:"TEXT" help:"Reason, kept in the journal."`
}

// Run releases the jobs that are held because the journal lost records.
func (c *releaseCmd) Run(ctx context.Context, out output.Streams) error {
	held, overdue, err := c.held(ctx)
	if err != nil {
		return err
	}
	if !held {
		return c.Printer(out).Done(output.Fields{"released": 0}, "no jobs are held")
	}
	request, verb, done := output.Fields{"reason": c.Reason}, "Deliver", "delivered"
	if c.Discard {
		request["discard"] = true
		verb, done = "Delete", "deleted"
	}
	if err := c.Ask(out, "%s %s now that are held and due?", verb, wire.Counted(overdue, "job")); err != nil {
		return err
	}
	if _, err := c.APIClient().Do(ctx, apiclient.Request{Method: http.MethodPost, Path: "/api/release", Body: request.JSON()}); err != nil {
		return err
	}
	return c.Printer(out).Done(output.Fields{"released": overdue, "done": done}, "released: %s that were due are %s now, the others when they are due", wire.Counted(overdue, "job"), done)
}

// held reports whether jobs are held, and how many of them are due.
func (c *releaseCmd) held(ctx context.Context) (held bool, overdue int64, err error) {
	api := c.APIClient()
	o, err := api.Overview(ctx)
	if err != nil || o.Scheduler.Gap == "" {
		return false, 0, err
	}
	for _, s := range []set{scheduledSet, retriesSet} {
		query := url.Values{"set": {strings.TrimPrefix(s.path, "/api/")}}
		body, err := api.Do(ctx, apiclient.Request{Path: "/api/due-times", Query: query})
		if err != nil {
			return false, 0, err
		}
		d, err := apiclient.Decode[dueTimes](body)
		if err != nil {
			return false, 0, err
		}
		overdue += d.Before
	}
	return true, overdue, nil
}
