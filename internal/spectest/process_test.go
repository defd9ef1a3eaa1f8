package spectest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// process is a program that runs during a test, and not longer.
type process struct {
	name  string
	cmd   *exec.Cmd
	ended chan struct{}

	mu  sync.Mutex
	out bytes.Buffer
}

// start runs a program. If the test fails, it logs the program's output.
func start(t *testing.T, name string, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{name: name, cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p, p
	cmd.WaitDelay = time.Second // a grandchild may keep the pipe open
	require.NoError(t, cmd.Start())
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // ProcessState has the result
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("what %s said:\n%s", name, p.said())
		}
	})
	return p
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

// said returns everything that the program has written so far.
func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// says waits until the program has written the text.
func (p *process) says(t *testing.T, text string) { t.Helper(); p.saysTimes(t, 1, text) }

// saysTimes waits until the program has written the text n times.
func (p *process) saysTimes(t *testing.T, n int, text string) {
	t.Helper()
	p.saysWithin(t, 30*time.Second, n, text)
}

func (p *process) saysWithin(t *testing.T, limit time.Duration, n int, text string) {
	t.Helper()
	brokertest.EventuallyWithin(t, limit, func() bool {
		return strings.Count(p.said(), text) >= n || p.hasEnded()
	}, "%s says %q (%d times)", p.name, text, n)
	require.GreaterOrEqual(t, strings.Count(p.said(), text), n, "%s ended before it had written %q so often", p.name, text)
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// fails waits until the program ends, with an error.
func (p *process) fails(t *testing.T) {
	t.Helper()
	brokertest.Eventually(t, p.hasEnded, "%s ends", p.name)
	require.NotZero(t, p.cmd.ProcessState.ExitCode(), "%s should have failed", p.name)
}

// kill kills the program, like a crash.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.ended
}

// stop asks the program to end, which it must do without an error.
func (p *process) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		require.Fail(t, p.name+" does not end")
	}
	require.Zero(t, p.cmd.ProcessState.ExitCode(), "how %s ended", p.name)
}

// run runs a program to its end, and returns its standard output.
func run(t *testing.T, cmd *exec.Cmd) []byte {
	t.Helper()
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	require.NoError(t, cmd.Run(), "%s\n%s%s", strings.Join(cmd.Args, " "), out.String(), complaints.String())
	return out.Bytes()
}

// command returns a program in a directory, with the broker's URL in its environment.
func command(ctx context.Context, dir, url, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "AMQP_URL="+url, "NODE_PATH="+nodeModules)
	return cmd
}
