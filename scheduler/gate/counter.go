package gate

import (
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// counterID names a counter: a limit, and the part of the jobs that it counts apart from others.
// What a queue may have ahead has no name.
type counterID struct {
	name string
	part wire.Group
}

func ofQueue(name string) counterID { return counterID{part: wire.Group{Queue: name}} }

// counter is what one limit counts of one part of the jobs.
type counter[T any] struct {
	wire.Bound
	paused bool
	used   int64           // slots
	rateID string          // empty: there is no rate
	free   int64           // when the rate is free again, in microseconds since 1970
	groups line[*Group[T]] // that wait here
	timer                  // while some wait for its rate
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
	g.rated[of.Queue] = true
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

// room reports whether one more job may fire.
func (c *counter[T]) room(now time.Time) bool {
	switch {
	case c.paused, c.Concurrency > 0 && c.used >= c.Concurrency:
		return false
	case c.Rate == nil:
		return true
	}
	// What a rate owes beyond its burst and one job comes from a clock that was ahead.
	c.free = min(c.free, now.UnixMicro()+c.Rate.Ahead()+c.Rate.Interval())
	return !c.opens().After(now)
}

// opens returns when the rate lets the next job fire.
func (c *counter[T]) opens() time.Time { return time.UnixMicro(c.free - c.Rate.Ahead()) }

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
