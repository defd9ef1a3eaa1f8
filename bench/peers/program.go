package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/millrace-jobs/millrace/bench/peers/work"
)

// command is how a peer's program is run in a role.
type command struct {
	args        []string
	environment []string
}

// process is a program that runs until it is killed.
type process struct {
	cmd    *exec.Cmd
	ended  chan struct{} // closed when it has ended
	err    error         // why; set before that
	errors bytes.Buffer
}

// made returns the command for some work.
func (c command) made(ctx context.Context, w work.Work) (*exec.Cmd, error) {
	text, err := json.Marshal(w)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	cmd.Env = append(append(os.Environ(), c.environment...), work.Environment+"="+string(text))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	return cmd, nil
}

// run runs the program to its end, and returns what it printed.
func (c command) run(ctx context.Context, w work.Work) ([]byte, error) {
	cmd, err := c.made(ctx, w)
	if err != nil {
		return nil, err
	}
	output, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(c.args, " "), err, failed.Stderr)
	}
	return output, err
}

// start starts the program, and waits until it says that it is ready.
func (c command) start(ctx context.Context, w work.Work) (*process, error) {
	cmd, err := c.made(ctx, w)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	cmd.Stderr = &p.errors
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ready := make(chan struct{})
	go func() {
		lines := bufio.NewReader(output)
		for line := ""; !strings.Contains(line, "ready"); {
			if line, err = lines.ReadString('\n'); err != nil {
				break
			}
		}
		if err == nil {
			close(ready)
		}
		_, _ = io.Copy(io.Discard, lines)
		p.err = cmd.Wait()
		close(p.ended)
	}()
	select {
	case <-ready:
		return p, nil
	case <-p.ended:
		return nil, fmt.Errorf("%s ended: %w: %s", strings.Join(c.args, " "), p.err, p.errors.String())
	case <-time.After(startWithin):
		return nil, errors.Join(fmt.Errorf("%s is not ready", strings.Join(c.args, " ")), p.kill())
	}
}

// kill kills the program and what it has started, as SIGKILL does.
func (p *process) kill() error {
	err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.ended
	return err
}
