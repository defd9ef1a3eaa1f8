package localbroker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// ctlLimit is the time limit of a command if the context has no deadline.
const ctlLimit = time.Minute

// dropStatistics removes the management plugin's listener from the event bus. With it, RabbitMQ
// 3.10 deadlocks for five seconds when its application stops: the listener calls the application
// controller when it ends, and the controller waits for the listener. Starting the application adds
// it again.
const dropStatistics = "gen_event:delete_handler(rabbit_event, rabbit_mgmt_db_handler, [])."

// syncTables writes to disk that the node coordinates streams, which it has done since our probe.
// If a node of RabbitMQ 3.10 is killed within half a second of its first stream, it forgets all
// streams: they answer 404 (home node is down) forever.
const syncTables = "[ok = dets:sync(T) || T <- dets:all()]."

// Eval evaluates an Erlang expression on the node (`rabbitmqctl eval`) and returns its output.
func (b *Broker) Eval(ctx context.Context, expr string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.eval(ctx, expr)
}

// StopApp stops RabbitMQ on the node, but not the Erlang VM (`rabbitmqctl stop_app`). The uptime of
// a node does not show such a restart.
func (b *Broker) StopApp(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.run(ctx, dropStatistics); err != nil {
		return err
	}
	_, err := b.ctl(ctx, "stop_app")
	return err
}

// StartApp starts RabbitMQ again after StopApp, and waits until it can be used.
func (b *Broker) StartApp(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, err := b.ctl(ctx, "start_app"); err != nil {
		return err
	}
	return b.waitReady(ctx, b.node)
}

func (b *Broker) eval(ctx context.Context, expr string) (string, error) {
	return b.ctl(ctx, "eval", expr)
}

// run evaluates an expression whose value is not needed. erl_call takes some milliseconds for that,
// and rabbitmqctl starts an Erlang VM.
func (b *Broker) run(ctx context.Context, expr string) error {
	if b.tools.call == "" {
		_, err := b.eval(ctx, expr)
		return err
	}
	out, err := b.tool(ctx, strings.NewReader(expr+"\n"), b.tools.call, "-sname", b.seat.name, "-e")
	if err == nil && !strings.HasPrefix(out, "{ok,") {
		err = fmt.Errorf("localbroker: erl_call: %s", out)
	}
	return err
}

// ctl runs rabbitmqctl for the node.
func (b *Broker) ctl(ctx context.Context, args ...string) (string, error) {
	if !b.HasErlang() {
		return "", errors.New("localbroker: only a RabbitMQ has rabbitmqctl")
	}
	return b.tool(ctx, nil, b.tools.ctl, args...)
}

// tool runs a program that talks to the node, and returns what it prints.
func (b *Broker) tool(ctx context.Context, in io.Reader, program string, args ...string) (string, error) {
	if !b.node.alive() {
		return "", errors.New("localbroker: the node is not running")
	}
	ctx, cancel := context.WithTimeout(ctx, ctlLimit)
	defer cancel()
	name := filepath.Base(program) + " " + args[0]
	cmd := exec.Command(program, args...)
	cmd.Env = b.env()
	cmd.Dir = b.dir
	cmd.Stdin = in
	var out, fault bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &fault
	p, err := startProcess(cmd)
	if err != nil {
		return "", err
	}
	if err := p.wait(ctx); err != nil {
		return "", errors.Join(fmt.Errorf("localbroker: %s: %w", name, err), p.kill())
	}
	if !cmd.ProcessState.Success() {
		return "", fmt.Errorf("localbroker: %s: %s: %s", name, cmd.ProcessState, strings.TrimSpace(out.String()+fault.String()))
	}
	return strings.TrimSpace(out.String()), nil
}
