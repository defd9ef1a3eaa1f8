package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"golang.org/x/sync/errgroup"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/localbroker"
	"github.com/millrace-jobs/millrace/internal/sidecar"
)

// size says how many of each thing there are.
type size struct {
	scheduled, retries, dead int
	processes, queues        int
	perSecond                int // jobs
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "uiload:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (err error) {
	var n size
	flags := flag.NewFlagSet("uiload", flag.ContinueOnError)
	flags.SetOutput(stderr)
	binary := flags.String("binary", "bin/millrace", "the sidecar's `program`")
	flags.IntVar(&n.scheduled, "scheduled", 1_000_000, "scheduled `jobs`")
	flags.IntVar(&n.retries, "retries", 100_000, "`jobs` that wait for a retry")
	flags.IntVar(&n.dead, "dead", 1_000_000, "dead `jobs`: as many as are kept unless --dead-max says otherwise")
	flags.IntVar(&n.processes, "processes", 200, "worker `processes` that send heartbeats")
	flags.IntVar(&n.queues, "queues", 300, "job `queues`")
	flags.IntVar(&n.perSecond, "rate", 2000, "`jobs` enqueued and done a second")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		cancel()
	}()
	dir, err := os.MkdirTemp("", "millrace-uiload")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	say(stderr, "starting a broker and a sidecar")
	broker, err := localbroker.Start(ctx, localbroker.Config{Dir: filepath.Join(dir, "broker"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.Stop(context.Background())) }()
	p, err := sidecar.Start(sidecar.Config{Binary: *binary, AMQPURL: broker.AMQPURL(), ManagementURL: broker.ManagementURL(), StreamURL: broker.StreamURL(),
		StateDir: filepath.Join(dir, "state"), LogLevel: "error", Output: stderr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	w := &world{size: n, amqpURL: broker.AMQPURL(), base: p.URL, stderr: stderr}
	if err := w.fill(ctx); err != nil {
		return ended(ctx, err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return w.beat(ctx) })
	g.Go(func() error { return w.produce(ctx) })
	g.Go(func() error { return w.work(ctx) })
	if err := json.NewEncoder(stdout).Encode(map[string]any{"base": p.URL, "pid": p.Pid(), "product": "RabbitMQ"}); err != nil {
		return err
	}
	return ended(ctx, g.Wait())
}

// ended returns nil if the program was asked to end.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || err == nil) {
		return nil
	}
	return err
}

// world is the system that is being filled.
type world struct {
	size
	amqpURL string
	base    string
	stderr  io.Writer
}

// say prints a progress message.
func say(to io.Writer, format string, args ...any) {
	fmt.Fprintf(to, "%s %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// until polls the overview until holds returns true.
func (w *world) until(ctx context.Context, holds func(o *answer.Overview) bool) error {
	for {
		var o answer.Overview
		if err := w.ask(ctx, http.MethodGet, "/api/overview", &o); err == nil && holds(&o) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (w *world) ask(ctx context.Context, method, path string, into any) error {
	r, err := http.NewRequestWithContext(ctx, method, w.base+path, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s %s: %s", method, path, response.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(into)
}

// channel opens a channel on a connection of its own, which is closed when ctx ends.
func (w *world) channel(ctx context.Context) (*amqp.Channel, error) {
	conn, err := amqp.Dial(w.amqpURL)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	return conn.Channel()
}
