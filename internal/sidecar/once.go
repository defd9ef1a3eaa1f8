package sidecar

import (
	"context"
	"os"
	"sync"
)

// Binary builds the binary once per process, in a temporary directory that is left to the system.
var Binary = sync.OnceValues(func() (string, error) { return buildOnce(Build) })

// BinaryWithClock does the same for processes with Config.OwnClock.
var BinaryWithClock = sync.OnceValues(func() (string, error) { return buildOnce(BuildWithClock) })

func buildOnce(build func(ctx context.Context, dir string) (string, error)) (string, error) {
	dir, err := os.MkdirTemp("", "millrace-binary-")
	if err != nil {
		return "", err
	}
	return build(context.Background(), dir)
}
