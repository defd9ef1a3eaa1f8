package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/internal/localbroker"
	running "github.com/millrace-jobs/millrace/internal/sidecar"
)

// bench is shared by all figures: a broker, the binary and the table.
type bench struct {
	options
	dir     string
	broker  *localbroker.Broker
	asker   string // bench/asker
	table   *table
	stderr  io.Writer
	log     *slog.Logger
	vhosts  int
	rounds  int      // rounds in which workers were measured
	product string   // name and version of the broker
	load    []string // before each run
}

// envLavinMQ names the program of a LavinMQ to measure, instead of RabbitMQ.
const envLavinMQ = "MILLRACE_TEST_LAVINMQ"

// startWithin limits how long the broker and a sidecar may take to be ready.
const startWithin = 2 * time.Minute

func newBench(ctx context.Context, o options, stderr io.Writer) (*bench, error) {
	b := &bench{options: o, table: newTable(), stderr: stderr, log: slog.New(slog.DiscardHandler)}
	if o.verbose {
		b.log = slog.New(slog.NewTextHandler(stderr, nil))
	}
	if err := b.prepare(ctx); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// prepare builds the binaries and starts the broker.
func (b *bench) prepare(ctx context.Context) (err error) {
	if b.dir, err = os.MkdirTemp("", "millrace-bench"); err != nil {
		return err
	}
	if b.binary == "" {
		if b.binary, err = running.Build(ctx, b.dir); err != nil {
			return err
		}
	}
	if b.asker, err = running.BuildCommand(ctx, b.dir, "bench/asker"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	b.broker, err = localbroker.Start(ctx, localbroker.Config{Dir: filepath.Join(b.dir, "broker"), LavinMQ: os.Getenv(envLavinMQ), Log: b.log})
	if err != nil {
		return err
	}
	b.product, err = product(b.broker.AMQPURL())
	return err
}

func (b *bench) close() error {
	var err error
	if b.broker != nil {
		err = b.broker.Stop(context.Background())
	}
	return errors.Join(err, os.RemoveAll(b.dir))
}

// on measures a figure once.
func (b *bench) on(ctx context.Context, f figure) (err error) {
	b.noteLoad()
	v, err := b.newVhost(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.delete(context.WithoutCancel(ctx))) }()
	return f.measure(ctx, b, v)
}

// noteLoad records how busy the machine is, because other programs on it affect the figures.
func (b *bench) noteLoad() {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return // not Linux
	}
	b.load = append(b.load, strings.Fields(string(raw))[0])
}

// about describes the setup in which the figures were measured.
func (b *bench) about() string {
	how := "millrace serve"
	if b.cpuProfile != "" {
		how = "the sidecar's parts within the benchmark, being profiled"
	}
	text := fmt.Sprintf("%s; %s; %d CPUs, shared by broker, sidecar and clients; %s", how, b.product, runtime.NumCPU(), runtime.Version())
	if len(b.load) > 0 {
		text += "; load before each run: " + strings.Join(b.load, " ")
	}
	return text
}

// debug logs the distributions of one run.
func (b *bench) debug(what string, ours, own []time.Duration) {
	for _, q := range []float64{0, 0.5, 0.9, 0.99, 0.999, 1} {
		b.log.Info(what, "quantile", q, "millrace", quantile(ours, q), "broker", quantile(own, q))
	}
}

// wait polls until holds returns true.
func wait(ctx context.Context, within time.Duration, what string, holds func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := holds()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
}
