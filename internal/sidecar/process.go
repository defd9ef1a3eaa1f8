package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Build compiles the binary into a directory.
func Build(ctx context.Context, dir string) (binary string, err error) {
	return BuildCommand(ctx, dir, "cmd/millrace")
}

// BuildCommand compiles another command of the repository into a directory.
func BuildCommand(ctx context.Context, dir, command string) (binary string, err error) {
	return build(ctx, dir, command)
}

func build(ctx context.Context, dir, command string, flags ...string) (binary string, err error) {
	binary = filepath.Join(dir, path.Base(command))
	args := append([]string{"build", "-o", binary}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "github.com/millrace-jobs/millrace/"+command)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("sidecar: building %s: %w: %s", path.Base(command), err, out)
	}
	return binary, nil
}

// Config says what to run. For empty members, the binary uses its own defaults.
type Config struct {
	Binary    string // the result of Build; required
	AMQPURL   string // required
	StreamURL string
	// ManagementURL is the root of the management API.
	ManagementURL string
	StateDir      string
	Identity      string
	LogLevel      string
	Addr          string    // of the REST API, host:port; default: a free one
	Output        io.Writer // gets the log; default: discarded
	OwnClock      bool      // makes SetClock possible; Binary is the result of BuildWithClock
	More          []string  // more arguments
}

// Process is one `millrace serve`.
type Process struct {
	URL      string // of the REST API
	Identity string
	cmd      *exec.Cmd
	clock    *clock
	exited   chan struct{} // closed when the process has ended and err is set
	err      error
}

// Start starts a sidecar. It does not wait until the sidecar is ready.
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
	args = append(args, cfg.More...)
	p := &Process{URL: "http://" + cfg.Addr, Identity: cfg.Identity, cmd: exec.Command(cfg.Binary, args...), exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = cfg.Output, cfg.Output
	p.cmd.SysProcAttr = attributes()
	if cfg.OwnClock {
		var err error
		if p.clock, err = newClock(cfg.Binary); err != nil {
			return nil, fmt.Errorf("sidecar: making a clock: %w", err)
		}
		p.cmd.Env = append(os.Environ(), p.clock.environment())
	}
	started := make(chan error, 1)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("sidecar: starting millrace serve: %w", err)
	}
	return p, nil
}

// run owns the process. To the kernel, its parent is the thread that forked. That thread must live
// as long as the process.
func (p *Process) run(started chan<- error) {
	defer close(p.exited)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if p.clock != nil {
		defer p.clock.remove()
	}
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	started <- nil
	p.err = p.cmd.Wait()
}

// FreeAddress returns an address on 127.0.0.1 that is free now. Its port is below the kernel's
// range for outgoing connections, so that no such connection takes it before the sidecar listens.
func FreeAddress() (string, error) {
	var err error
	for range 1000 {
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 14_000+rand.IntN(5_900))); err == nil {
			defer l.Close()
			return l.Addr().String(), nil
		}
	}
	return "", err
}

// Pid returns the id of the process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Exited returns a channel that is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// SetClock sets how far the wall clock of the process is ahead of the machine's, or behind it. The
// monotonic clock does not change, as when an administrator sets a machine's clock.
func (p *Process) SetClock(ahead time.Duration) error {
	if p.clock == nil {
		return errors.New("sidecar: the process was started without a clock of its own")
	}
	p.clock.set(ahead)
	return nil
}

// Kill kills the process (SIGKILL), and waits until it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.exited
}

// Freeze stops the process until Thaw (SIGSTOP).
func (p *Process) Freeze() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw lets a frozen process continue.
func (p *Process) Thaw() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// stopWithin is how long a sidecar may take to stop in an orderly way.
const stopWithin = 15 * time.Second

// Stop stops the process in an orderly way.
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
