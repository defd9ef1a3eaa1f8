package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// table has the figures of all peers.
type table struct {
	peers []string
	rows  []*row
}

// row is one figure.
type row struct {
	name   string
	format func(float64) string
	worst  bool // the worst run counts, and not the median
	values map[string][]float64
	notes  map[string]string // in place of a value
}

func perSecond(n float64) string { return fmt.Sprintf("%.0f/s", n) }
func whole(n float64) string     { return fmt.Sprintf("%.0f", n) }
func percent(n float64) string   { return fmt.Sprintf("%.0f %%", 100*n) }

// span formats seconds.
func span(seconds float64) string {
	if seconds < 1 {
		return fmt.Sprintf("%.1f ms", 1000*seconds)
	}
	return fmt.Sprintf("%.1f s", seconds)
}

func (t *table) row(name string, format func(float64) string) *row {
	for _, r := range t.rows {
		if r.name == name {
			return r
		}
	}
	r := &row{name: name, format: format, values: map[string][]float64{}, notes: map[string]string{}}
	t.rows = append(t.rows, r)
	return r
}

func (t *table) add(peer, name string, format func(float64) string, value float64) {
	r := t.row(name, format)
	r.values[peer] = append(r.values[peer], value)
}

// addWorst adds a figure that must hold in every run.
func (t *table) addWorst(peer, name string, format func(float64) string, value float64) {
	t.add(peer, name, format, value)
	t.row(name, format).worst = true
}

// addSpans adds the median and the 99th percentile.
func (t *table) addSpans(peer, name string, all []time.Duration) {
	t.add(peer, name+", p50", span, quantile(all, 0.5).Seconds())
	t.add(peer, name+", p99", span, quantile(all, 0.99).Seconds())
}

func (t *table) note(peer, name, text string) { t.row(name, whole).notes[peer] = text }

// cell returns what the table says of a peer.
func (r *row) cell(peer string) string {
	all := slices.Sorted(slices.Values(r.values[peer]))
	switch {
	case r.notes[peer] != "":
		return r.notes[peer]
	case len(all) == 0:
		return "–"
	case r.worst:
		return r.format(all[len(all)-1])
	}
	return r.format(all[len(all)/2])
}

// print writes the table in Markdown.
func (t *table) print(w io.Writer) {
	fmt.Fprintf(w, "| | %s |\n|---%s|\n", strings.Join(t.peers, " | "), strings.Repeat("|--:", len(t.peers)))
	for _, r := range t.rows {
		cells := make([]string, len(t.peers))
		for i, p := range t.peers {
			cells[i] = r.cell(p)
		}
		fmt.Fprintf(w, "| %s | %s |\n", r.name, strings.Join(cells, " | "))
	}
}
