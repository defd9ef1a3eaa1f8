package localbroker

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// startEpmd starts Erlang's name server in the foreground, so that this package can stop it. It
// waits until epmd answers, because the node needs it immediately.
func startEpmd(ctx context.Context, program string, env []string, port int) (*process, error) {
	cmd := exec.Command(program, "-port", strconv.Itoa(port), "-address", "127.0.0.1")
	cmd.Env = env
	p, err := startProcess(cmd)
	if err != nil {
		return nil, err
	}
	err = poll(ctx, p.done, func(ctx context.Context) error { return dial(ctx, "127.0.0.1", port) })
	if err != nil {
		return p, fmt.Errorf("localbroker: starting epmd: %w", err)
	}
	return p, nil
}

// hasData reports whether a node has run in the directory before.
func (b *Broker) hasData() bool {
	_, err := os.Stat(filepath.Join(b.dir, "data", b.seat.name))
	return err == nil
}

// startNode starts the Erlang VM with RabbitMQ in it, or LavinMQ.
func (b *Broker) startNode() (*process, error) {
	out, err := os.Create(filepath.Join(b.dir, "log", "startup.log"))
	if err != nil {
		return nil, fmt.Errorf("localbroker: opening the node's log: %w", err)
	}
	defer out.Close()
	cmd := exec.Command(b.tools.server, b.args()...)
	cmd.Dir = b.dir
	cmd.Env = b.env()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.ExtraFiles = []*os.File{b.lock} // the directory stays locked as long as the node lives
	return startProcess(cmd)
}

func (b *Broker) args() []string {
	if b.HasErlang() {
		return nil
	}
	return []string{"--config=" + filepath.Join(b.dir, "lavinmq.ini")}
}

// poll tries until it succeeds, the process has exited or the context has ended.
func poll(ctx context.Context, exited <-chan struct{}, try func(context.Context) error) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last error // error of the newest try that had enough time
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", last, ctx.Err())
		case <-exited:
			return errExited
		case <-tick.C:
		}
	}
}

func dial(ctx context.Context, host string, port int) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return conn.Close()
}
