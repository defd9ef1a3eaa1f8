package localbroker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// process is a child that dies with this process. A nil process never ran.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the child has exited and been reaped
}

// startProcess starts a command as a child that the kernel kills when this process dies.
func startProcess(cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = childAttributes()
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer close(p.done)
		// To the kernel, the parent is the thread that forked. That thread must live as long as the
		// child. Waiting on it keeps it alive.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // ProcessState has the result
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("localbroker: starting %s: %w", cmd.Path, err)
	}
	return p, nil
}

func (p *process) alive() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

func (p *process) pid() int {
	if p == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

func (p *process) signal(s os.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// wait waits until the process has exited.
func (p *process) wait(ctx context.Context) error {
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// kill kills the process if it runs, and waits until it is gone.
func (p *process) kill() error {
	if !p.alive() {
		return nil
	}
	if err := p.signal(syscall.SIGKILL); err != nil {
		return fmt.Errorf("localbroker: killing %s (process %d): %w", p.cmd.Path, p.pid(), err)
	}
	<-p.done
	return nil
}
