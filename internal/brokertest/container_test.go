//go:build testcontainers

package brokertest

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Without Docker, the error says what to do instead.
func TestNoDocker(t *testing.T) {
	if os.Getenv(envImage) != "" {
		t.Skip("Docker's address is found once a process, and TestContainer needs the real one")
	}
	t.Setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
	t.Setenv(envImage, "image")
	_, err := findServer(t.Context())
	require.ErrorContains(t, err, "make deps")
}

// A real container works, if an image is named: see docs/brokers.md.
func TestContainer(t *testing.T) {
	image := os.Getenv(envImage)
	if image == "" {
		t.Skip(envImage + " names no image")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s, err := findServer(ctx)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.close()) })
	v := newVhost(t, s, false)
	v.DeclareStream(t, "s")
	v.Publish(t, "", "s", message("x"))
	require.Len(t, v.ReadStream(t, "s"), 1)
	require.NotEmpty(t, v.StreamURL())
}
