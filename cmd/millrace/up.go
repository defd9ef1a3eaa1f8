package main

import (
	"context"
	"net"

	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/internal/cli/flags"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
	"github.com/millrace-jobs/millrace/internal/devup"
	"github.com/millrace-jobs/millrace/internal/hosts"
)

type upCmd struct {
	flags.API

	Fresh    bool   `help:"Start with an empty broker: delete the data of the last run."`
	Open     bool   `help:"Open the web UI in the browser."`
	Rate     int    `placeholder:"N" default:"20" help:"Jobs per second that the demo enqueues (${default})."`
	LogLevel string `enum:"debug,info,warn,error" default:"warn" placeholder:"LEVEL" help:"debug, info, warn or error (${default})."`
}

// Run runs a private broker, a sidecar beside it and a demo until ctx ends.
func (c *upCmd) Run(ctx context.Context, out output.Streams) error {
	if _, ok := hosts.SocketPath(c.HTTPAddr); ok {
		return usage.Errorf("--http-addr: up shows the web UI, which browsers reach at host:port alone")
	}
	live := output.NewLive(out.Out)
	log := newLog(live, c.LogLevel, "text")
	return devup.Run(ctx, devup.Config{
		HTTPAddr: c.HTTPAddr, Fresh: c.Fresh, Open: c.Open, Rate: c.Rate, Live: live, Log: log,
		Listen: func(ctx context.Context, addr string) (net.Listener, error) {
			return listen(ctx, addr, auth.Exposure{})
		},
		Serve: func(ctx context.Context, s devup.Sidecar, l net.Listener) error {
			settings := sidecarSettings{StateDir: s.StateDir, StreamURL: s.StreamURL, TrustedUsers: s.TrustedUsers, private: true}
			settings.DeliverTo = ".*" // the broker has one user, who may do everything
			settings.AMQPURL, settings.ManagementURL, settings.HTTPAddr = s.AMQPURL, s.ManagementURL, l.Addr().String()
			return serve(ctx, settings, log, l)
		},
	})
}
