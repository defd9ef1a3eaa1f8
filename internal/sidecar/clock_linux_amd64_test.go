package sidecar

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A process that cannot get its own clock is not started with the clock of the machine.
func TestProcessWithoutClock(t *testing.T) {
	cmd := exec.Command("true") // not traced, so it does not stop
	p := &Process{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error, 1)
	p.run(true, started)
	require.ErrorContains(t, <-started, "did not stop at its start")
	<-p.Exited()
	require.Nil(t, p.clock)
	require.Error(t, p.SetClock(time.Hour))

	gone := cmd.Process.Pid
	_, err := ownClockOf(gone)
	require.Error(t, err)
	require.Error(t, awaitTrace(gone))
	require.Error(t, letGo(gone))
	require.Error(t, (&clock{pid: gone}).set(time.Hour))
}

// Unknown code is not overwritten.
func TestUnknownVDSO(t *testing.T) {
	_, _, err := placesIn([]byte("garbage"))
	require.ErrorContains(t, err, "reading the vDSO")
	for path, says := range map[string]string{"/proc/self/exe": "vDSO", "/bin/true": "not as expected"} {
		image, err := os.ReadFile(path)
		require.NoError(t, err)
		_, _, err = placesIn(image)
		require.ErrorContains(t, err, says, path)
	}
}
