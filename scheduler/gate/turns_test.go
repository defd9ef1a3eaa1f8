package gate

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

func TestHeavyKeyHasMoreTurns(t *testing.T) {
	w := newWorld(t, map[string]wire.Limit{"all": {Concurrency: 1}})
	w.Weigh(map[string]map[string]int64{"q": {"big": 3}})
	for range 8 {
		w.add(key("a"), start)
		w.add(key("big"), start)
	}
	got := map[string]int{}
	for range 8 {
		for _, k := range w.fire() {
			got[k]++
		}
		for at := range w.out {
			w.end(at)
		}
	}
	require.Equal(t, map[string]int{"a": 2, "big": 6}, got)
}

// Keys whose jobs always wait have turns as their weights say, at any time, and a key that comes
// has its first turn within a round.
func TestTurnsFollowWeights(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limits := map[string]wire.Limit{}
		if rapid.Bool().Draw(rt, "limited") {
			limits["all"] = wire.Limit{Concurrency: rapid.Int64Range(1, 4).Draw(rt, "concurrency")}
		}
		limits["turn"] = wire.Limit{Concurrency: rapid.Int64Range(1, 3).Draw(rt, "at once")} // each fire must end the turn
		w := newWorld(rt, limits)
		n := rapid.IntRange(2, 5).Draw(rt, "keys")
		weights, groups, total := map[string]int64{}, map[string]float64{}, 0
		jobs := func(k string) {
			classes := rapid.IntRange(1, 2).Draw(rt, "classes")
			groups[k] = float64(classes)
			for c := range classes {
				for range 200 {
					w.add(wire.Group{Queue: "q", Class: fmt.Sprint("C", c), Key: k}, start)
				}
			}
		}
		for i := range n {
			k := fmt.Sprint("k", i)
			weights[k] = rapid.Int64Range(1, 5).Draw(rt, "weight")
			total += int(weights[k])
		}
		w.Weigh(map[string]map[string]int64{"q": weights})
		for i := range n - 1 {
			jobs(fmt.Sprint("k", i))
		}
		served, late := map[string]float64{}, fmt.Sprint("k", n-1)
		comes, since := rapid.IntRange(0, 30).Draw(rt, "comes"), 0
		var atArrival map[string]float64
		for turn := range 80 {
			if turn == comes {
				jobs(late)
				atArrival = map[string]float64{}
				for k, s := range served {
					atArrival[k] = s
				}
			}
			fired := w.fire()
			for _, k := range fired {
				served[k]++
				if turn >= comes && served[late] == 0 {
					since++
				}
			}
			require.LessOrEqual(rt, since, 3*(total+2*n), "the key that came has no turn")
			all := slices.SortedFunc(mapKeys(w.out), func(a, b ledger.EntryID) int { return int(a.Offset - b.Offset) })
			w.end(rapid.SampledFrom(all).Draw(rt, "ends"))
			from := map[string]float64{}
			if turn >= comes {
				from = atArrival
			}
			for i := range n {
				for j := range i {
					a, b := fmt.Sprint("k", i), fmt.Sprint("k", j)
					if turn < comes && a == late {
						continue
					}
					wa, wb := float64(weights[a]), float64(weights[b])
					ahead := (served[a]-from[a])/wa - (served[b]-from[b])/wb
					most := 2*groups[a]/wa + 2*groups[b]/wb + 1e-6
					require.InDelta(rt, 0, ahead, most, "%s and %s: %v with weights %v", a, b, served, weights)
				}
			}
		}
	})
}

// A key that had nothing to do has saved no turns.
func TestIdleKeySavesNoTurns(t *testing.T) {
	w := newWorld(t, map[string]wire.Limit{"all": {Concurrency: 1}})
	for range 100 {
		w.add(key("a"), start)
	}
	next := func() string {
		fired := w.fire()
		for at := range w.out {
			w.end(at)
		}
		require.Len(t, fired, 1)
		return fired[0]
	}
	for range 50 {
		require.Equal(t, "a", next())
	}
	for range 10 {
		w.add(key("b"), start)
	}
	var order []string
	for range 6 {
		order = append(order, next())
	}
	require.Equal(t, []string{"b", "a", "b", "a", "b", "a"}, order)
	w.Sweep(start)
	require.LessOrEqual(t, len(w.turns.next), 2)
}
