package execjobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	millrace "github.com/millrace-jobs/millrace/clients/go"
)

const (
	// killAfter is how long a command may continue after it was asked to end.
	killAfter = 5 * time.Second
	// kept is how many bytes of the end of a command's output its failure contains.
	kept = 8 << 10
)

// exitError is the error of a command that failed. Its text is the command's output.
type exitError struct {
	state  string
	output []byte
}

func (e exitError) ErrorClass() string { return "ExecError" }

func (e exitError) Error() string {
	text := strings.TrimSpace(strings.ToValidUTF8(string(e.output), "\uFFFD"))
	if text == "" {
		return e.state
	}
	return e.state + "\n" + text
}

// run runs one job.
func (c Class) run(ctx context.Context, job *millrace.RawJob) error {
	cmd := c.command(ctx, job)
	output := &tail{}
	cmd.Stdout, cmd.Stderr = output, output
	runtime.LockOSThread() // Linux kills the command when the thread that started it ends
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		_ = killGroup(cmd.Process) // what is left of its group
	}
	// After ErrWaitDelay the command succeeded, and a process that it left behind has its output
	// open.
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return fmt.Errorf("run %s: %w", cmd.Path, err)
	}
	failure := exitError{exit.String(), output.bytes()}
	switch {
	case slices.Contains(c.Discard, exit.ExitCode()):
		return millrace.Discard(failure.Error())
	case slices.Contains(c.Kill, exit.ExitCode()):
		return millrace.KillWith(failure)
	}
	return failure
}

func (c Class) command(ctx context.Context, job *millrace.RawJob) *exec.Cmd {
	args := c.Command
	if c.Shell != "" {
		args = []string{"/bin/sh", "-c", c.Shell}
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = c.Dir
	cmd.Env = append(os.Environ(),
		"MILLRACE_JID="+envText(job.JID), "MILLRACE_CLASS="+envText(job.Class), "MILLRACE_QUEUE="+envText(job.Queue), "MILLRACE_ATTEMPT="+strconv.Itoa(job.Attempt))
	if trace := job.Traceparent(); trace != "" {
		cmd.Env = append(cmd.Env, "TRACEPARENT="+trace)
	}
	for name, value := range c.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	stdin := []byte(job.Args)
	if stdin == nil {
		stdin = []byte("[]")
	}
	cmd.Stdin = bytes.NewReader(stdin)
	cmd.SysProcAttr = ownGroup()
	cmd.Cancel = func() error { return endGroup(cmd.Process) }
	cmd.WaitDelay = killAfter
	return cmd
}

// envText returns s as an environment may contain it.
func envText(s string) string { return strings.ReplaceAll(s, "\x00", "") }

// tail keeps the end of what is written to it. One goroutine copies both pipes of a command,
// because both are the same writer.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - kept; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

func (t *tail) bytes() []byte { return t.kept }
