package main

import (
	"context"
	"fmt"
	"net/http"
)

type releaseCmd struct {
	clientSettings

	Discard bool   `help:"Delete what is held and due, and let only the rest fire, in its time."`
	Reason  string `placeholder:"TEXT" help:"Why; the journal keeps it."`
}

// Run lets fire what is held since the journal had a gap.
func (c *releaseCmd) Run(ctx context.Context, out output) error {
	request, done := fields{"reason": c.Reason}, "fires, at once where it is due"
	if c.Discard {
		request["discard"] = true
		done = "is deleted where it is due; the rest fires in its time"
	}
	if _, err := c.client().do(ctx, http.MethodPost, "/api/release", nil, request.json()); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out.Out, "what was held: %s\n", done)
	return err
}
