package gate

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

// However what queues take changes, together with limits and jobs: no group waits while all its
// counters have room, none has a counter that is forgotten, and each counts the slots that are held.
func TestQueuesAreBound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt, drawLimits(rt))
		bounds := map[string]Queue{}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			switch rapid.IntRange(0, 6).Draw(rt, "step") {
			case 0, 1:
				g := wire.Group{Queue: fmt.Sprint("q", rapid.IntRange(0, 2).Draw(rt, "queue")), Key: fmt.Sprint(rapid.IntRange(0, 2).Draw(rt, "key"))}
				w.add(g, w.now.Add(time.Duration(rapid.IntRange(-1, 3).Draw(rt, "due"))*100*time.Millisecond))
			case 2:
				if len(w.out) > 0 {
					all := slices.SortedFunc(mapKeys(w.out), func(a, b ledger.EntryID) int { return int(a.Offset - b.Offset) })
					w.end(rapid.SampledFrom(all).Draw(rt, "ends"))
				}
			case 3:
				w.now = w.now.Add(time.Duration(rapid.IntRange(1, 500).Draw(rt, "ms")) * time.Millisecond)
			case 4:
				w.limits = drawLimits(rt)
				w.Define(w.limits)
				w.Sweep(w.now)
			default:
				bounds = drawQueues(rt)
				w.Bound(w.now, bounds)
			}
			w.fire()
			w.checkCounters(rt, bounds)
		}
	})
}

func drawQueues(rt *rapid.T) map[string]Queue {
	all := map[string]Queue{}
	for i := range 3 {
		if rapid.Bool().Draw(rt, "bound") {
			all[fmt.Sprint("q", i)] = Queue{Ahead: rapid.Int64Range(0, 3).Draw(rt, "ahead"), Closed: rapid.IntRange(0, 2).Draw(rt, "closed") == 0,
				Governed: rapid.IntRange(0, 2).Draw(rt, "governed") == 0}
		}
	}
	return all
}

func (w *world) checkCounters(rt *rapid.T, bounds map[string]Queue) {
	used := map[*counter[struct{}]]int64{}
	for _, group := range w.groups {
		room := true
		for _, c := range group.counters {
			used[c] += group.held
			room = room && c.room(w.now)
			if c == w.counters[ofQueue(group.Queue)] {
				require.Equal(rt, bounds[group.Queue].Closed, c.paused)
				require.Equal(rt, bounds[group.Queue].Ahead, c.Concurrency)
			}
			if c.Rate != nil {
				require.True(rt, w.Rated()[group.Queue])
			}
		}
		jobs := w.jobs[group.Group]
		require.False(rt, room && len(jobs) > 0 && !jobs[0].After(w.now), "%v waits for nothing", group.Group)
	}
	known := map[*counter[struct{}]]bool{}
	for id, c := range w.counters {
		known[c] = true
		require.Equal(rt, used[c], c.used, "%v", id)
	}
	for c := range used {
		require.True(rt, known[c], "a counter that is forgotten")
	}
}
