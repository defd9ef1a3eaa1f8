package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/millrace-jobs/millrace/cmd/millrace/demo"
	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/flags"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
	"github.com/millrace-jobs/millrace/internal/localbroker"
	"github.com/millrace-jobs/millrace/internal/pause"
)

type upCmd struct {
	flags.API

	Fresh    bool   `help:"Start with an empty broker: delete the data of the last run."`
	Rate     int    `placeholder:"N" default:"20" help:"Jobs per second that the demo enqueues (${default})."`
	LogLevel string `enum:"debug,info,warn,error" default:"warn" placeholder:"LEVEL" help:"debug, info, warn or error (${default})."`
}

const (
	brokerStartLimit = 2 * time.Minute
	brokerStopLimit  = 20 * time.Second
	readyLimit       = time.Minute
)

// Run is a private broker, a sidecar, a demo worker and its traffic, until ctx ends, or the terminal is closed.
func (c *upCmd) Run(ctx context.Context, out output.Streams) (err error) {
	if !signal.Ignored(syscall.SIGHUP) {
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGHUP)
		defer stop()
	}
	if c.Rate < 1 || c.Rate > 1000 {
		return usage.Errorf("invalid --rate %d: use 1 to 1000 jobs per second", c.Rate)
	}
	if err := localbroker.Available(); err != nil {
		return fmt.Errorf("a private broker needs the package rabbitmq-server: `make up` installs it (so does apt-get install rabbitmq-server): %w", err)
	}
	dir, unlock, err := openUpDir(c.Fresh)
	if err != nil {
		return err
	}
	defer unlock()
	live := output.NewLive(out.Out)
	log := newLog(live, c.LogLevel, "text")
	listener, err := c.listen(ctx)
	if err != nil {
		return err
	}
	defer listener.Close()
	live.Printf("Starting a private RabbitMQ with its data in %s …\n", dir)
	node, err := startBroker(ctx, dir, log)
	if err != nil {
		return interrupted(ctx, err)
	}
	defer func() { err = errors.Join(err, stopBroker(ctx, node, live)) }()
	user, err := makeUpUser(ctx, node.ManagementURL())
	if err != nil {
		return interrupted(ctx, err)
	}
	return c.runWith(ctx, upParts{node, user, dir, listener, live, log})
}

type upParts struct {
	node     *localbroker.Broker
	user     *url.Userinfo // the sidecar's
	dir      string
	listener net.Listener
	live     *output.Live
	log      *slog.Logger
}

// runWith runs the sidecar, then the demo beside it.
func (c *upCmd) runWith(ctx context.Context, p upParts) error {
	settings := c.sidecar(p)
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return serve(gctx, settings, p.log, p.listener) })
	g.Go(func() error {
		select {
		case <-p.node.Exited():
			return errors.New("the private broker has died; its log is in " + filepath.Join(p.dir, "broker", "log"))
		case <-gctx.Done():
			return nil
		}
	})
	g.Go(func() error {
		api := settings.apiClient(&flags.SignIn{})
		if err := awaitReady(gctx, api); err != nil {
			return interrupted(gctx, err)
		}
		p.live.Printf("%s", welcome(settings, p.node, p.dir))
		traffic := &demo.Demo{AMQPURL: p.node.AMQPURL(), Rate: c.Rate, Log: p.log}
		g.Go(func() error { return traffic.Run(gctx) })
		return p.live.Follow(gctx, func(ctx context.Context) string { return countsLine(ctx, traffic.Counts(), api) })
	})
	return g.Wait()
}

// sidecar is the settings of a sidecar beside the private broker.
func (c *upCmd) sidecar(p upParts) sidecarSettings {
	s := sidecarSettings{StateDir: p.dir, StreamURL: as(p.user, p.node.StreamURL()), TrustedUsers: []string{upUsersBefore}}
	s.private = true
	s.AMQPURL, s.ManagementURL, s.HTTPAddr = as(p.user, p.node.AMQPURL()), as(p.user, p.node.ManagementURL()), p.listener.Addr().String()
	return s
}

// listen takes the next free port where the one that is wanted is in use: the address is printed anyway.
func (c *upCmd) listen(ctx context.Context) (net.Listener, error) {
	listener, err := listen(ctx, c.HTTPAddr, httpapi.Exposure{})
	if err == nil || errors.Is(err, httpapi.ErrNotLocal) {
		return listener, err
	}
	_, text, splitErr := net.SplitHostPort(c.HTTPAddr)
	wanted, lookErr := net.LookupPort("tcp", text)
	if splitErr != nil || lookErr != nil {
		return nil, err
	}
	port, portErr := localbroker.FreePort(wanted + 1)
	if portErr != nil {
		return nil, err
	}
	return listen(ctx, fmt.Sprintf("127.0.0.1:%d", port), httpapi.Exposure{})
}

// startBroker starts the private broker on the usual ports, or on those that follow.
func startBroker(ctx context.Context, dir string, log *slog.Logger) (*localbroker.Broker, error) {
	ctx, cancel := context.WithTimeout(ctx, brokerStartLimit)
	defer cancel()
	cfg := localbroker.Config{Dir: filepath.Join(dir, "broker"), Log: log}
	for port, usual := range map[*int]int{&cfg.AMQPPort: 5672, &cfg.ManagementPort: 15672, &cfg.StreamPort: 5552} {
		free, err := localbroker.FreePort(usual)
		if err != nil {
			return nil, err
		}
		*port = free
	}
	return localbroker.Start(ctx, cfg)
}

func stopBroker(ctx context.Context, node *localbroker.Broker, live *output.Live) error {
	live.Printf("Stopping. The data stay for the next start.\n")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), brokerStopLimit)
	defer cancel()
	return node.Stop(ctx)
}

// awaitReady waits until the sidecar has read what there is.
func awaitReady(ctx context.Context, api *apiclient.Client) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for {
		_, err := api.Do(ctx, apiclient.Request{Path: "/readyz"})
		if err == nil {
			return nil
		}
		_ = pause.For(ctx, 100*time.Millisecond)
		if ctx.Err() != nil {
			return fmt.Errorf("the sidecar is not ready: %w", err)
		}
	}
}

// interrupted makes nothing of an error that comes from being interrupted.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// openUpDir is the folder that survives from one `millrace up` to the next, and is one's alone meanwhile.
func openUpDir(fresh bool) (dir string, unlock func(), err error) {
	state := os.Getenv("XDG_STATE_HOME")
	if state == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", nil, fmt.Errorf("no place for data: set XDG_STATE_HOME: %w", err)
		}
		state = filepath.Join(home, ".local", "state")
	}
	dir = filepath.Join(state, "millrace", "up")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, err
	}
	lock, err := lockFile(filepath.Join(dir, "lock"))
	if err != nil {
		return "", nil, err
	}
	unlock = func() { _ = lock.Close() }
	if fresh {
		err = errors.Join(os.RemoveAll(filepath.Join(dir, "broker")), os.RemoveAll(filepath.Join(dir, "view")))
	}
	if err != nil {
		unlock()
	}
	return dir, unlock, err
}
