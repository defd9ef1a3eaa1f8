package main

import (
	"context"
	"io"
)

// supervisorSettings are for a program that runs the sidecar as a child.
type supervisorSettings struct {
	StopWithStdin bool `name:"stop-with-stdin" env:"MILLRACE_STOP_WITH_STDIN" help:"Stop when standard input ends. A program that starts the sidecar holds its standard input open: then the sidecar stops with it, even if that program is killed."`
}

// until returns a context that ends with ctx, and when in ends if the settings say so.
func (s *supervisorSettings) until(ctx context.Context, in io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if s.StopWithStdin {
		go func() {
			defer cancel()
			_, _ = io.Copy(io.Discard, in)
		}()
	}
	return ctx, cancel
}
