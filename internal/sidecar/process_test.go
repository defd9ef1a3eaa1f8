package sidecar

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

func start(t *testing.T, change func(*Config)) *Process {
	t.Helper()
	built, err := Binary()
	require.NoError(t, err)
	v := brokertest.New(t)
	c := Config{Binary: built, AMQPURL: v.AMQPURL(), ManagementURL: v.ManagementURL(), StreamURL: v.StreamURL(), StateDir: t.TempDir(), Identity: "s",
		LogLevel: "error", Output: &bytes.Buffer{}}
	change(&c)
	p, err := Start(c)
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	return p
}

func TestProcessWithOwnClock(t *testing.T) {
	built, err := BinaryWithClock()
	require.NoError(t, err)
	p := start(t, func(c *Config) { c.Binary, c.OwnClock = built, true })
	brokertest.Eventually(t, p.Leads, "it leads: nothing is wrong with it")
	brokertest.Eventually(t, p.Ready, "it has read what there is")
	for _, ahead := range []time.Duration{0, time.Hour, -time.Hour, 0} {
		require.NoError(t, p.SetClock(ahead))
		o, ok, err := p.Overview()
		require.NoError(t, err)
		require.True(t, ok)
		require.InDelta(t, time.Now().Add(ahead).Unix(), o.Now, 30)
	}
	require.NoError(t, p.Stop())
	require.NoFileExists(t, p.clock.path)
	_, _, err = p.Overview()
	require.Error(t, err, "it has ended")
}

func TestFrozenAndKilled(t *testing.T) {
	addr, err := FreeAddress()
	require.NoError(t, err)
	p := start(t, func(c *Config) { c.Addr = addr })
	require.Equal(t, "http://"+addr, p.URL)
	require.Error(t, p.SetClock(time.Hour), "its clock is the machine's")
	brokertest.Eventually(t, p.Ready, "it is ready")
	require.NoError(t, p.Freeze())
	require.NoError(t, p.Thaw())
	status, _, err := p.Do(http.MethodGet, "/healthz", "")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
	require.NoError(t, syscall.Kill(p.Pid(), 0))
	p.Kill()
	<-p.Exited()
	require.ErrorIs(t, syscall.Kill(p.Pid(), 0), syscall.ESRCH)
	require.False(t, p.Leads())
	require.False(t, p.Ready())
}

func TestUnstartableProcess(t *testing.T) {
	_, err := Start(Config{Binary: "/nowhere/millrace"})
	require.Error(t, err)
	_, err = Start(Config{Binary: "/nowhere/millrace", OwnClock: true})
	require.Error(t, err)
}

// A process that cannot get its own clock is not started with the clock of the machine.
func TestBinaryWithoutClock(t *testing.T) {
	built, err := Binary()
	require.NoError(t, err)
	_, err = Start(Config{Binary: built, OwnClock: true})
	require.ErrorContains(t, err, "has the clock of the machine")
}

// A standard library that this package does not know is not changed.
func TestUnknownTimePackage(t *testing.T) {
	dir := t.TempDir()
	_, err := writeOverlay(dir, dir)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "time.go"), []byte("package time\n"), 0o600))
	_, err = writeOverlay(dir, dir)
	require.ErrorContains(t, err, "does not have")
}

func TestBuildErrors(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Build(ended, t.TempDir())
	require.ErrorContains(t, err, "building millrace")
	_, err = BuildWithClock(ended, t.TempDir())
	require.ErrorContains(t, err, "finding the standard library")
}

func TestInvalidRequests(t *testing.T) {
	p := &Process{URL: "http://127.0.0.1:1", exited: make(chan struct{})}
	_, _, err := p.Do("no method", "/", "")
	require.Error(t, err)
	_, _, err = p.Do(http.MethodPost, "/", "{}")
	require.Error(t, err, "no server listens")
	_, ok, err := p.Overview()
	require.NoError(t, err, "it may come")
	require.False(t, ok)
}
