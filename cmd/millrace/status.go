package main

import "context"

type statusCmd struct{ lookSettings }

// Run shows everything on one screen.
func (c *statusCmd) Run(ctx context.Context, out output) error {
	return look(ctx, out, &c.lookSettings, overviewPath, nil, func(p *printer, o *overview) error {
		leader, err := c.client().check(ctx, "leader")
		if err != nil {
			return err
		}
		if err := p.table(o.facts(leader.Reason)); err != nil || !p.forPeople() {
			return err
		}
		if len(o.Scheduler.troubles()) > 0 {
			if err := p.say("millrace doctor says what to do"); err != nil {
				return err
			}
		}
		if err := p.say(""); err != nil {
			return err
		}
		return look(ctx, out, &c.lookSettings, attentionPath, nil, func(p *printer, n *needs) error {
			if len(n.Items) == 0 {
				return p.say("nothing needs attention")
			}
			return n.print(p)
		})
	})
}
