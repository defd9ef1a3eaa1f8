package gate

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

// Gate keeps the groups that have jobs or hold slots, and what the limits count. T is what its user
// keeps of a group that has jobs.
type Gate[T any] struct {
	limits       []limit
	queues       map[string]Queue
	rated        map[string]bool // queues with jobs that a rate counts
	ratedVersion int64           // changes when one is added
	groups       map[wire.Group]*Group[T]
	ready        line[*Group[T]]
	turns        turns
	sleep        timers[*Group[T]]
	counters     map[counterID]*counter[T]
	waiting      timers[*counter[T]]          // counters that wait for their rates
	rates        map[string]int64             // by wire.RateID: what is known of rates that no counter has
	slots        map[ledger.EntryID]*Group[T] // that are held
	parked       map[string][]*Group[T]       // by queue: they wait for their queue
}

// limit is a definition with its name.
type limit struct {
	name string
	wire.Limit
}

// New returns a Gate without limits. rates are when the rates are free again that fires have used.
func New[T any](rates map[string]int64) *Gate[T] {
	return &Gate[T]{groups: map[wire.Group]*Group[T]{}, rated: map[string]bool{}, counters: map[counterID]*counter[T]{}, rates: rates,
		slots: map[ledger.EntryID]*Group[T]{}, parked: map[string][]*Group[T]{}, turns: turns{next: map[sharer]float64{}}}
}

// Weigh sets the weights of keys, by queue. A key that is not in it has the weight 1.
func (g *Gate[T]) Weigh(weights map[string]map[string]int64) { g.turns.weights = weights }

// Rated returns the queues with jobs that a rate counts. The caller only reads it.
func (g *Gate[T]) Rated() map[string]bool { return g.rated }

// RatedVersion returns a number that changes when Rated may have another queue.
func (g *Gate[T]) RatedVersion() int64 { return g.ratedVersion }

// Define sets the limits, by their names. Groups that were blocked are looked at again.
func (g *Gate[T]) Define(all map[string]wire.Limit) {
	g.limits = nil
	for name, l := range all {
		g.limits = append(g.limits, limit{name, l})
	}
	slices.SortFunc(g.limits, func(a, b limit) int { return strings.Compare(a.name, b.name) })
	g.recount()
}

// Bound sets what queues take, by their names.
func (g *Gate[T]) Bound(now time.Time, queues map[string]Queue) {
	before := g.queues
	g.queues = queues
	if !maps.Equal(governed(before), governed(queues)) {
		g.recount()
		return
	}
	for _, all := range []map[string]Queue{before, queues} {
		for name := range all {
			if c := g.counters[ofQueue(name)]; c != nil && before[name] != queues[name] {
				c.Concurrency, c.paused = queues[name].Ahead, queues[name].Closed
				g.admit(now, c)
			}
		}
	}
}

// recount begins to count again, because other jobs are counted.
func (g *Gate[T]) recount() {
	for _, c := range g.counters {
		g.forgetCounter(c)
	}
	g.waiting, g.counters = nil, map[counterID]*counter[T]{}
	clear(g.rated)
	for _, group := range g.groups {
		group.counters = g.countersOf(group.Group)
		for _, c := range group.counters {
			c.used += group.held
		}
	}
	for _, of := range slices.SortedFunc(maps.Keys(g.groups), wire.Group.Compare) {
		if group := g.groups[of]; group.blocked {
			g.makeReady(group)
		}
	}
	clear(g.parked)
}

// Look has a group looked at when a job of it is due.
func (g *Gate[T]) Look(of wire.Group, at time.Time) *Group[T] {
	group := g.group(of)
	switch {
	case group.ready || group.blocked:
	case group.index < 0:
		group.at = at
		g.sleep.push(group)
	case at.Before(group.at):
		group.at = at
		g.sleep.fix(group)
	}
	return group
}

// group returns what is known of a group. If that is nothing, it begins to know it.
func (g *Gate[T]) group(of wire.Group) *Group[T] {
	group := g.groups[of]
	if group == nil {
		of = of.Compact()
		group = &Group[T]{Group: of, turn: turn{timer: asleep}, counters: g.countersOf(of)}
		g.groups[of] = group
	}
	return group
}

// forget forgets a group, unless it has jobs or holds slots.
func (g *Gate[T]) forget(group *Group[T]) {
	if group.held == 0 && !group.ready && !group.blocked && group.index < 0 {
		delete(g.groups, group.Group)
	}
}

// Wake makes those groups ready whose time has come, and those that wait for a rate.
func (g *Gate[T]) Wake(now time.Time) {
	for g.sleep.due(now) {
		g.makeReady(g.sleep.pop())
	}
	for g.waiting.due(now) {
		g.admit(now, g.waiting.pop())
	}
}

// NextWake returns when Wake has something to do, if that is before a time.
func (g *Gate[T]) NextWake(otherwise time.Time) time.Time {
	return g.waiting.first(g.sleep.first(otherwise))
}

func (g *Gate[T]) makeReady(group *Group[T]) {
	group.ready, group.blocked = true, false
	g.turns.assign(&group.place, group.sharer())
	g.ready.push(group)
}

// Ready reports whether a group may be ready to fire.
func (g *Gate[T]) Ready() bool { return len(g.ready) > 0 }

// Choose returns the next group whose limits have room, nil if there is none. One of Again, Sleep,
// Park and Drop is to follow.
func (g *Gate[T]) Choose(now time.Time) *Group[T] {
	for len(g.ready) > 0 {
		group := g.ready.pop()
		if c := group.full(now); c != nil {
			group.ready, group.blocked = false, true
			g.block(c, group)
			g.admitOthers(now, group)
			continue
		}
		return group
	}
	return nil
}

// Again makes a chosen group ready again, behind the others.
func (g *Gate[T]) Again(now time.Time, group *Group[T]) {
	g.turns.use(&group.place)
	g.makeReady(group)
	g.admitOthers(now, group)
}

// First gives a chosen group its turn once more, before all others.
func (g *Gate[T]) First(group *Group[T]) { g.ready.push(group) }

// Sleep has a chosen group sleep until its next job is due.
func (g *Gate[T]) Sleep(now time.Time, group *Group[T], at time.Time) {
	group.ready = false
	g.turns.giveBack(&group.place, group.sharer())
	g.Look(group.Group, at)
	g.admitOthers(now, group)
}

// Drop notes that a chosen group has no jobs now.
func (g *Gate[T]) Drop(now time.Time, group *Group[T]) {
	group.ready, group.State = false, *new(T)
	g.turns.giveBack(&group.place, group.sharer())
	g.forget(group)
	g.admitOthers(now, group)
}

// Park has a chosen group wait until its queue takes jobs.
func (g *Gate[T]) Park(now time.Time, group *Group[T]) {
	group.ready, group.blocked = false, true
	g.parked[group.Queue] = append(g.parked[group.Queue], group)
	g.admitOthers(now, group)
}

// Unpark makes groups ready whose queues take jobs. takes returns how many a queue takes.
func (g *Gate[T]) Unpark(takes func(queue string) int) {
	for _, queue := range slices.Sorted(maps.Keys(g.parked)) {
		groups := g.parked[queue]
		n := min(takes(queue), len(groups))
		for _, group := range groups[:n] {
			g.makeReady(group)
		}
		if g.parked[queue] = groups[n:]; n == len(groups) {
			delete(g.parked, queue)
		}
	}
}

// admitOthers lets others use the room that a group has left.
func (g *Gate[T]) admitOthers(now time.Time, group *Group[T]) {
	for _, c := range group.counters {
		g.admit(now, c)
	}
}

// Sweep forgets counters that count nothing.
func (g *Gate[T]) Sweep(now time.Time) {
	g.turns.sweep()
	clear(g.rated)
	used := map[*counter[T]]bool{}
	for _, group := range g.groups {
		for _, c := range group.counters {
			used[c] = true
			g.noteRate(c, group.Group)
		}
	}
	for id, c := range g.counters {
		if !used[c] && c.used == 0 && c.free <= now.UnixMicro() && c.index < 0 {
			delete(g.counters, id)
		}
	}
	for id, free := range g.rates {
		if free <= now.UnixMicro() {
			delete(g.rates, id)
		}
	}
}

// countersOf returns the counters that count the jobs of a group. It makes those that are missing.
func (g *Gate[T]) countersOf(of wire.Group) (all []*counter[T]) {
	rated := false
	for i := range g.limits {
		l := &g.limits[i]
		if !l.Covers(of) {
			continue
		}
		bound, part := l.Of(of)
		c := g.counter(counterID{l.name, part}, bound, l.Paused)
		rated = g.noteRate(c, of) || rated
		all = append(all, c)
	}
	if q := g.queues[of.Queue]; q.Governed || rated {
		all = append(all, g.counter(ofQueue(of.Queue), wire.Bound{Concurrency: q.Ahead}, q.Closed))
	}
	return all
}

// noteRate notes the queue of a group if a counter has a rate, and reports whether it has one.
func (g *Gate[T]) noteRate(c *counter[T], of wire.Group) bool {
	if c.Rate == nil {
		return false
	}
	if !g.rated[of.Queue] {
		g.rated[of.Queue] = true
		g.ratedVersion++
	}
	return true
}

// counter returns a counter. If it is missing, it is made.
func (g *Gate[T]) counter(id counterID, bound wire.Bound, paused bool) *counter[T] {
	c := g.counters[id]
	if c == nil {
		c = &counter[T]{Bound: bound, paused: paused, timer: asleep}
		if bound.Rate != nil {
			c.rateID = wire.RateID(id.name, bound.Rate, id.part)
			c.free = g.rates[c.rateID]
		}
		g.counters[id] = c
	}
	return c
}

// forgetCounter keeps what is known of the counter's rate.
func (g *Gate[T]) forgetCounter(c *counter[T]) {
	if c.rateID != "" {
		g.rates[c.rateID] = c.free
	}
}

// block has a group wait at a counter.
func (g *Gate[T]) block(c *counter[T], group *Group[T]) {
	c.groups.push(group)
	g.awaitRate(c)
}

// awaitRate has a counter wake when its rate has room, if that is what is missing.
func (g *Gate[T]) awaitRate(c *counter[T]) {
	if c.index >= 0 || len(c.groups) == 0 || c.paused || c.Rate == nil || c.Concurrency > 0 && c.used >= c.Concurrency {
		return
	}
	c.at = c.opens()
	g.waiting.push(c)
}

// admit makes the first group ready that waits at a counter with room.
func (g *Gate[T]) admit(now time.Time, c *counter[T]) {
	if len(c.groups) == 0 {
		return
	}
	if !c.room(now) {
		g.awaitRate(c)
		return
	}
	g.makeReady(c.groups.pop())
}

// Take counts a job of a group that is fired. It reports whether the job holds a slot, and which
// rates it has used. A job that holds a slot keeps it. A person may fire a job although there is no
// room.
func (g *Gate[T]) Take(now time.Time, entry ledger.EntryID, of wire.Group) (held bool, used []wire.RateUse) {
	group, again := g.group(of), g.slots[entry] != nil
	for _, c := range group.counters {
		held = held || c.Concurrency > 0
		if c.Rate != nil && !again {
			c.free = max(c.free, now.UnixMicro()) + c.Rate.Interval()
			used = append(used, wire.RateUse{ID: c.rateID, Free: c.free})
		}
	}
	if held {
		g.Hold(entry, of)
	}
	g.forget(group)
	return held, used
}

// Hold notes that an entry holds a slot.
func (g *Gate[T]) Hold(entry ledger.EntryID, of wire.Group) {
	if g.slots[entry] != nil {
		return
	}
	group := g.group(of)
	g.slots[entry] = group
	group.held++
	for _, c := range group.counters {
		c.used++
	}
}

// Free frees the slot of an entry, if it holds one.
func (g *Gate[T]) Free(now time.Time, entry ledger.EntryID) {
	group := g.slots[entry]
	if group == nil {
		return
	}
	delete(g.slots, entry)
	group.held--
	for _, c := range group.counters {
		c.used--
		g.admit(now, c)
	}
	g.forget(group)
}

// Held returns how many slots are held.
func (g *Gate[T]) Held() int { return len(g.slots) }

// Rates returns when the rates are free again that fires have used, by their ids, without those
// that are free now.
func (g *Gate[T]) Rates(now time.Time) map[string]int64 {
	all := map[string]int64{}
	for _, c := range g.counters {
		g.forgetCounter(c)
	}
	for id, free := range g.rates {
		if free > now.UnixMicro() {
			all[id] = free
		}
	}
	return all
}
