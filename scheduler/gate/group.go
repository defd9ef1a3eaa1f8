package gate

import (
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// Group is a group that has jobs, as far as it is known, or holds slots.
type Group[T any] struct {
	wire.Group
	State T // its user's
	turn
	counters []*counter[T]
	held     int64 // slots
}

// turn is when it is a group's turn.
type turn struct {
	timer
	place
	ready   bool // it is ready, or chosen
	blocked bool // it waits for a counter or for its queue
}

func (group *Group[T]) sharer() sharer { return sharer{group.Queue, group.Key} }

// full returns the first counter without room, nil if all have some.
func (group *Group[T]) full(now time.Time) *counter[T] {
	for _, c := range group.counters {
		if !c.room(now) {
			return c
		}
	}
	return nil
}

// counterID names a counter: a limit, and the part of the jobs that it counts apart from others.
// The counter of a queue has an empty name.
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
