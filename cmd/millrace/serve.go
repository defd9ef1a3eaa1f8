package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"

	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
	"github.com/millrace-jobs/millrace/view"
)

type serveCmd struct {
	sidecarSettings
}

// Run is the sidecar, until ctx ends.
func (c *serveCmd) Run(ctx context.Context, out output.Streams) error {
	listener, err := listen(ctx, c.HTTPAddr, c.exposure())
	if err != nil {
		return err
	}
	return serve(ctx, c.sidecarSettings, newLog(out.Err, c.LogLevel, c.LogFormat), listener)
}

// serve runs the sidecar, and runs it again where its view has to be rebuilt.
func serve(ctx context.Context, cfg sidecarSettings, log *slog.Logger, listener net.Listener) error {
	var short *view.LostEndError // what the next view is to know of the journal
	for {
		err := run(ctx, cfg, log, listener, short)
		if !errors.Is(err, view.ErrRebuild) {
			return err
		}
		_ = errors.As(err, &short)
		log.Warn("millrace: the view is rebuilt", "reason", err)
		if listener, err = listen(ctx, listener.Addr().String(), cfg.exposure()); err != nil {
			return err
		}
	}
}

// listen listens where only those can come who may.
func listen(ctx context.Context, addr string, e httpapi.Exposure) (net.Listener, error) {
	listener, err := httpapi.Listen(ctx, addr, e)
	switch {
	case errors.Is(err, httpapi.ErrNotLocal):
		return nil, usage.Errorf("--http-addr: %w", err)
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("--http-addr: %s is in use, perhaps by another sidecar: choose another port", addr)
	case err != nil:
		return nil, usage.Errorf("--http-addr: %w", err)
	}
	return listener, nil
}
