package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/humantime"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
)

// changeCmd changes one job that waits.
type changeCmd struct {
	actCmd

	At       string `placeholder:"TIME" help:"New time, of scheduled jobs and retries."`
	Queue    string `placeholder:"QUEUE" help:"New queue."`
	Priority *int64 `placeholder:"N" help:"New priority, 0 to 10."`
	Args     string `placeholder:"JSON" help:"New arguments: a JSON array or object."`
}

// Run changes a job.
func (c *changeCmd) Run(ctx context.Context, out output.Streams, s set) error {
	changes := output.Fields{"queue": c.Queue}
	if c.At != "" {
		at, err := humantime.Parse(c.At, time.Now())
		if err != nil {
			return fmt.Errorf("--at: %w", err)
		}
		changes["at"] = float64(at.UnixMicro()) / 1e6
	}
	if c.Priority != nil {
		changes["priority"] = *c.Priority
	}
	if c.Args != "" {
		if !json.Valid([]byte(c.Args)) {
			return usage.Errorf("invalid --args %q: it is no JSON", c.Args)
		}
		changes["args"] = json.RawMessage(c.Args)
	}
	body := changes.JSON()
	if len(changes) == 0 {
		return usage.Errorf("nothing to change: set --at, --queue, --priority or --args")
	}
	header := http.Header{}
	if c.Reason != "" {
		header.Set("X-Reason", c.Reason)
	}
	if _, err := c.APIClient().Do(ctx, apiclient.Request{Method: http.MethodPatch, Path: s.path + "/" + apiclient.Segment(c.JID), Query: c.query(), Header: header, Body: body}); err != nil {
		return fmt.Errorf("%s %s: %w", s.one, c.JID, err)
	}
	return c.did(out, s, "changed")
}

type undoCmd struct{ actCmd }

// Run undoes what was done to a job last.
func (c *undoCmd) Run(ctx context.Context, out output.Streams, s set) error {
	return c.act(ctx, out, s, http.MethodPost, "undo", "restored")
}
