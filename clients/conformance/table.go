package main

import (
	"fmt"
	"io"
	"time"
)

type cell struct{ lang, scenario string }

// result is how a trial ended.
type result struct {
	failure string // empty: it passed
	took    time.Duration
}

// table has a result for each language and scenario.
type table struct {
	langs     []string
	scenarios []scenario
	cells     map[cell]result
	blind     []string // scenarios that a deliberately wrong worker passed
}

// broken fails all rows of a language that cannot be built.
func (t *table) broken(lang, why string) {
	for _, s := range t.scenarios {
		t.cells[cell{lang, s.name}] = result{failure: why}
	}
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
	for _, b := range t.blind {
		fmt.Fprintln(out, "FAILED:", b)
	}
}
