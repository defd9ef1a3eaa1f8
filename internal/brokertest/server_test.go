package brokertest

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// A broker that is already running is used as it is, including its streams, and must not be killed.
func TestGivenServer(t *testing.T) {
	running := sharedServer(t)
	management := running.management
	management.User = nil // then the user of the AMQP URL is used
	t.Setenv(envAMQP, running.amqp.String())
	t.Setenv(envManagement, management.String())
	s, err := findServer(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.close())
	require.Equal(t, running.stream.Host, s.stream.Host)

	v := newVhost(t, s, false)
	require.False(t, v.CanKill())
	require.Equal(t, running.stream.Host, s.stream.Host)
	if v.Features(t).NativeStreamProtocol {
		require.Contains(t, v.StreamURL(), s.stream.Host+"/"+v.Name)
	}
	require.Contains(t, v.ManagementURL(), running.management.Host)
	v.DeclareStream(t, "s")

	s.stream.Host = ""
	require.Empty(t, v.StreamURL(), "a broker without the native protocol")
	skipped := false
	t.Run("kill", func(t *testing.T) {
		defer func() { skipped = t.Skipped() }()
		v.Kill(t)
	})
	require.True(t, skipped)
}

func TestGivenServerIsUnreachable(t *testing.T) {
	t.Setenv(envAMQP, "amqp://127.0.0.1:1/")
	_, err := findServer(t.Context())
	require.ErrorContains(t, err, "must both be set")
	t.Setenv(envManagement, "http://127.0.0.1:1")
	_, err = findServer(t.Context())
	require.ErrorContains(t, err, "connection refused")
	t.Setenv(envManagement, "http://127.0.0.1:port")
	_, err = findServer(t.Context())
	require.ErrorContains(t, err, "reading a URL")
}

// Main stops the broker with the tests of the package, and leaves nothing behind.
func TestMainStopsBroker(t *testing.T) {
	if os.Getenv("BROKERTEST_INNER") != "" {
		New(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=TestMainStopsBroker", "-test.v")
	cmd.Env = append(os.Environ(), "BROKERTEST_INNER=1", "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	left, err := os.ReadDir(cmd.Env[len(cmd.Env)-1][len("TMPDIR="):])
	require.NoError(t, err)
	require.Empty(t, left)
}

type testsThatPass struct{}

func (testsThatPass) Run() int { return 0 }

func TestBrokerThatDoesNotStopFailsTests(t *testing.T) {
	sharedServer(t)
	before := shared.server
	t.Cleanup(func() { shared.server, shared.err = before, nil })
	stopped := 0
	shared.server = &server{close: func() error { stopped++; return errors.New("it will not stop (as this test wants it)") }}
	require.Equal(t, 1, runner{testsThatPass{}}.Run())
	require.Equal(t, 0, runner{testsThatPass{}}.Run(), "there is none any more")
	require.Equal(t, 1, stopped)
}
