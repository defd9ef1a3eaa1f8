package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

type cell struct{ lang, scenario string }

// result is how a trial ended.
type result struct {
	failure string // empty if it passed
	said    string // the end of what its programs printed
	took    time.Duration
}

// table has a result for each language and scenario.
type table struct {
	langs     []string
	scenarios []scenario
	cells     map[cell]result
	blind     []string // wrong clients that did not fail as they must
	examined  []string // wrong clients that failed as they must
}

// note records the result of a trial.
func (t *table) note(p planned, r result) {
	if p.mistake == nil {
		for _, lang := range p.langs {
			t.cells[cell{lang, p.sc.name}] = r
		}
		return
	}
	verdict, asItMust := p.mistake.judge(p.c.name, p.sc.name, r)
	if !asItMust {
		t.blind = append(t.blind, verdict)
		return
	}
	t.examined = append(t.examined, fmt.Sprintf("%s %s %s", p.sc.name, p.c.name, verdict))
}

func (t *table) failed() bool {
	for _, r := range t.cells {
		if r.failure != "" {
			return true
		}
	}
	return len(t.blind) > 0 || len(t.cells) < len(t.langs)*len(t.scenarios)
}

func (t *table) print(out io.Writer) {
	fmt.Fprintf(out, "\n%-12s", "")
	for _, lang := range t.langs {
		fmt.Fprintf(out, " %-11s", lang)
	}
	fmt.Fprintln(out)
	for _, s := range t.scenarios {
		fmt.Fprintf(out, "%-12s", s.name)
		for _, lang := range t.langs {
			r, found := t.cells[cell{lang, s.name}]
			switch {
			case !found:
				fmt.Fprintf(out, " %-11s", "not run")
			case r.failure != "":
				fmt.Fprintf(out, " %-11s", "FAILED")
			default:
				fmt.Fprintf(out, " %-11s", "ok")
			}
		}
		fmt.Fprintln(out)
	}
	slices.Sort(t.examined)
	for _, e := range t.examined {
		fmt.Fprintln(out, e)
	}
	// Once more, because readers of a long log look at its end.
	t.printFailures(out)
	for _, b := range t.blind {
		fmt.Fprintln(out, "FAILED:", b)
	}
}

func (t *table) printFailures(out io.Writer) {
	for _, s := range t.scenarios {
		for _, lang := range t.langs {
			if r := t.cells[cell{lang, s.name}]; r.failure != "" {
				fmt.Fprintf(out, "FAILED: %s %s\n%s\n", lang, s.name, indent(r.failure))
			}
		}
	}
}
