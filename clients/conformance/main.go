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
	"syscall"
	"time"

	"github.com/millrace-jobs/millrace/internal/localbroker"
)

// languages are all that there are.
var languages = []string{"go", "python", "ruby", "javascript", "java"}

// suite is one run.
type suite struct {
	broker  *localbroker.Broker
	sidecar string // the binary
	tmp     string
	log     io.Writer // what programs print
	full    bool
	vhosts  int
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
	noWrong := flags.Bool("no-wrong", false, "leave the deliberately wrong workers out")
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
	s := &suite{log: io.Discard, full: *full}
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

// all runs the chosen scenarios with each language.
func (s *suite) all(ctx context.Context, langs []string, chosen []scenario, wrong bool, out io.Writer) (*table, error) {
	stop, err := s.prepare(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	t := &table{langs: langs, scenarios: chosen, cells: map[cell]result{}}
	for _, lang := range langs {
		if err := s.build(ctx, "clients/"+lang+"/conformance/build"); err != nil {
			t.broken(lang, err.Error())
		}
	}
	for _, sc := range chosen {
		for _, lang := range langs {
			c := cell{lang, sc.name}
			if _, done := t.cells[c]; done || sc.crowd && lang != langs[0] {
				continue
			}
			r := s.try(ctx, sc, client{name: lang, dir: "clients/" + lang + "/conformance"}, langs)
			for _, l := range langs {
				if l == lang || sc.crowd {
					t.cells[cell{l, sc.name}] = r
				}
			}
			report(out, lang, sc.name, r)
		}
	}
	if wrong {
		s.wrong(ctx, chosen, t, out)
	}
	return t, ctx.Err()
}

func report(out io.Writer, lang, name string, r result) {
	verdict := "ok"
	if r.failure != "" {
		verdict = "FAILED\n    " + strings.ReplaceAll(strings.TrimSpace(r.failure), "\n", "\n    ")
	}
	fmt.Fprintf(out, "%-12s %-12s %6.1f s  %s\n", lang, name, r.took.Seconds(), verdict)
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
	if s.broker, err = localbroker.Start(ctx, localbroker.Config{Dir: filepath.Join(s.tmp, "broker")}); err != nil {
		return nil, err
	}
	return func() {
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		_ = s.broker.Stop(limit)
		_ = os.RemoveAll(s.tmp)
	}, nil
}

func (s *suite) build(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	text, err := exec.CommandContext(ctx, path).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", path, err, text)
	}
	fmt.Fprintf(s.log, "%s\n", text)
	return nil
}
