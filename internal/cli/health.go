package cli

import (
	"context"
	"encoding/json"

	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/output"
)

type healthCmd struct {
	apiFlags

	Check string `arg:"" optional:"" enum:",alarms,broker-connection,views-caught-up,leader,workers" default:"" help:"Only this check: alarms, broker-connection, views-caught-up, leader or workers."`
}

// Run runs health checks. It fails if one of them does, so that scripts need not read the result.
func (c *healthCmd) Run(ctx context.Context, out output.Streams) error {
	checks := apiclient.Checks
	if c.Check != "" {
		checks = []string{c.Check}
	}
	api := c.APIClient()
	var failed error
	t := &output.Table{Columns: []output.Column{output.Plain("CHECK"), output.State("STATUS"), output.Fact("REASON")}}
	answers := map[string]json.RawMessage{}
	for _, name := range checks {
		h, err := api.Check(ctx, name)
		if err != nil {
			return err
		}
		if h.Failed() {
			failed = output.ErrReported
		}
		t.Add(name, h.Status, h.Reason)
		answers[name] = h.Body
	}
	if err := c.print(c.Printer(out), t, answers); err != nil {
		return err
	}
	return failed
}

func (c *healthCmd) print(p *output.Printer, t *output.Table, answers map[string]json.RawMessage) error {
	switch {
	case !p.Structured():
		return p.Table(t)
	case c.Check != "":
		return p.Answer(answers[c.Check])
	}
	body, err := json.Marshal(answers)
	if err != nil {
		return err
	}
	return p.Answer(body)
}
