package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"syscall"

	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
	"github.com/millrace-jobs/millrace/view"
)

type serveCmd struct {
	sidecarSettings
}

// Run runs a sidecar until ctx ends.
func (c *serveCmd) Run(ctx context.Context, out output.Streams) error {
	ctx, stop := c.until(ctx, out.In)
	defer stop()
	listener, err := listen(ctx, c.HTTPAddr, c.exposure())
	if err != nil {
		return err
	}
	return serve(ctx, c.sidecarSettings, newLog(out.Err, c.LogLevel, c.LogFormat), listener)
}

// serve runs a sidecar, and starts it again when its view must be rebuilt.
func serve(ctx context.Context, cfg sidecarSettings, log *slog.Logger, listener net.Listener) error {
	var lost *view.LostEndError // the end that the journal has lost
	for {
		err := run(ctx, cfg, log, listener, lost)
		if !errors.Is(err, view.ErrRebuild) {
			return err
		}
		_ = errors.As(err, &lost)
		log.Warn("millrace: the view is rebuilt", "reason", err)
		if listener, err = listen(ctx, auth.AddrOf(listener), cfg.exposure()); err != nil {
			return err
		}
	}
}

// listen opens the address of the API if the settings protect it well enough.
func listen(ctx context.Context, addr string, e auth.Exposure) (net.Listener, error) {
	listener, err := auth.Listen(ctx, addr, e)
	switch {
	case errors.Is(err, auth.ErrNotLocal):
		return nil, usage.Errorf("--http-addr: %w", err)
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("--http-addr: %s is in use, perhaps by another sidecar: choose another one", addr)
	case err != nil:
		return nil, usage.Errorf("--http-addr: %w", err)
	}
	return listener, nil
}

var logLevels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

func newLog(w io.Writer, level, format string) *slog.Logger {
	options := &slog.HandlerOptions{Level: logLevels[level]}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
