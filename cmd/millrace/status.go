package main

import (
	"context"
	"fmt"
	"io"
)

type statusCmd struct{ lookSettings }

// Run shows everything on one screen.
func (c *statusCmd) Run(ctx context.Context, out output) error {
	return look(ctx, out, &c.lookSettings, overviewPath, nil, func(w io.Writer, o *overview) error {
		leader, err := c.client().check(ctx, "leader")
		if err != nil {
			return err
		}
		if err := printRows(w, o.facts(leader.Reason)); err != nil {
			return err
		}
		if len(o.Scheduler.troubles()) > 0 {
			fmt.Fprintln(w, "millrace doctor says what to do")
		}
		fmt.Fprintln(w)
		return look(ctx, out, &c.lookSettings, attentionPath, nil, printAttention)
	})
}
