package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/millrace-jobs/millrace/internal/localbroker"
)

// languages are all languages that have a client.
var languages = []string{"go", "python", "ruby", "javascript", "java"}

// suite is one run.
type suite struct {
	broker  *localbroker.Broker
	sidecar string // the binary
	tmp     string
	log     io.Writer // what programs print
	full    bool
	rerun   bool
	driver  string // the beginning of the version that the AMQP libraries must have
	vhosts  atomic.Int64

	parallel int // concurrent trials
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, out io.Writer) int {
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	lang := flags.String("lang", strings.Join(languages, ","), "languages, comma-separated")
	only := flags.String("run", "", "scenarios, comma-separated; all if empty")
	verbose := flags.Bool("v", false, "show what the programs print")
	full := flags.Bool("full", false, "as many kills, restarts and jobs as the promise says")
	list := flags.Bool("list", false, "list the scenarios")
	parallel := flags.Int("parallel", 5, "how many trials are made at a time; 1 for figures that others do not disturb")
	rerun := flags.Bool("rerun", false, "make trials that fail once more, alone, unless there are many")
	noWrong := flags.Bool("no-wrong", false, "leave the deliberately wrong clients out")
	driver := flags.String("driver", "", "fail if a worker's AMQP library has a version that does not begin with this; checked by the scenario happy")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if *list {
		for _, s := range scenarios {
			fmt.Fprintf(out, "%-12s %s\n", s.name, s.what)
		}
		return 0
	}
	chosen, err := choose(*only)
	if err != nil {
		fmt.Fprintln(out, err)
		return 2
	}
	s := &suite{log: io.Discard, full: *full, rerun: *rerun, driver: *driver, parallel: max(*parallel, 1)}
	if *verbose {
		s.log = os.Stderr
	}
	table, err := s.all(ctx, strings.Split(*lang, ","), chosen, !*noWrong, out)
	if err != nil {
		fmt.Fprintln(out, "conformance:", err)
		return 1
	}
	table.print(out)
	if table.failed() {
		return 1
	}
	return 0
}

func choose(only string) ([]scenario, error) {
	if only == "" {
		return scenarios, nil
	}
	var chosen []scenario
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no scenario %q: -list names them", name)
		}
		chosen = append(chosen, scenarios[i])
	}
	return chosen, nil
}

// all runs the chosen scenarios with each language, and the clients that are wrong on purpose.
func (s *suite) all(ctx context.Context, langs []string, chosen []scenario, withWrong bool, out io.Writer) (*table, error) {
	stop, err := s.prepare(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	chosen = s.possible(chosen, out)
	all := plan(langs, chosen)
	if withWrong {
		mistaken, err := s.wrong(langs, chosen)
		if err != nil {
			return nil, err
		}
		// They take longest, because they wait for effects that must not come.
		all = append(mistaken, all...)
	}
	t := &table{langs: langs, scenarios: chosen, cells: map[cell]result{}}
	s.carryOut(ctx, s.buildAll(ctx, all, t, out), t, out)
	return t, ctx.Err()
}

// possible leaves out the scenarios about what LavinMQ lacks: crashes of a channel, quorum queues
// and the memory alarm.
func (s *suite) possible(chosen []scenario, out io.Writer) (possible []scenario) {
	for _, sc := range chosen {
		if sc.rabbitmq && !s.broker.HasErlang() {
			fmt.Fprintf(out, "left out: %s is about what LavinMQ does not have\n", sc.name)
			continue
		}
		possible = append(possible, sc)
	}
	return possible
}

// buildAll builds the programs of all clients, and returns the trials whose programs it could
// build. A crowd runs without a client that could not be built. That client has failed.
func (s *suite) buildAll(ctx context.Context, all []planned, t *table, out io.Writer) (possible []planned) {
	built := map[string]error{}
	for _, p := range all {
		var ready []string
		for _, c := range p.clients() {
			err, done := built[c.dir]
			if !done {
				begin := time.Now()
				err = s.build(ctx, c.dir+"/build")
				built[c.dir] = err
				fmt.Fprintf(out, "%-12s %-12s %6.1f s\n", c.name, "(build)", time.Since(begin).Seconds())
			}
			if err == nil {
				ready = append(ready, c.name)
				continue
			}
			without := p
			without.c, without.langs = c, []string{c.name}
			t.note(without, result{failure: err.Error()})
			report(out, without, result{failure: err.Error()})
		}
		if len(ready) > 0 {
			p.langs = ready
			possible = append(possible, p)
		}
	}
	return possible
}

// prepare starts the broker and builds the sidecar.
func (s *suite) prepare(ctx context.Context) (stop func(), err error) {
	if s.tmp, err = os.MkdirTemp("", "millrace-conformance-"); err != nil {
		return nil, err
	}
	s.sidecar = filepath.Join(s.tmp, "millrace")
	build := exec.CommandContext(ctx, "go", "build", "-o", s.sidecar, "./cmd/millrace")
	if text, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the sidecar: %w\n%s", err, text)
	}
	broker, stopBroker, err := startBroker(ctx, s.brokerDir())
	if err != nil {
		return nil, err
	}
	s.broker = broker
	return func() {
		stopBroker()
		_ = os.RemoveAll(s.tmp)
	}, nil
}

// brokerDir returns the directory of the node that trials share.
func (s *suite) brokerDir() string { return filepath.Join(s.tmp, "broker") }

// startBroker starts a private broker: the installed RabbitMQ, or the broker that the environment
// names.
func startBroker(ctx context.Context, dir string) (broker *localbroker.Broker, stop func(), err error) {
	broker, err = localbroker.Start(ctx, localbroker.Config{Dir: dir, LavinMQ: os.Getenv("MILLRACE_TEST_LAVINMQ")})
	return broker, func() {
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		_ = broker.Stop(limit)
	}, err
}

func (s *suite) build(ctx context.Context, path string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	text, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", path, err, text)
	}
	fmt.Fprintf(s.log, "%s\n", text)
	return nil
}
