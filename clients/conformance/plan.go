package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// planned is a trial that is to run.
type planned struct {
	sc      scenario
	c       client
	langs   []string // whose cells of the table it fills
	mistake *mistake // of a client that is wrong on purpose, whose trial has no cell
}

// plan returns all trials in the order of the table.
func plan(langs []string, chosen []scenario) (all []planned) {
	for _, sc := range chosen {
		if sc.crowd {
			all = append(all, planned{sc: sc, c: languageClient(langs[0]), langs: langs})
			continue
		}
		for _, lang := range langs {
			all = append(all, planned{sc: sc, c: languageClient(lang), langs: []string{lang}})
		}
	}
	return all
}

func languageClient(lang string) client {
	return client{name: lang, dir: "clients/" + lang + "/conformance"}
}

// clients returns the clients that take part.
func (p planned) clients() (all []client) {
	if p.mistake != nil {
		return []client{p.c}
	}
	for _, lang := range p.langs {
		all = append(all, languageClient(lang))
	}
	return all
}

// carryOut runs all trials. Several run at a time, because most of their time they wait. Trials of
// all languages together come last, one by one.
func (s *suite) carryOut(ctx context.Context, all []planned, t *table, out io.Writer) {
	last := func(p planned) int {
		if p.sc.crowd {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(all, func(a, b planned) int { return last(a) - last(b) })
	var mu sync.Mutex // for failed and the output
	var failed []failure
	try := func(p planned) {
		r := s.try(ctx, p.sc, p.clients())
		mu.Lock()
		defer mu.Unlock()
		report(out, p, r)
		if p.passes(r) {
			t.note(p, r)
		} else {
			failed = append(failed, failure{p, r})
		}
	}
	several := func(some []planned, limit int) {
		g := new(errgroup.Group)
		g.SetLimit(limit)
		for _, p := range some {
			g.Go(func() error {
				try(p)
				return nil
			})
		}
		_ = g.Wait() // trials have results and no errors
	}
	together := slices.IndexFunc(all, func(p planned) bool { return last(p) > 0 })
	if together < 0 {
		together = len(all)
	}
	var idle, busy []planned
	for _, p := range all[:together] {
		if s.parallel > 1 && p.idle() {
			idle = append(idle, p)
		} else {
			busy = append(busy, p)
		}
	}
	var both sync.WaitGroup
	both.Go(func() { several(idle, idleBeside) })
	several(busy, s.parallel)
	both.Wait()
	several(all[together:], 1)
	for _, f := range failed {
		if s.rerun && len(failed) <= maxAgain {
			fmt.Fprintf(out, "%s %s failed, and is tried once more\n", f.c.name, f.sc.name)
			f.result = s.try(ctx, f.sc, f.clients())
			report(out, f.planned, f.result)
		}
		t.note(f.planned, f.result)
	}
}

// failure is a trial that did not end as it must.
type failure struct {
	planned
	result
}

// maxAgain is the limit of failed trials that are run once more. If more fail, it is not by chance.
const maxAgain = 5

// passes reports whether a trial ended as it must.
func (p planned) passes(r result) bool {
	if p.mistake == nil {
		return r.failure == ""
	}
	_, asItMust := p.mistake.judge(p.c.name, p.sc.name, r)
	return asItMust
}

// idleBeside is how many trials that only wait run beside the others.
const idleBeside = 3

// idle reports whether a trial waits nearly all of its time: until a silent network is noticed, or
// for something that a wrong client does not do.
func (p planned) idle() bool { return p.mistake != nil || p.sc.idle }

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
}

func report(out io.Writer, p planned, r result) {
	verdict := "ok"
	if r.failure != "" {
		verdict = "FAILED\n" + indent(r.failure) + "\n  the programs printed, in the end:\n" + indent(r.said)
	}
	if p.mistake != nil {
		verdict, _ = p.mistake.judge(p.c.name, p.sc.name, r)
	}
	fmt.Fprintf(out, "%-12s %-12s %6.1f s  %s\n", p.c.name, p.sc.name, r.took.Seconds(), verdict)
}
