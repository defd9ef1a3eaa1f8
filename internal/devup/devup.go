package devup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/flags"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
	"github.com/millrace-jobs/millrace/internal/devup/demo"
	"github.com/millrace-jobs/millrace/internal/localbroker"
	"github.com/millrace-jobs/millrace/internal/pause"
)

// Config says what is run, and how the caller runs a sidecar.
type Config struct {
	HTTPAddr string // of the API; if its port is in use, the next free one is taken
	Fresh    bool   // delete the data of the last run
	Rate     int    // jobs per second that the demo enqueues
	Open     bool   // open the web UI in the browser
	Live     *output.Live
	Log      *slog.Logger

	Listen func(ctx context.Context, addr string) (net.Listener, error)
	Serve  func(ctx context.Context, s Sidecar, l net.Listener) error // until ctx ends
}

// Sidecar is what a sidecar needs to run beside the private broker.
type Sidecar struct {
	AMQPURL       string
	ManagementURL string
	StreamURL     string
	StateDir      string
	TrustedUsers  []string
}

const readyTimeout = time.Minute

// Run runs everything until ctx ends or the terminal is closed.
func Run(ctx context.Context, cfg Config) (err error) {
	if !signal.Ignored(syscall.SIGHUP) {
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGHUP)
		defer stop()
	}
	if cfg.Rate < 1 || cfg.Rate > 1000 {
		return usage.Errorf("invalid --rate %d: use 1 to 1000 jobs per second", cfg.Rate)
	}
	if err := supported(); err != nil {
		return err
	}
	if err := localbroker.Available(); err != nil {
		return fmt.Errorf("a private broker needs the package rabbitmq-server: `make up` installs it (so does apt-get install rabbitmq-server): %w", err)
	}
	dir, unlock, err := openDir(cfg.Fresh)
	if err != nil {
		return err
	}
	defer unlock()
	listener, err := cfg.listen(ctx)
	if err != nil {
		return err
	}
	defer listener.Close()
	cfg.Live.Printf("Starting a private RabbitMQ with its data in %s …\n", dir)
	node, err := startBroker(ctx, dir, cfg.Log)
	if err != nil {
		return unlessInterrupted(ctx, err)
	}
	defer func() { err = errors.Join(err, stopBroker(ctx, node, cfg.Live)) }()
	user, err := makeUser(ctx, node.ManagementURL())
	if err != nil {
		return unlessInterrupted(ctx, err)
	}
	return cfg.runBeside(ctx, node, listener, Sidecar{
		AMQPURL: withUser(user, node.AMQPURL()), ManagementURL: withUser(user, node.ManagementURL()), StreamURL: withUser(user, node.StreamURL()),
		StateDir: dir, TrustedUsers: []string{formerUser},
	})
}

// runBeside runs the sidecar, and then the demo beside it.
func (cfg *Config) runBeside(ctx context.Context, node *localbroker.Broker, listener net.Listener, s Sidecar) error {
	addr := listener.Addr().String()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return cfg.Serve(ctx, s, listener) })
	g.Go(func() error {
		select {
		case <-node.Exited():
			return errors.New("the private broker has died; its log is in " + filepath.Join(s.StateDir, "broker", "log"))
		case <-ctx.Done():
			return nil
		}
	})
	g.Go(func() error {
		api := (&flags.SignIn{}).APIClient(apiclient.At("http", addr, ""), &flags.AMQP{AMQPURL: s.AMQPURL})
		if err := awaitReady(ctx, api); err != nil {
			return unlessInterrupted(ctx, err)
		}
		cfg.Live.Printf("%s", welcome(cfg.Live, addr, node.AMQPURL(), node.ManagementURL(), s.StateDir))
		if cfg.Open {
			openBrowser(cfg.Live, "http://"+addr+"/")
		}
		traffic := &demo.Demo{AMQPURL: node.AMQPURL(), Rate: cfg.Rate, Log: cfg.Log}
		g.Go(func() error { return traffic.Run(ctx) })
		return cfg.Live.Follow(ctx, func(ctx context.Context) string { return countsLine(ctx, traffic.Counts(), api) })
	})
	return g.Wait()
}

// listen takes the next free port if the one that is wanted is in use.
func (cfg *Config) listen(ctx context.Context) (net.Listener, error) {
	listener, err := cfg.Listen(ctx, cfg.HTTPAddr)
	if err == nil || errors.Is(err, auth.ErrNotLocal) {
		return listener, err
	}
	_, text, splitErr := net.SplitHostPort(cfg.HTTPAddr)
	wanted, lookErr := net.LookupPort("tcp", text)
	if splitErr != nil || lookErr != nil {
		return nil, err
	}
	port, portErr := localbroker.FreePort(wanted + 1)
	if portErr != nil {
		return nil, err
	}
	return cfg.Listen(ctx, fmt.Sprintf("127.0.0.1:%d", port))
}

// awaitReady waits until the sidecar has read the streams.
func awaitReady(ctx context.Context, api *apiclient.Client) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		_, err := api.Do(ctx, apiclient.Request{Path: apiclient.PathReady})
		if err == nil {
			return nil
		}
		_ = pause.For(ctx, 100*time.Millisecond)
		if ctx.Err() != nil {
			return fmt.Errorf("the sidecar is not ready: %w", err)
		}
	}
}

// unlessInterrupted returns an error, or nil if ctx has ended, which may be the cause.
func unlessInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
