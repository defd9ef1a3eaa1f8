package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/millrace-jobs/millrace/internal/cli/output"
)

// healthChecks are what can be checked, as the API calls it.
var healthChecks = []string{"alarms", "broker-connection", "views-caught-up", "leader", "workers"}

type healthCmd struct {
	lookSettings

	Check string `arg:"" optional:"" enum:",alarms,broker-connection,views-caught-up,leader,workers" default:"" help:"Only this check: alarms, broker-connection, views-caught-up, leader or workers."`
}

// health is what a check says.
type health struct {
	Status string `json:"status"`
	Reason string `json:"reason"`
	body   json.RawMessage
}

const unwell = "failed"

// Run makes checks. It fails where one of them does, so that scripts need not read what it says.
func (c *healthCmd) Run(ctx context.Context, out output.Streams) error {
	checks := healthChecks
	if c.Check != "" {
		checks = []string{c.Check}
	}
	api := c.client()
	var failed error
	t := &output.Table{Columns: []output.Column{output.Plain("CHECK"), output.State("STATUS"), output.Fact("REASON")}}
	answers := map[string]json.RawMessage{}
	for _, name := range checks {
		h, err := api.check(ctx, name)
		if err != nil {
			return err
		}
		if h.Status == unwell {
			failed = output.ErrReported
		}
		t.Add(name, h.Status, h.Reason)
		answers[name] = h.body
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
		return unreadable(err)
	}
	return p.Answer(body)
}

// check makes one check: that it fails is an answer too.
func (c *client) check(ctx context.Context, name string) (*health, error) {
	body, err := c.do(ctx, http.MethodGet, "/api/health/checks/"+segment(name), nil, nil)
	var refusal *apiError
	if errors.As(err, &refusal) && refusal.Status == http.StatusServiceUnavailable {
		if h, err := readHealth(refusal.body); err == nil && h.Status == unwell {
			return h, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("check %s: %w", name, err)
	}
	return readHealth(body)
}

func readHealth(body []byte) (*health, error) {
	h, err := readAnswer[health](body)
	if err != nil {
		return nil, err
	}
	h.body = body
	return h, nil
}
