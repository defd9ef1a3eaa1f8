package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// changeCmd changes one job that waits.
type changeCmd struct {
	actCmd

	At       string `placeholder:"TIME" help:"When it is to run; not of a dead job."`
	Queue    string `placeholder:"QUEUE" help:"In which queue."`
	Priority *int64 `placeholder:"N" help:"0 to 10."`
	Args     string `placeholder:"JSON" help:"With which arguments: a JSON array or object."`
}

// Run changes a job.
func (c *changeCmd) Run(ctx context.Context, out output, s set) error {
	changes := fields{"queue": c.Queue}
	if c.At != "" {
		at, err := parseTime(c.At, time.Now())
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
			return errors.New("--args: this is no JSON")
		}
		changes["args"] = json.RawMessage(c.Args)
	}
	body := changes.json()
	if len(changes) == 0 {
		return errors.New("nothing is to be changed: give --at, --queue, --priority or --args")
	}
	header := http.Header{}
	if c.Reason != "" {
		header.Set("X-Reason", c.Reason)
	}
	if _, err := c.client().with(header).do(ctx, http.MethodPatch, s.path+"/"+segment(c.JID), c.query(), body); err != nil {
		return fmt.Errorf("%s %s: %w", s.one, c.JID, err)
	}
	_, err := fmt.Fprintf(out.Out, "%s %s: changed\n", s.one, c.JID)
	return err
}

type undoCmd struct{ actCmd }

// Run takes back what was done to a job last.
func (c *undoCmd) Run(ctx context.Context, out output, s set) error {
	return c.act(ctx, out, s, http.MethodPost, "undo", "is as it was before")
}
