package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options are the options of the command line.
type options struct {
	runs       int
	quick      bool
	only       string
	cpuProfile string
	binary     string
	save       string
	compare    string
	verbose    bool
	pending    int
	fired      int

	size size
}

// size says how much is measured.
type size struct {
	perSecond int           // entries due per second, for the lateness
	lasting   time.Duration // for how long
	burst     int           // entries due at one instant
	entries   int           // entries read into the view
	jobs      int           // jobs that do nothing, enqueued and run
	limited   limitedSize   // jobs that limits count, and periodic jobs
	warm      int           // jobs that a worker runs before the measurement
	languages []string      // languages of the workers and clients
	produced  int           // jobs that a client enqueues
	pending   int           // pending entries while the API is queried
	fired     int           // entries fired before that
	idle      time.Duration // how long the idle sidecar is watched
	asked     askedSize     // requests to the API
	metrics   int           // metric records per second
	viewers   int           // viewers of the events
}

// limitedSize is the size of the figures of limits and periodic jobs.
type limitedSize struct {
	handovers int // jobs that run one after another
	waiting   int // jobs that wait for the slots of their keys
	periodic  int // periodic jobs due at one instant
	rated     int // seconds in which jobs run under a rate
}

// askedSize is how much the API is asked.
type askedSize struct {
	requests int // of each kind
	flow     int // jobs per second meanwhile
}

var (
	fullSize = size{perSecond: 200, lasting: 30 * time.Second, burst: 50_000, entries: 200_000, jobs: 100_000, limited: limitedSize{handovers: 2000, waiting: 1_000_000, periodic: 5000, rated: 10}, warm: 20_000, languages: languages, produced: 10_000,
		pending: 1_000_000, fired: 5_000_000, idle: time.Minute, asked: askedSize{2000, 5000}, metrics: 30_000, viewers: 500}
	quickSize = size{perSecond: 200, lasting: 5 * time.Second, burst: 10_000, entries: 50_000, jobs: 20_000, limited: limitedSize{handovers: 500, waiting: 50_000, periodic: 1000, rated: 3}, warm: 20_000, languages: languages, produced: 2000,
		pending: 50_000, fired: 50_000, idle: 5 * time.Second, asked: askedSize{500, 1000}, metrics: 5000, viewers: 100}
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse(args []string, stderr io.Writer) (options, error) {
	o := options{size: fullSize}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.runs, "runs", 5, "measure each figure `n` times and print the median")
	flags.BoolVar(&o.quick, "quick", false, "measure less, once unless -runs says otherwise: to see that it works")
	flags.StringVar(&o.only, "only", "", "measure only some of the `figures`, separated by commas: lateness, burst, cost, messages, read, jobs, limits, untouched, waiting, unique, periodic, workers, producers, enqueue, million, metrics, viewers")
	langs := flags.String("lang", "", "measure the workers and clients of some `languages` only, separated by commas: "+strings.Join(languages, ", "))
	flags.IntVar(&o.pending, "pending", 0, "have `n` entries pending, instead of a million")
	flags.IntVar(&o.fired, "fired", 0, "have `n` entries fired, instead of five million")
	flags.StringVar(&o.cpuProfile, "cpuprofile", "", "run the sidecar's parts in this process, and write CPU profiles to `prefix`-<figure>.pprof")
	flags.StringVar(&o.binary, "binary", "", "measure this `file`, a build of cmd/millrace, and not the one of this checkout")
	flags.StringVar(&o.save, "save", "", "write the results to `file`, for -compare")
	flags.StringVar(&o.compare, "compare", "", "compare the results with those in `file`: measure everything twice, and fail where a figure got worse")
	flags.BoolVar(&o.verbose, "v", false, "show what the sidecar logs, and each run")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.quick {
		o.size = quickSize
		set := false
		flags.Visit(func(f *flag.Flag) { set = set || f.Name == "runs" })
		if !set {
			o.runs = 1
		}
	}
	if *langs != "" {
		o.size.languages = strings.Split(*langs, ",")
	}
	if o.pending > 0 {
		o.size.pending = o.pending
	}
	if o.fired > 0 {
		o.size.fired = o.fired
	}
	if o.runs < 1 {
		return o, errors.New("-runs must be at least 1")
	}
	return o, errors.Join(o.checkOnly(), o.checkLanguages())
}

func (o options) checkLanguages() error {
	for _, lang := range o.size.languages {
		if !slices.Contains(languages, lang) {
			return fmt.Errorf("-lang: there is no client in %q", lang)
		}
	}
	return nil
}

func (o options) checkOnly() error {
	if o.only == "" {
		return nil
	}
	for _, name := range strings.Split(o.only, ",") {
		known := false
		for _, f := range figures {
			known = known || f.name == name
		}
		if !known {
			return fmt.Errorf("-only: there is no figure %q", name)
		}
	}
	return nil
}

func (o options) wants(name string) bool {
	return o.only == "" || strings.Contains(","+o.only+",", ","+name+",")
}

// figure measures something once, on its own vhost, and adds the results to the table.
type figure struct {
	name    string
	measure func(context.Context, *bench, *vhost) error
	all     bool // repeats the measurement by itself
}

var figures = []figure{
	{"lateness", measureLateness, false},
	{"burst", measureBurst, false},
	{"cost", measureCost, false},
	{"messages", measureMessages, false},
	{"read", measureRead, false},
	{"jobs", measureJobs, false},
	{"limits", measureLimits, false},
	{"untouched", measureUntouched, false},
	{"waiting", measureWaiting, false},
	{"unique", measureUnique, false},
	{"periodic", measurePeriodic, false},
	{"workers", measureWorkers, false},
	{"producers", measureProducers, false},
	{"enqueue", measureEnqueue, false},
	{"million", measureMillion, true},
	{"metrics", measureMetrics, false},
	{"viewers", measureViewers, false},
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	return measure(ctx, o, stdout, stderr)
}

// measure measures every figure as often as requested, and prints the table. If it is interrupted,
// it prints the results so far.
func measure(ctx context.Context, o options, stdout, stderr io.Writer) (err error) {
	var before stored
	if o.compare != "" {
		if before, err = load(o.compare); err != nil {
			return err
		}
	}
	b, err := newBench(ctx, o, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	now, again := b.table, newTable()
	if before == nil {
		again = nil
	}
	err = b.runAll(ctx, now, again)
	now.print(stdout, b.about())
	if err == nil && o.save != "" {
		err = now.save(o.save)
	}
	if err == nil && before != nil {
		err = compare(stdout, before, now, again)
	}
	return err
}

// runAll measures every figure, one after another. If again is not nil, each is measured a second
// time for that table.
func (b *bench) runAll(ctx context.Context, now, again *table) error {
	for i := range b.runs {
		for _, f := range figures {
			if !b.wants(f.name) || f.all && i > 0 {
				continue
			}
			fmt.Fprintf(b.stderr, "run %d of %d: %s\n", i+1, b.runs, f.name)
			for _, t := range []*table{now, again} {
				if b.table = t; t == nil {
					continue
				}
				if err := b.on(ctx, f); err != nil {
					return fmt.Errorf("%s: %w", f.name, err)
				}
			}
		}
	}
	return nil
}
