package main

import (
	"context"
	"log/slog"

	"github.com/millrace-jobs/millrace/internal/cli/flags"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/doctor"
	"github.com/millrace-jobs/millrace/internal/hosts"
)

type doctorCmd struct {
	sidecarSettings
	flags.SignIn `group:"Connection flags:"`
	output.Result

	Permissions bool `help:"List the permissions that sidecars, producers and workers need, even if none is missing."`
}

// Run examines the broker of a sidecar with these settings, and prints the findings.
func (c *doctorCmd) Run(ctx context.Context, out output.Streams) error {
	to, err := c.deliverTo()
	if err != nil {
		return err
	}
	cfg := doctor.Config{
		Broker:    c.Connect(&hosts.Order{}, slog.New(slog.DiscardHandler)),
		API:       c.apiClient(&c.SignIn),
		DeliverTo: to,
	}
	return doctor.Run(ctx, cfg, c.Printer(out), c.Permissions)
}
