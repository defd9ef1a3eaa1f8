package main

import (
	"context"

	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/output"
)

type statusCmd struct{ lookSettings }

// Run shows everything on one screen.
func (c *statusCmd) Run(ctx context.Context, out output.Streams) error {
	return look(ctx, out, &c.lookSettings, apiclient.OverviewPath, nil, func(p *output.Printer, o *overview) error {
		leader, err := c.APIClient().Check(ctx, "leader")
		if err != nil {
			return err
		}
		if err := p.Table(o.facts(leader.Reason)); err != nil || !p.ForPeople() {
			return err
		}
		if len(o.Scheduler.Troubles()) > 0 {
			if err := p.Note("millrace doctor says what to do"); err != nil {
				return err
			}
		}
		if err := p.Note(""); err != nil {
			return err
		}
		return look(ctx, out, &c.lookSettings, attentionPath, nil, func(p *output.Printer, n *needs) error {
			if len(n.Items) == 0 {
				return p.Note("nothing needs attention")
			}
			return n.print(p)
		})
	})
}
