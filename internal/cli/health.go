package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/flags"
	"github.com/millrace-jobs/millrace/internal/cli/output"
)

type healthCmd struct {
	Check checkHealthCmd `cmd:"" default:"withargs" help:"Run all health checks, or one. The exit code is 1 if one fails."`
	Ready readyCmd       `cmd:"" help:"Ask whether the sidecar is ready, without signing in. The exit code is 1 if it is not."`
	Live  liveCmd        `cmd:"" help:"Ask whether the sidecar's process answers, without signing in. The exit code is 1 if it does not."`
}

type checkHealthCmd struct {
	apiFlags

	Check string `arg:"" optional:"" enum:",alarms,broker-connection,views-caught-up,leader,workers" default:"" help:"Only this check: alarms, broker-connection, views-caught-up, leader or workers."`
}

// Run runs health checks. It fails if one of them does, so that scripts need not read the result.
func (c *checkHealthCmd) Run(ctx context.Context, out output.Streams) error {
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

// probeLimit is how long a probe waits for an answer, which is made from memory.
const probeLimit = 5 * time.Second

// probeFlags are the flags of a probe. It needs no password, so it does not read the settings that
// name one.
type probeFlags struct {
	flags.Probe
	output.Result
}

// ask makes a probe, and prints in one line whether the sidecar is what state says.
func (c *probeFlags) ask(ctx context.Context, out output.Streams, path, state string) error {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	h, err := c.APIClient().Probe(ctx, path)
	if err != nil {
		return err
	}
	var failed error
	if h.Status != "ok" {
		failed = output.ErrReported
	}
	if p := c.Printer(out); p.Structured() {
		return cmp.Or(p.Answer(h.Body), failed)
	}
	line := state
	switch {
	case failed != nil:
		line = "not " + state + ": " + cmp.Or(h.Reason, "the answer has no status")
	case len(h.Degraded) > 0:
		line += ", degraded: " + strings.Join(subjects(h.Degraded), ", ")
	}
	_, err = fmt.Fprintln(out.Out, line)
	return cmp.Or(err, failed)
}

// subjects returns what is degraded, each with its consequence.
func subjects(all []answer.Degraded) (said []string) {
	for _, d := range all {
		said = append(said, d.Subject+" ("+d.Costs+")")
	}
	return said
}

type readyCmd struct{ probeFlags }

// Run asks whether the sidecar is ready.
func (c *readyCmd) Run(ctx context.Context, out output.Streams) error {
	return c.ask(ctx, out, apiclient.PathReady, "ready")
}

type liveCmd struct{ probeFlags }

// Run asks whether the sidecar's process answers.
func (c *liveCmd) Run(ctx context.Context, out output.Streams) error {
	return c.ask(ctx, out, apiclient.PathLive, "live")
}
