package cli

import (
	"cmp"
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
	p := c.Printer(out)
	switch {
	case !p.Structured():
		return cmp.Or(p.Table(t), failed)
	case c.Check != "":
		return cmp.Or(p.Answer(answers[c.Check]), failed)
	}
	body, err := json.Marshal(answers)
	return cmp.Or(err, p.Answer(body), failed)
}
