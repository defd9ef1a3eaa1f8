package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() { os.Exit(command(os.Args[1:], variants)) }

// command is the program. It returns the exit code.
func command(args []string, all []variant) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	only := flags.String("only", "", "only variants whose names contain one of these `texts`, separated by commas")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if err := run(ctx, all, *only); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		return 1
	}
	return 0
}

var errSurvived = errors.New("not every variant was caught")

// result is the outcome of one variant.
type result struct {
	variant
	verdict string
	caught  bool
	took    time.Duration
}

// run tries the chosen variants on the current tree.
func run(ctx context.Context, all []variant, only string) (err error) {
	var chosen []variant
	for _, v := range all {
		if slices.ContainsFunc(strings.Split(only, ","), func(text string) bool { return strings.Contains(v.name, text) }) {
			chosen = append(chosen, v)
		}
	}
	t, err := copyTree(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.remove()) }()
	if err := sound(ctx, t, chosen); err != nil {
		return err
	}
	var results []result
	good := true
	for _, v := range chosen {
		r := t.try(ctx, v)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		fmt.Fprintf(os.Stderr, "%s: %s (%v)\n", v.name, r.verdict, r.took.Round(time.Second))
		results = append(results, r)
		good = good && r.caught
	}
	print(results)
	if !good {
		return errSurvived
	}
	return nil
}

// sound runs the tests on the unchanged code.
func sound(ctx context.Context, t *tree, all []variant) error {
	done := map[string]bool{}
	for _, v := range all {
		if done[v.test.String()] {
			continue
		}
		done[v.test.String()] = true
		fmt.Fprintf(os.Stderr, "unbroken: %s\n", v.test)
		if out, err := t.test(ctx, v.test); err != nil {
			return fmt.Errorf("%s fails on the code as it is: %w\n%s", v.test, err, out)
		}
	}
	return nil
}

func print(results []result) {
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "variant\twhat is broken\ttest\tverdict\ttook")
	for _, r := range results {
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\n", r.name, r.what, r.test.run, r.verdict, r.took.Round(time.Second))
	}
	_ = out.Flush()
}
