package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/millrace-jobs/millrace/bench/peers/work"
)

// envLavinMQ names the program of a LavinMQ, on which Millrace is measured too.
const envLavinMQ = "MILLRACE_TEST_LAVINMQ"

// bench is shared by all rows of all peers.
type bench struct {
	dir   string
	tools *tools
	table *table
	load  []string
}

// rows is the work of each row. The first one has the machine busy, the second has it idle.
var rows = []work.Work{
	{Row: work.Keyed, Jobs: 5000, Keys: 100, Limit: 3, SleepMS: 10, Slots: 200},
	{Row: work.Gaps, Jobs: 900, Keys: 10, Limit: 3, SleepMS: 100, Slots: 50},
	{Row: work.Rate, Jobs: 7000, Keys: 1, Rate: 1000, SleepMS: 1, Slots: 50},
	{Row: work.Unique, Jobs: 5000, Keys: 1, SleepMS: 1, Slots: 50, Producers: 8},
	{Row: work.Periodic, Jobs: 1000, Keys: 1, SleepMS: 1, Slots: 50},
	{Row: work.Killed, Jobs: 12_000, Keys: 10, Limit: 3, SleepMS: 500, Slots: 50},
}

func init() {
	runtime.LockOSThread() // the kernel kills children when the thread ends that started them
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench-peers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("bench-peers", flag.ContinueOnError)
	runs := flags.Int("runs", 1, "measure each row `n` times and print the median")
	names := flags.String("peers", strings.Join(defaultPeers(), ","), "measure only some of the `peers`")
	only := flags.String("only", "", "measure only some of the `rows`: keyed, gaps, rate, unique, periodic, killed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	b := &bench{table: &table{}}
	if b.dir, err = os.MkdirTemp("", "millrace-peers"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if b.tools, err = newTools(); err != nil {
		return err
	}
	all, err := b.peers(ctx, strings.Split(*names, ","))
	if err != nil {
		return err
	}
	var failed error
	for n := range *runs {
		for _, p := range all {
			failed = errors.Join(failed, b.measure(ctx, p, n, *only))
		}
	}
	b.about(all)
	b.table.print(os.Stdout)
	return failed
}

func defaultPeers() []string {
	all := []string{"millrace", "bullmq", "asynq", "pgboss", "celery"}
	if os.Getenv(envLavinMQ) != "" {
		all = slices.Insert(all, 1, "lavinmq")
	}
	return all
}

// measure starts what a peer needs, and measures its rows.
func (b *bench) measure(ctx context.Context, p *peer, n int, only string) (err error) {
	dir := filepath.Join(b.dir, fmt.Sprintf("server-%d-%s", n, strings.ReplaceAll(p.name, " ", "-")))
	s, err := p.server(ctx, dir)
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if !slices.Contains(b.table.peers, p.name) {
		b.table.peers = append(b.table.peers, p.name)
		p.version += "; " + s.about()
	}
	var failed error
	for _, w := range rows {
		if !slices.Contains(p.rows, w.Row) || only != "" && !slices.Contains(strings.Split(only, ","), w.Row) {
			continue
		}
		b.noteLoad()
		fmt.Fprintf(os.Stderr, "%s %s: %s, load %s\n", time.Now().Format(time.TimeOnly), p.name, w.Row, b.load[len(b.load)-1])
		if err := b.row(ctx, p, s, w); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %s: %w", p.name, w.Row, err))
		}
	}
	return failed
}

func (b *bench) noteLoad() {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		raw = []byte("unknown")
	}
	b.load = append(b.load, strings.Fields(string(raw))[0])
}

// about prints the setup.
func (b *bench) about(all []*peer) {
	fmt.Printf("%d CPUs, shared by all processes of a peer; %s; load before each row: %s\n\n", runtime.NumCPU(), runtime.Version(), strings.Join(b.load, " "))
	for _, p := range all {
		fmt.Printf("- %s: %s; jobs are scheduled by %s\n", p.name, p.version, p.schedules)
	}
	fmt.Println()
}
