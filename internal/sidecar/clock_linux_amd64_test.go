package sidecar

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A process that cannot be given a clock of its own is no process with the machine's.
func TestProcessesWithoutAClock(t *testing.T) {
	cmd := exec.Command("true") // nobody traces it: it does not stand still
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

// What is not the code that is known is not written over.
func TestOtherVDSOs(t *testing.T) {
	_, _, err := placesIn([]byte("garbage"))
	require.ErrorContains(t, err, "reading the vDSO")
	for path, says := range map[string]string{"/proc/self/exe": "vDSO", "/bin/true": "not as expected"} {
		image, err := os.ReadFile(path)
		require.NoError(t, err)
		_, _, err = placesIn(image)
		require.ErrorContains(t, err, says, path)
	}
}
