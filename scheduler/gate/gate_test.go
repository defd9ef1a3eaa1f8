package gate

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/millrace-jobs/millrace/internal/rapidseed"
	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

var start = time.Unix(1_800_000_000, 0)

// world is a gate and the jobs that wait at it.
type world struct {
	*Gate[struct{}]
	t      require.TestingT
	now    time.Time
	limits map[string]wire.Limit
	jobs   map[wire.Group][]time.Time // when each is due, in order
	next   int64
	out    map[ledger.EntryID]wire.Group
	starts map[string][]time.Time // by rate
}

func newWorld(t require.TestingT, limits map[string]wire.Limit) *world {
	w := &world{Gate: New[struct{}](map[string]int64{}), t: t, now: start, limits: limits, jobs: map[wire.Group][]time.Time{},
		out: map[ledger.EntryID]wire.Group{}, starts: map[string][]time.Time{}}
	w.Define(limits)
	return w
}

func (w *world) add(g wire.Group, due time.Time) {
	w.jobs[g] = append(w.jobs[g], due)
	slices.SortFunc(w.jobs[g], time.Time.Compare)
	w.Look(g, due)
}

// fire fires all that may fire now, and returns the groups in the order of their turns.
func (w *world) fire() (fired []string) {
	w.Wake(w.now)
	for g := w.Choose(w.now); g != nil; g = w.Choose(w.now) {
		jobs := w.jobs[g.Group]
		switch {
		case len(jobs) == 0:
			w.Drop(w.now, g)
		case jobs[0].After(w.now):
			w.Sleep(w.now, g, jobs[0])
		default:
			w.jobs[g.Group] = jobs[1:]
			fired = append(fired, g.Key)
			w.begin(g.Group)
			w.Again(w.now, g)
		}
	}
	return fired
}

// begin takes a slot for the next entry.
func (w *world) begin(g wire.Group) {
	w.next++
	at := ledger.ID(wire.Gated, w.next)
	held, used := w.Take(w.now, at, g)
	if held {
		w.out[at] = g
	}
	for _, u := range used {
		w.starts[u.ID] = append(w.starts[u.ID], w.now)
	}
}

func (w *world) end(at ledger.EntryID) {
	w.Free(w.now, at)
	w.Free(w.now, at)
	delete(w.out, at)
}

// count counts the slots of one part of the jobs under a limit.
func (w *world) count(l wire.Limit, part wire.Group) (n int64) {
	for _, g := range w.out {
		if _, p := l.Of(g); l.Covers(g) && p == part {
			n++
		}
	}
	return n
}

func key(k string) wire.Group { return wire.Group{Queue: "q", Class: "C", Key: k} }

func TestConcurrencyPerKey(t *testing.T) {
	w := newWorld(t, map[string]wire.Limit{"each": {Per: []string{wire.PerKey}, Concurrency: 2, Overrides: map[string]wire.Bound{"big": {Concurrency: 3}}}})
	for range 5 {
		w.add(key("a"), start.Add(-3))
		w.add(key("b"), start.Add(-2))
		w.add(key("big"), start.Add(-1))
	}
	require.Equal(t, []string{"a", "b", "big", "a", "b", "big", "big"}, w.fire(), "groups take turns")
	require.Empty(t, w.fire())
	w.end(ledger.ID(wire.Gated, 1))
	require.Equal(t, []string{"a"}, w.fire())
}

func TestGroupsTakeTurnsUnderOneLimit(t *testing.T) {
	w := newWorld(t, map[string]wire.Limit{"all": {Concurrency: 1}})
	for range 3 {
		w.add(key("a"), start.Add(-2))
		w.add(key("b"), start.Add(-1))
	}
	var order []string
	for range 6 {
		order = append(order, w.fire()...)
		for at := range w.out {
			w.end(at)
		}
	}
	require.Equal(t, []string{"a", "b", "a", "b", "a", "b"}, order)
}

func TestBlockedGroupDoesNotBlockOthers(t *testing.T) {
	w := newWorld(t, map[string]wire.Limit{"all": {Concurrency: 2}, "each": {Per: []string{wire.PerKey}, Concurrency: 1}})
	for range 3 {
		w.add(key("a"), start)
	}
	w.add(key("b"), start.Add(1))
	w.now = start.Add(1)
	require.Equal(t, []string{"a", "b"}, w.fire())
}

func TestRateIsSmooth(t *testing.T) {
	w := newWorld(t, map[string]wire.Limit{"rate": {Rate: &wire.Rate{Jobs: 2, Seconds: 1, Burst: 2}}})
	for range 6 {
		w.add(key("a"), start)
	}
	require.Len(t, w.fire(), 2, "a burst")
	require.Equal(t, start.Add(497_500*time.Microsecond), w.NextWake(start.Add(time.Hour)), "5 ms of a second may be caught up")
	w.now = w.now.Add(497_499 * time.Microsecond)
	require.Empty(t, w.fire())
	w.now = w.now.Add(time.Microsecond)
	require.Len(t, w.fire(), 1)
	again := newWorld(t, w.limits)
	again.Gate, again.now = New[struct{}](w.Rates(w.now)), w.now
	again.Define(w.limits)
	again.add(key("a"), start)
	require.Empty(t, again.fire(), "the next leader knows the rate")
}

func TestRateOfClockThatWasAhead(t *testing.T) {
	w := newWorld(t, map[string]wire.Limit{"rate": {Rate: &wire.Rate{Jobs: 1, Seconds: 10}}})
	w.now = start.Add(365 * 24 * time.Hour)
	w.begin(key("a"))
	w.now = start
	w.add(key("a"), start)
	require.Empty(t, w.fire())
	w.now = start.Add(11 * time.Second)
	require.Len(t, w.fire(), 1)
}

func TestClosedQueue(t *testing.T) {
	w := newWorld(t, map[string]wire.Limit{"rate": {Classes: []string{"C"}, Rate: &wire.Rate{Jobs: 100, Seconds: 1, Burst: 100}}})
	plain := wire.Group{Queue: "q", Class: "D"}
	add := func() {
		for range 3 {
			w.add(key("a"), start)
			w.add(plain, start)
		}
	}
	add()
	require.Equal(t, map[string]bool{"q": true}, w.Rated())
	w.Bound(start, map[string]Queue{"q": {Closed: true}})
	require.Equal(t, []string{"", "", ""}, w.fire(), "it holds back what the rate counts")
	w.Bound(start, nil)
	require.Equal(t, []string{"a", "a", "a"}, w.fire())
	require.Empty(t, w.out, "none of them holds a slot")

	add()
	w.Bound(start, map[string]Queue{"q": {Ahead: 4, Governed: true}})
	require.Len(t, w.fire(), 4, "all jobs of a governed queue are counted")
	w.Bound(start, map[string]Queue{"q": {Ahead: 5, Governed: true}})
	require.Len(t, w.fire(), 1)
	w.Bound(start, map[string]Queue{"q": {Ahead: 5, Closed: true, Governed: true}})
	for at := range w.out {
		w.end(at)
	}
	require.Empty(t, w.fire())
	w.Bound(start, nil)
	require.Len(t, w.fire(), 1)
}

func TestPausedLimit(t *testing.T) {
	w := newWorld(t, map[string]wire.Limit{"all": {Concurrency: 1, Paused: true}})
	w.add(key("a"), start)
	require.Empty(t, w.fire())
	w.Define(map[string]wire.Limit{"all": {Concurrency: 1}})
	require.Len(t, w.fire(), 1)
}

func TestLoweredLimitStartsNothing(t *testing.T) {
	w := newWorld(t, map[string]wire.Limit{"all": {Concurrency: 3}})
	for range 5 {
		w.add(key("a"), start)
	}
	require.Len(t, w.fire(), 3)
	w.Define(map[string]wire.Limit{"all": {Concurrency: 1}})
	for i := range int64(2) {
		w.end(ledger.ID(wire.Gated, i+1))
		require.Empty(t, w.fire())
	}
	w.end(ledger.ID(wire.Gated, 3))
	require.Len(t, w.fire(), 1)
}

func drawLimits(rt *rapid.T) map[string]wire.Limit {
	all := map[string]wire.Limit{}
	for i := range rapid.IntRange(0, 3).Draw(rt, "limits") {
		l := wire.Limit{Per: rapid.SampledFrom([][]string{nil, {wire.PerKey}, {wire.PerQueue}, {wire.PerClass, wire.PerKey}}).Draw(rt, "per")}
		l.Queues = rapid.SampledFrom([][]string{nil, {"q0"}, {"q0", "q1"}}).Draw(rt, "queues")
		l.Paused = rapid.IntRange(0, 9).Draw(rt, "paused") == 0
		if l.Concurrency = rapid.Int64Range(0, 3).Draw(rt, "concurrency"); l.Concurrency == 0 || rapid.Bool().Draw(rt, "rated") {
			l.Rate = &wire.Rate{Jobs: rapid.Int64Range(1, 4).Draw(rt, "jobs"), Seconds: 1, Burst: rapid.Int64Range(0, 2).Draw(rt, "burst")}
		}
		all[fmt.Sprint("l", i)] = l
	}
	return all
}

// However jobs come and end, and limits change: no limit counts more than it allows unless it was
// lowered, and no job that is due waits while all its limits have room.
func TestLimitsHold(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt, drawLimits(rt))
		most := map[counterID]int64{} // what was out when a limit was set
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			switch rapid.IntRange(0, 4).Draw(rt, "step") {
			case 0, 1:
				g := wire.Group{Queue: fmt.Sprint("q", rapid.IntRange(0, 2).Draw(rt, "queue")), Class: fmt.Sprint("C", rapid.IntRange(0, 1).Draw(rt, "class")),
					Key: fmt.Sprint(rapid.IntRange(0, 2).Draw(rt, "key"))}
				w.add(g, w.now.Add(time.Duration(rapid.IntRange(-1, 3).Draw(rt, "due"))*100*time.Millisecond))
			case 2:
				if len(w.out) > 0 {
					all := slices.SortedFunc(mapKeys(w.out), func(a, b ledger.EntryID) int { return int(a.Offset - b.Offset) })
					w.end(rapid.SampledFrom(all).Draw(rt, "ends"))
				}
			case 3:
				w.now = w.now.Add(time.Duration(rapid.IntRange(1, 500).Draw(rt, "ms")) * time.Millisecond)
			case 4:
				if rapid.IntRange(0, 3).Draw(rt, "define") == 0 {
					w.limits = drawLimits(rt)
					w.Define(w.limits)
					clear(most)
					for id, c := range w.counters {
						most[id] = c.used
					}
				}
				w.Sweep(w.now)
			}
			w.fire()
			w.check(rt, most)
		}
	})
}

func mapKeys[K comparable, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func (w *world) check(rt *rapid.T, most map[counterID]int64) {
	for g, jobs := range w.jobs {
		room := true
		for name, l := range w.limits {
			if !l.Covers(g) {
				continue
			}
			bound, part := l.Of(g)
			used := w.count(l, part)
			if bound.Concurrency > 0 {
				require.LessOrEqual(rt, used, max(bound.Concurrency, most[counterID{name, part}]), "%s %v", name, part)
				room = room && used < bound.Concurrency
			}
			if bound.Rate != nil {
				starts := w.starts[wire.RateID(name, bound.Rate, part)]
				for i, first := range starts {
					n := 0
					for _, s := range starts[i:] {
						if s.Before(first.Add(time.Second)) {
							n++
						}
					}
					require.LessOrEqual(rt, int64(n), bound.Rate.Jobs+max(bound.Rate.Burst, 1)-1, "%s %v", name, part)
				}
				id := wire.RateID(name, bound.Rate, part)
				free := max(w.rates[id], w.freeOf(counterID{name, part}))
				room = room && free-bound.Rate.Ahead() <= w.now.UnixMicro()
			}
			room = room && !l.Paused
		}
		require.False(rt, room && len(jobs) > 0 && !jobs[0].After(w.now), "%v waits for nothing", g)
	}
}

func (w *world) freeOf(id counterID) int64 {
	if c := w.counters[id]; c != nil {
		return c.free
	}
	return 0
}
