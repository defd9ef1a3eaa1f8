package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// stored is a table as -save writes it: by the name of each row, one value a run.
type stored map[string][]float64

// values returns the value of each run: the ratio to the broker's own figure if there is one,
// because it depends less on the machine.
func (r *row) values() []float64 {
	if len(r.broker) > 0 {
		return r.ratios()
	}
	return r.ours
}

func (t *table) save(path string) error {
	all := stored{}
	for _, r := range t.rows {
		all[r.name] = r.values()
	}
	raw, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(raw, '\n'), 0o644)
}

func load(path string) (all stored, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("%s is no run that -save wrote: %w", path, err)
	}
	return all, nil
}

// errWorse is returned when a row got worse.
var errWorse = errors.New("these figures got worse by more than their own spread")

// compare prints the ratio of each row to the same row of a stored run, and beside it the ratio of
// two runs that were measured in turn with the same build (A/A). It returns errWorse if a row is
// worse than the stored one by more than the values of either vary.
func compare(w io.Writer, before stored, now, again *table) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "\ncompared with the stored run\tnow/then\tA/A\tspread\t\n")
	var worse []string
	for _, r := range now.rows {
		second, then := again.byName[r.name], before[r.name]
		if second == nil || len(then) == 0 || len(r.values()) == 0 {
			continue
		}
		both := slices.Concat(r.values(), second.values())
		change, same := ratioOf(median(both), median(then)), ratioOf(median(r.values()), median(second.values()))
		spread, verdict := max(spreadOf(both), spreadOf(then)), ""
		if r.isWorse(change, spread) {
			verdict, worse = "WORSE", append(worse, r.name)
		}
		fmt.Fprintf(out, "%s\t%.3f\t%.3f\t%.3f\t%s\n", r.name, change, same, spread, verdict)
	}
	if err := out.Flush(); err != nil || len(worse) == 0 {
		return err
	}
	return fmt.Errorf("%w: %s", errWorse, strings.Join(worse, ", "))
}

// isWorse reports whether a change is for the worse, and larger than the spread.
func (r *row) isWorse(change, spread float64) bool {
	if strings.HasSuffix(r.unit(1), "/s") { // of a rate, more is better
		return change < 1/spread
	}
	return change > spread
}

// spreadOf returns by which factor at most the values differ from their median.
func spreadOf(all []float64) float64 {
	middle := median(all)
	return max(ratioOf(slices.Max(all), middle), ratioOf(middle, slices.Min(all)))
}

// ratioOf returns a/b, and 1 if there is nothing to divide by.
func ratioOf(a, b float64) float64 {
	if b == 0 {
		return 1
	}
	return a / b
}
