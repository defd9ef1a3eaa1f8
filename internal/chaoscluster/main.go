package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/millrace-jobs/millrace/internal/sidecar"
)

// options are the options of the command line.
type options struct {
	broker    string // the broker of the running cluster
	rows      []int
	runs      int
	full      bool
	rate      int
	slack     float64
	patience  time.Duration
	seed      uint64
	hosts     string
	binary    string
	older     string
	commit    string
	results   string
	resume    bool
	dir       string
	keep      bool
	verbose   bool
	rabbitMQ4 string
}

func (o options) rabbitMQ() string {
	if o.broker == rabbit43 {
		return o.rabbitMQ4
	}
	return ""
}

func (o options) lavinMQ() string {
	if o.broker == lavinMQ {
		return os.Getenv(envLavinMQ)
	}
	return ""
}

// Names of environment variables.
const (
	envLavinMQ  = "MILLRACE_TEST_LAVINMQ"
	envRabbitMQ = "MILLRACE_TEST_RABBITMQ"
)

func main() { os.Exit(command(os.Args[1:], os.Stdout, os.Stderr)) }

// command is the program. It returns the exit code.
func command(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, chosen, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err == nil {
		err = runAll(ctx, o, chosen, stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, "chaoscluster:", err)
		return 1
	}
	return 0
}

// parse parses the flags. chosen are the brokers to run.
func parse(args []string, stderr io.Writer) (o options, chosen []string, err error) {
	flags := flag.NewFlagSet("chaoscluster", flag.ContinueOnError)
	flags.SetOutput(stderr)
	broker := flags.String("broker", "", "only these `brokers`, separated by commas: "+strings.Join(brokers, ", "))
	only := flags.String("row", "", "only the rows with these `numbers`, separated by commas")
	flags.IntVar(&o.runs, "runs", 1, "how often each row is run, each time with the next seed")
	flags.BoolVar(&o.full, "full", false, "run the rows at their real size, with 1,000 jobs a second")
	flags.IntVar(&o.rate, "rate", 0, "jobs a second (default 150, with -full 1000)")
	flags.Float64Var(&o.slack, "slack", 1, "a `factor` for the bounds of time, for a machine that is overloaded")
	flags.DurationVar(&o.patience, "patience", time.Minute, "how long nothing may come before what is missing counts as lost")
	flags.Uint64Var(&o.seed, "seed", 0, "repeat the plan of this seed; 0 takes a new one")
	flags.StringVar(&o.hosts, "hosts", "all", "whether a sidecar is given the addresses of all nodes (all), or its own node's (one)")
	flags.StringVar(&o.binary, "binary", "", "the `path` of the millrace to try (default: build it)")
	flags.StringVar(&o.older, "older", "", "the `path` of an older millrace, from which row 17 upgrades; without it that row is left out")
	flags.StringVar(&o.commit, "commit", "", "the commit that the binary was built from (default: this checkout's)")
	flags.StringVar(&o.results, "results", "", "append each result as a line of JSON to this `file`")
	flags.BoolVar(&o.resume, "resume", false, "leave out what the results file has of this commit")
	flags.StringVar(&o.dir, "dir", "", "where nodes and sidecars keep their data (default: a new folder, in memory where there is /dev/shm)")
	flags.BoolVar(&o.keep, "keep", false, "keep that folder, with all logs")
	flags.BoolVar(&o.verbose, "v", false, "log what is done")
	flags.StringVar(&o.rabbitMQ4, "rabbitmq4", os.Getenv(envRabbitMQ), "the `folder` with RabbitMQ 4.3's programs (scripts/rabbitmq4.sh prints it)")
	if err := flags.Parse(args); err != nil {
		return o, nil, err
	}
	if chosen, err = choose(*broker); err != nil {
		return o, nil, err
	}
	if o.rows, err = numbers(*only); err != nil {
		return o, nil, err
	}
	if o.hosts != "one" && o.hosts != "all" {
		return o, nil, fmt.Errorf("-hosts=%s: must be one or all", o.hosts)
	}
	if o.rate == 0 {
		o.rate = 150
		if o.full {
			o.rate = 1000
		}
	}
	if o.rate < 1 || o.runs < 1 {
		return o, nil, errors.New("-rate and -runs must be at least 1")
	}
	if o.seed == 0 {
		o.seed = uint64(time.Now().UnixNano() % 1e6) //nolint:gosec // positive
	}
	return o, chosen, nil
}

func choose(list string) ([]string, error) {
	if list == "" {
		return brokers, nil
	}
	chosen := strings.Split(list, ",")
	for _, b := range chosen {
		if !slices.Contains(brokers, b) {
			return nil, fmt.Errorf("-broker: there is no %q; choose of %s", b, strings.Join(brokers, ", "))
		}
	}
	return chosen, nil
}

func numbers(list string) (all []int, err error) {
	if list == "" {
		return nil, nil
	}
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || !slices.ContainsFunc(rows(), func(r row) bool { return r.number == n }) {
			return nil, fmt.Errorf("-row: there is no row %q", text)
		}
		all = append(all, n)
	}
	return all, nil
}

// missing says why a broker cannot run here, or returns an empty text.
func missing(o options) string {
	switch {
	case o.broker == lavinMQ && os.Getenv(envLavinMQ) == "":
		return envLavinMQ + " names no program (scripts/lavinmq.sh builds one)"
	case o.broker == lavinMQ && !installed("etcd"):
		return "etcd is not installed (scripts/deps.sh etcd installs it)"
	case o.broker == rabbit43 && o.rabbitMQ4 == "":
		return "-rabbitmq4 and " + envRabbitMQ + " name no folder (scripts/rabbitmq4.sh makes one)"
	}
	return ""
}

func installed(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

var errBroken = errors.New("a bound was broken")

func runAll(ctx context.Context, o options, chosen []string, out io.Writer) (err error) {
	if err := o.prepare(ctx); err != nil {
		return err
	}
	if o.keep {
		fmt.Fprintln(out, "all data and logs stay in", o.dir)
	} else {
		defer func() { err = errors.Join(err, os.RemoveAll(o.dir)) }()
	}
	// The nodes of 3.10 are the installed ones, even if the environment names another RabbitMQ.
	if err := os.Unsetenv(envRabbitMQ); err != nil {
		return err
	}
	t := &results{path: o.results, out: out}
	for _, broker := range chosen {
		o.broker = broker
		if why := missing(o); why != "" {
			fmt.Fprintf(out, "The rows of %s are left out: %s.\n", broker, why)
			continue
		}
		if err := runBroker(ctx, o, t); err != nil {
			return err
		}
	}
	if t.broken > 0 {
		return fmt.Errorf("%w: in %d of %d runs", errBroken, t.broken, t.runs)
	}
	return nil
}

// prepare creates the directory and builds the binary.
func (o *options) prepare(ctx context.Context) (err error) {
	parent := o.dir
	if parent == "" {
		parent = os.TempDir()
		if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
			parent = "/dev/shm"
		}
	}
	if o.dir, err = os.MkdirTemp(parent, "millrace-chaos-"); err != nil {
		return err
	}
	if o.binary == "" {
		if o.binary, err = sidecar.Build(ctx, o.dir); err != nil {
			return err
		}
	}
	if o.commit == "" {
		text, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
		if err != nil {
			return fmt.Errorf("asking git for the commit (-commit names it): %w", err)
		}
		o.commit = strings.TrimSpace(string(text))
	}
	return nil
}

// runBroker runs the rows of one broker. They share one cluster as long as it is healthy.
func runBroker(ctx context.Context, o options, t *results) (err error) {
	log := slog.New(slog.DiscardHandler)
	if o.verbose {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	var n *nodes
	defer func() {
		if n != nil {
			err = errors.Join(err, n.close())
		}
	}()
	serial := 0
	for _, r := range rows() {
		if !r.runsOn(o.broker) || len(o.rows) > 0 && !slices.Contains(o.rows, r.number) {
			continue
		}
		if r.upgrades && o.older == "" {
			fmt.Fprintf(t.out, "%s row %d (%s) is left out: -older names no program.\n", o.broker, r.number, r.name)
			continue
		}
		for run := range o.runs {
			if o.resume && t.has(o, r, run) {
				continue
			}
			serial++
			dir := filepath.Join(o.dir, fmt.Sprintf("%s-%d", o.broker, serial))
			if n != nil && (n.older != r.upgrades || n.healthy(ctx, startWithin) != nil) {
				err := n.close()
				if n = nil; err != nil {
					return err
				}
			}
			if n == nil {
				began := time.Now()
				if n, err = startNodes(ctx, o, r.upgrades, dir, log); err != nil {
					return err
				}
				fmt.Fprintf(t.out, "three nodes of %s are up after %.0f s\n", o.broker, time.Since(began).Seconds())
			}
			o := o
			o.seed += uint64(run) //nolint:gosec // not negative
			if err := t.add(runRow(ctx, o, r, run, n, dir, log)); err != nil {
				return err
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	return nil
}
