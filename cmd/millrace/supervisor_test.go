package main

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/cli"
	"github.com/millrace-jobs/millrace/internal/cli/clitest"
)

func TestSidecarStopsWithStandardInput(t *testing.T) {
	child := clitest.Process(t, "serve", "--stop-with-stdin", "--amqp-url", "amqp://127.0.0.1:1", "--http-addr", "127.0.0.1:0")
	var log clitest.Buffer
	child.Stderr = &log
	in, err := child.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	_, err = in.Write([]byte("what is written does not matter\n"))
	require.NoError(t, err)
	brokertest.Eventually(t, func() bool { return strings.Contains(log.String(), "the broker cannot be reached") }, "it tries")
	require.NotContains(t, log.String(), "millrace: stopped")
	require.NoError(t, in.Close())
	require.NoError(t, child.Wait())
	require.Contains(t, log.String(), "millrace: stopped")
}

// asSystemd returns a channel with the notifications of the sidecars of this test.
func asSystemd(t *testing.T, watchdog time.Duration) <-chan string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", strconv.FormatInt(watchdog.Microseconds(), 10))
	sent := make(chan string, 10_000)
	go func() {
		defer close(sent)
		message := make([]byte, 4096)
		for {
			n, _, err := l.ReadFrom(message)
			if err != nil {
				return
			}
			sent <- string(message[:n])
		}
	}()
	return sent
}

// until returns the first message with a line.
func until(t *testing.T, sent <-chan string, line string) string {
	t.Helper()
	for {
		select {
		case message := <-sent:
			if strings.Contains("\n"+message+"\n", "\n"+line+"\n") {
				return message
			}
		case <-time.After(time.Minute):
			t.Fatalf("systemd is not notified: %s", line)
		}
	}
}

func TestSystemdIsNotified(t *testing.T) {
	v := brokertest.New(t)
	sent := asSystemd(t, 300*time.Millisecond)
	settings := beside(v)
	settings.AMQPURL = "amqp://127.0.0.1:1"
	s := start(t, settings)
	waits := until(t, sent, "STATUS=Not ready: the broker is not connected")
	require.NotContains(t, waits, "READY=1")
	require.Equal(t, "WATCHDOG=1", until(t, sent, "WATCHDOG=1"), "what it knows is not repeated")
	require.NoError(t, s.end())
	until(t, sent, "STOPPING=1")

	s = start(t, beside(v))
	ready := until(t, sent, "READY=1")
	require.NotContains(t, ready, "Not ready")
	until(t, sent, "STATUS=Leading (epoch 0)")
	require.NoError(t, s.end())
	until(t, sent, "STOPPING=1")
	for range len(sent) {
		require.NotContains(t, <-sent, "READY=1", "only once")
	}
}

func TestAPIOverSocket(t *testing.T) {
	v := brokertest.New(t)
	path := filepath.Join(t.TempDir(), "api")
	r := millrace(t, "status", "--http-addr", "unix:"+path)
	require.Equal(t, cli.ExitFailed, r.code)
	require.Contains(t, r.err, "no sidecar answers at unix:"+path)

	killed, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	killed.SetUnlinkOnClose(false)
	require.NoError(t, killed.Close())

	args := []string{"--amqp-url", v.AMQPURL(), "--management-url", v.ManagementURL(), "--http-addr", "unix:" + path}
	ctx, interrupt := contextOf(t)
	var out, log clitest.Buffer
	ended := make(chan int, 1)
	go func() { ended <- execute(ctx, append([]string{"serve"}, args...), &out, &log) }()
	brokertest.Eventually(t, func() bool { return strings.Contains(log.String(), `"scheduler: elected"`) }, "it leads")
	require.Contains(t, log.String(), "api=unix:"+path)
	brokertest.Eventually(t, func() bool {
		return millrace(t, "status", "--http-addr", "unix:"+path, "--amqp-url", v.AMQPURL()).code == 0
	}, "it answers")

	r = millrace(t, append([]string{"serve"}, args...)...)
	require.Equal(t, cli.ExitFailed, r.code)
	require.Equal(t, "millrace: --http-addr: unix:"+path+" is in use, perhaps by another sidecar: choose another one\n", r.err)
	interrupt()
	require.Zero(t, <-ended)
	_, err = os.Stat(path)
	require.ErrorIs(t, err, os.ErrNotExist)

	r = millrace(t, "up", "--http-addr", "unix:"+path)
	require.Equal(t, cli.ExitUsage, r.code)
	require.Contains(t, r.err, "browsers")
}
