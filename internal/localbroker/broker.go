package localbroker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Config says where a node keeps its data and where it listens.
type Config struct {
	// Dir holds the node's data, logs, cookie and configuration. It is created if it is missing.
	// Required.
	Dir string

	// AMQPPort, ManagementPort and StreamPort are ports on 127.0.0.1. They default to free ones.
	AMQPPort, ManagementPort, StreamPort int

	// LavinMQ is the program of a LavinMQ to run instead of RabbitMQ. It has no StreamURL, and
	// HasErlang returns false.
	LavinMQ string

	// RabbitMQ is a directory with rabbitmq-server, rabbitmqctl and epmd. It defaults to
	// MILLRACE_TEST_RABBITMQ, or else to the installed RabbitMQ.
	RabbitMQ string

	// Extension adds plugins and settings to a RabbitMQ.
	Extension Extension

	// Log gets messages about starts and stops. By default nothing is logged.
	Log *slog.Logger
}

// Broker is a private node. Its methods are safe for concurrent use.
type Broker struct {
	dir   string
	tools tools
	ports ports
	seat  seat
	log   *slog.Logger

	mu   sync.Mutex
	lock *os.File // held while the node may run
	epmd *process
	node *process
}

// stopGrace is how long an orderly stop may take if the context has no deadline.
const stopGrace = 60 * time.Second

// Start starts a node and waits until it can be used. ctx limits only the start: the node runs
// until Stop, Kill or the end of this process.
func Start(ctx context.Context, cfg Config) (*Broker, error) {
	tools, err := cfg.tools()
	if err != nil {
		return nil, err
	}
	if cfg.Dir == "" {
		return nil, errors.New("localbroker: Config.Dir is empty")
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("localbroker: finding %s: %w", cfg.Dir, err)
	}
	ports, err := choosePorts(cfg)
	if err != nil {
		return nil, err
	}
	log := cfg.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	b := &Broker{dir: dir, tools: tools, ports: ports, seat: lone(cfg), log: log}
	if err := b.Restart(ctx); err != nil {
		b.ports.release()
		return nil, err
	}
	return b, nil
}

// Restart starts the node again after Stop, Kill or a crash, with the same ports and the same data.
func (b *Broker) Restart(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.node.alive() {
		return errors.New("localbroker: the node is already running")
	}
	begin := time.Now()
	if err := b.launch(ctx); err != nil {
		return errors.Join(err, b.halt())
	}
	b.log.Info("local broker is up", "amqp", b.AMQPURL(), "pid", b.node.pid(), "dir", b.dir,
		"took", time.Since(begin).Round(time.Millisecond))
	return nil
}

// launch starts epmd and the node, and waits until the node can be used. After an error, the caller
// must call halt.
func (b *Broker) launch(ctx context.Context) (err error) {
	if err := b.writeFiles(); err != nil {
		return err
	}
	if b.lock == nil {
		if b.lock, err = lockDir(ctx, b.dir); err != nil {
			return err
		}
	}
	if !b.seat.shared {
		if err := b.ports.reserve(); err != nil {
			return err
		}
	}
	if b.HasErlang() && !b.seat.shared && !b.epmd.alive() {
		if b.epmd, err = startEpmd(ctx, b.tools.epmd, b.env(), b.ports.epmd); err != nil {
			return err
		}
	}
	fresh := !b.hasData()
	if b.node, err = b.startNode(); err != nil {
		return err
	}
	if err := b.waitReady(ctx, b.node); err != nil {
		return err
	}
	if fresh && b.HasErlang() {
		err = b.run(ctx, syncTables)
	}
	return err
}

// Stop stops the node in an orderly way, and releases everything but the data. If ctx ends first,
// Stop kills the node and returns the error of ctx. It is no error to stop twice.
func (b *Broker) Stop(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	var err error
	if b.node.alive() {
		err = b.stopNode(ctx)
	}
	err = errors.Join(err, b.halt())
	if !b.seat.shared {
		b.ports.release()
	}
	b.log.Info("local broker has stopped", "dir", b.dir)
	return err
}

func (b *Broker) stopNode(ctx context.Context) error {
	if b.HasErlang() {
		// Best effort: if this fails, the stop only takes five seconds longer.
		if err := b.run(ctx, dropStatistics); err != nil {
			b.log.Debug("local broker: statistics could not be dropped before the stop", "error", err)
		}
	}
	if err := b.node.signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("localbroker: stopping the node: %w", err)
	}
	if err := b.node.wait(ctx); err != nil {
		return fmt.Errorf("localbroker: waiting for the node to stop: %w", err)
	}
	return nil
}

// Kill kills the node (SIGKILL), like a crash of the broker. The data stays. The caller must still
// call Stop or Restart.
func (b *Broker) Kill() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.node.alive() {
		return errors.New("localbroker: the node is not running")
	}
	b.log.Info("local broker is killed", "pid", b.node.pid())
	return b.node.kill()
}

// halt kills all remaining processes and unlocks the directory.
func (b *Broker) halt() error {
	err := errors.Join(b.node.kill(), b.epmd.kill())
	if b.lock != nil {
		err = errors.Join(err, b.lock.Close())
		b.lock = nil
	}
	return err
}

// AMQPURL returns the URL for clients, as guest and with the default vhost.
func (b *Broker) AMQPURL() string {
	return fmt.Sprintf("amqp://guest:guest@%s:%d/", b.seat.host, b.ports.amqp)
}

// ManagementURL returns the root of the management API and UI.
func (b *Broker) ManagementURL() string {
	return fmt.Sprintf("http://guest:guest@%s:%d", b.seat.host, b.ports.management)
}

// StreamURL returns the URL of the native stream protocol. It is empty if the node does not speak
// it.
func (b *Broker) StreamURL() string {
	if !b.HasErlang() {
		return ""
	}
	return fmt.Sprintf("rabbitmq-stream://guest:guest@%s:%d/", b.seat.host, b.ports.stream)
}

// HasErlang reports whether this is a RabbitMQ, which supports Eval, StopApp and StartApp.
func (b *Broker) HasErlang() bool { return b.tools.ctl != "" }

// Pid returns the process id of the node, or that of the last one if none runs.
func (b *Broker) Pid() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.node.pid()
}

// Exited returns a channel that is closed when the running node exits, for any reason.
func (b *Broker) Exited() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.node.done
}
