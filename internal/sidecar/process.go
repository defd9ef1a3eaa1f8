package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Build compiles the binary into a folder.
func Build(ctx context.Context, dir string) (binary string, err error) {
	return BuildCommand(ctx, dir, "cmd/millrace")
}

// BuildCommand compiles another of the repository's commands into a folder.
func BuildCommand(ctx context.Context, dir, command string) (binary string, err error) {
	binary = filepath.Join(dir, path.Base(command))
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/millrace-jobs/millrace/"+command)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("sidecar: building %s: %w: %s", path.Base(command), err, out)
	}
	return binary, nil
}

// Config says what to run. Empty members are left to the binary's own defaults.
type Config struct {
	Binary    string // as Build gave it; required
	AMQPURL   string // required
	StreamURL string
	// ManagementURL is the root of the management API.
	ManagementURL string
	StateDir      string
	Identity      string
	LogLevel      string
	Addr          string    // of the REST API, host:port. Default: one that is free
	Output        io.Writer // gets what it logs. Default: nobody does
	OwnClock      bool      // so that SetClock can be called
}

// Process is one `millrace serve`.
type Process struct {
	URL      string // of the REST API
	Identity string
	cmd      *exec.Cmd
	clock    *clock
	exited   chan struct{} // closed when it has, and err is set
	err      error
}

// Start starts a sidecar; it does not wait until it is ready.
func Start(cfg Config) (*Process, error) {
	if cfg.Addr == "" {
		var err error
		if cfg.Addr, err = FreeAddress(); err != nil {
			return nil, err
		}
	}
	args := []string{"serve", "--amqp-url", cfg.AMQPURL, "--http-addr", cfg.Addr, "--auth", "none"}
	for _, o := range [][2]string{{"--management-url", cfg.ManagementURL}, {"--stream-url", cfg.StreamURL}, {"--state-dir", cfg.StateDir},
		{"--identity", cfg.Identity}, {"--log-level", cfg.LogLevel}} {
		if o[1] != "" {
			args = append(args, o[0], o[1])
		}
	}
	p := &Process{URL: "http://" + cfg.Addr, Identity: cfg.Identity, cmd: exec.Command(cfg.Binary, args...), exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = cfg.Output, cfg.Output
	p.cmd.SysProcAttr = attributes(cfg.OwnClock)
	started := make(chan error, 1)
	go p.run(cfg.OwnClock, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("sidecar: starting millrace serve: %w", err)
	}
	return p, nil
}

// run owns the process. What the kernel calls its parent, and its tracer, is the thread that forked: it must live as long.
func (p *Process) run(ownClock bool, started chan<- error) {
	defer close(p.exited)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	if ownClock {
		if err := p.giveClock(); err != nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
			started <- err
			return
		}
	}
	started <- nil
	p.err = p.cmd.Wait()
}

func (p *Process) giveClock() (err error) {
	pid := p.cmd.Process.Pid
	if err := awaitTrace(pid); err != nil {
		return err
	}
	if p.clock, err = ownClockOf(pid); err != nil {
		return err
	}
	return letGo(pid)
}

// FreeAddress is an address on 127.0.0.1 that nobody listens on now.
func FreeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// Pid is the process's id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// SetClock has the process's wall clock be ahead of the machine's by so much, or behind it. Its monotonic clock is not touched, just as
// when somebody sets a machine's clock.
func (p *Process) SetClock(ahead time.Duration) error {
	if p.clock == nil {
		return errors.New("sidecar: the process was started without a clock of its own")
	}
	return p.clock.set(ahead)
}

// Kill is kill -9. It returns when the process is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.exited
}

// Freeze stops the process where it is, until Thaw.
func (p *Process) Freeze() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw has a frozen process go on.
func (p *Process) Thaw() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// stopWithin is how long a sidecar may take to end in order.
const stopWithin = 15 * time.Second

// Stop has the process end in order.
func (p *Process) Stop() error {
	_ = p.cmd.Process.Signal(os.Signal(syscall.SIGTERM))
	select {
	case <-p.exited:
		return p.err
	case <-time.After(stopWithin):
		p.Kill()
		return fmt.Errorf("sidecar: millrace serve did not end within %v", stopWithin)
	}
}
