package gate

import (
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

// However late the leader wakes, no time of a rate's length has more starts than the rate allows.
// While jobs wait, a leader that is late by no more than it catches up on loses none.
func TestRateIsKept(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := &wire.Rate{Jobs: rapid.Int64Range(1, 3000).Draw(rt, "jobs"), Seconds: float64(rapid.IntRange(1, 20).Draw(rt, "seconds"))}
		r.Burst = rapid.Int64Range(0, min(r.Jobs, 20)).Draw(rt, "burst")
		catchUp := time.Duration(min(r.Seconds*5e6, 50e6))
		latest := catchUp * time.Duration(rapid.IntRange(1, 4).Draw(rt, "halves")) / 2
		starts, idle := startsUnder(rt, r, latest)
		length := time.Duration(r.Seconds * float64(time.Second))
		for i := range starts {
			n := int64(sort.Search(len(starts)-i, func(j int) bool { return starts[i+j].Sub(starts[i]) >= length }))
			require.LessOrEqual(rt, n, r.Jobs+max(r.Burst, 1)-1, "from %v on", starts[i].Sub(start))
		}
		if took := starts[len(starts)-1].Sub(starts[0]); latest <= catchUp && !idle {
			even := time.Duration(int64(len(starts))*r.Interval()) * time.Microsecond
			require.LessOrEqual(rt, took, even+catchUp, "late wakes are not caught up")
		}
	})
}

// startsUnder fires many jobs under a rate, and wakes late each time. idle reports that at times
// there was no job.
func startsUnder(rt *rapid.T, r *wire.Rate, latest time.Duration) (starts []time.Time, idle bool) {
	g := New[struct{}](map[string]int64{})
	g.Define(map[string]wire.Limit{"rate": {Rate: r}})
	now, pauses := start, rapid.Bool().Draw(rt, "pauses")
	late := rapid.SliceOfN(rapid.SampledFrom([]time.Duration{0, latest / 3, latest}), 1, 20).Draw(rt, "late")
	n := min(max(20, int(3*r.Jobs)), 4000)
	for woken := 0; len(starts) < n; woken++ {
		g.Look(key("a"), now)
		g.Wake(now)
		for c := g.Choose(now); c != nil; c = g.Choose(now) {
			g.Take(now, ledger.ID(wire.Gated, int64(len(starts))), c.Group)
			starts = append(starts, now)
			g.Again(now, c)
		}
		now = g.NextWake(now.Add(time.Hour)).Add(late[woken%len(late)])
		if pauses && woken%50 == 49 {
			idle, now = true, now.Add(time.Duration(r.Seconds*float64(time.Second)))
		}
	}
	return starts, idle
}
