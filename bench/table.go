package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// table collects the results of all runs, and prints the medians.
type table struct {
	rows   []*row
	byName map[string]*row
}

// row is one figure.
type row struct {
	name   string
	unit   unit
	target target
	worst  bool // the worst run counts
	ours   []float64
	broker []float64 // empty if the broker has no figure of its own
}

// unit formats a number.
type unit func(float64) string

func millis(seconds float64) string { return fmt.Sprintf("%.2f ms", seconds*1000) }
func perSecond(n float64) string    { return fmt.Sprintf("%.0f/s", n) }
func count(n float64) string        { return fmt.Sprintf("%.0f", n) }
func inSeconds(n float64) string    { return fmt.Sprintf("%.2f s", n) }
func megabytes(n float64) string    { return fmt.Sprintf("%.0f MB", n/1e6) }
func micros(seconds float64) string { return fmt.Sprintf("%.1f µs", seconds*1e6) }
func percent(share float64) string  { return fmt.Sprintf("%.2f %%", 100*share) }

// target is what a figure should reach. ours and ratio are medians. missed returns by how much the
// figure misses the target.
type target struct {
	text   func(unit) string
	missed func(u unit, ours, ratio float64) string
}

var noTarget = target{}

func atMost(limit float64) target {
	return target{
		text: func(u unit) string { return "at most " + u(limit) },
		missed: func(u unit, ours, _ float64) string {
			if ours <= limit {
				return ""
			}
			return "MISSED by " + u(ours-limit)
		},
	}
}

func atLeast(limit float64) target {
	return target{
		text: func(u unit) string { return "at least " + u(limit) },
		missed: func(u unit, ours, _ float64) string {
			if ours >= limit {
				return ""
			}
			return "MISSED by " + u(limit-ours)
		},
	}
}

func ratioAtLeast(limit float64) target {
	return target{
		text: func(unit) string { return fmt.Sprintf("ratio at least %.2f", limit) },
		missed: func(_ unit, _, ratio float64) string {
			if ratio >= limit {
				return ""
			}
			return fmt.Sprintf("MISSED by %.2f", limit-ratio)
		},
	}
}

func ratioAtMost(limit float64) target {
	return target{
		text: func(unit) string { return fmt.Sprintf("ratio at most %.2f", limit) },
		missed: func(_ unit, _, ratio float64) string {
			if ratio <= limit {
				return ""
			}
			return fmt.Sprintf("MISSED by %.2f", ratio-limit)
		},
	}
}

func newTable() *table { return &table{byName: map[string]*row{}} }

// add adds the result of one run: ours, and the broker's own.
func (t *table) add(name string, u unit, goal target, ours, broker float64) {
	r := t.row(name, u, goal)
	r.ours, r.broker = append(r.ours, ours), append(r.broker, broker)
}

// addAlone adds a result without a figure of the broker's own. It returns the results of all runs
// so far.
func (t *table) addAlone(name string, u unit, goal target, ours float64) []float64 {
	r := t.row(name, u, goal)
	r.ours = append(r.ours, ours)
	return r.ours
}

// addWorst adds a result that must hold in every run.
func (t *table) addWorst(name string, u unit, goal target, ours float64) {
	t.addAlone(name, u, goal, ours)
	t.row(name, u, goal).worst = true
}

// row returns the row of a figure. A target may depend on earlier runs: the last one counts.
func (t *table) row(name string, u unit, goal target) *row {
	r := t.byName[name]
	if r == nil {
		r = &row{name: name, unit: u}
		t.byName[name], t.rows = r, append(t.rows, r)
	}
	r.target = goal
	return r
}

func (t *table) print(w io.Writer, about string) {
	fmt.Fprintf(w, "\n%s\n\n", about)
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	title := "runs: 1"
	if runs := t.runs(); runs > 1 {
		title = fmt.Sprintf("median of %d runs (lowest to highest)", runs)
	}
	fmt.Fprintf(out, "%s\tmillrace\tthe broker's own\tratio\ttarget\t\n", title)
	for _, r := range t.rows {
		r.print(out)
	}
	_ = out.Flush()
}

// runs returns the number of runs. An interrupted benchmark has fewer than requested.
func (t *table) runs() (n int) {
	for _, r := range t.rows {
		n = max(n, len(r.ours))
	}
	return n
}

func (r *row) print(w io.Writer) {
	ours, broker, ratio := r.spread(r.ours), "", ""
	value, share := median(r.ours), 0.0
	if r.worst {
		value = slices.Max(r.ours)
		ours = r.unit(value)
	}
	if len(r.broker) > 0 {
		share = r.ratio()
		broker, ratio = r.spread(r.broker), fmt.Sprintf("%.2f", share)
	}
	goal, verdict := "", ""
	if r.target.text != nil {
		goal, verdict = r.target.text(r.unit), "met"
		if missed := r.target.missed(r.unit, value, share); missed != "" {
			verdict = missed
		}
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.name, ours, broker, ratio, goal, verdict)
}

// ratio returns the median of the ratios of all runs. In one run, both figures are from the same
// state of the machine.
func (r *row) ratio() float64 { return median(r.ratios()) }

func (r *row) ratios() []float64 {
	all := make([]float64, len(r.ours))
	for i := range all {
		all[i] = r.ours[i] / r.broker[i]
	}
	return all
}

// spread returns the median, the lowest and the highest value.
func (r *row) spread(all []float64) string {
	if len(all) == 1 {
		return r.unit(all[0])
	}
	return fmt.Sprintf("%s (%s to %s)", r.unit(median(all)), r.unit(slices.Min(all)), r.unit(slices.Max(all)))
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// quantile returns the smallest value that at least a part q of all do not exceed.
func quantile(all []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	at := int(q*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(at, 0), len(sorted)-1)]
}
