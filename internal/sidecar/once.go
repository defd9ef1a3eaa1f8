package sidecar

import (
	"context"
	"os"
	"sync"
)

// Binary builds the binary once per process, in a temporary directory that is left to the system.
var Binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "millrace-binary-")
	if err != nil {
		return "", err
	}
	return Build(context.Background(), dir)
})
