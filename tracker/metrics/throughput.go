package metrics

import (
	"cmp"
	"slices"
	"time"
)

// Throughput is how many attempts ended in each step of a range of time, by queue.
type Throughput struct {
	From, To time.Time
	Step     time.Duration
	Older    bool          // a part of the range is older than what is kept at this step
	Queues   []QueueCounts // by name, other last
}

// QueueCounts are those of one queue. Other stands for all that are over the bound on names.
type QueueCounts struct {
	Name   string
	Other  bool
	Counts []int64 // of each step
}

// Throughput answers a query with counts alone, which are read in a small part of the time that Ask
// takes.
func (m *Metrics) Throughput(q Query) (Throughput, error) {
	p, err := q.plan(m.now().Unix())
	if err != nil {
		return Throughput{}, err
	}
	queues := map[string][]int64{}
	err = m.look(&p, false, func(start int64, of pair, r *row) {
		countsOf(queues, of.queue, p.steps())[(start-p.from)/p.step] += r.outcome().Count()
	})
	if err != nil {
		return Throughput{}, err
	}
	t := Throughput{From: time.Unix(p.from, 0).UTC(), To: time.Unix(p.to, 0).UTC(), Step: time.Duration(p.step) * time.Second, Older: p.older, Queues: []QueueCounts{}}
	for name, counts := range queues {
		t.Queues = append(t.Queues, QueueCounts{orOther(name), name == "", counts})
	}
	slices.SortFunc(t.Queues, func(a, b QueueCounts) int {
		switch {
		case a.Other:
			return 1
		case b.Other:
			return -1
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return t, nil
}

// countsOf gives where a queue is counted. Over years there may be very many names: those beyond
// the bound of a day are counted as other here too.
func countsOf(queues map[string][]int64, name string, steps int64) []int64 {
	counts, known := queues[name]
	if !known && len(queues) > maxPairs {
		name = other.queue
		counts, known = queues[name]
	}
	if !known {
		counts = make([]int64, steps)
		queues[name] = counts
	}
	return counts
}

// Counted is what ended in a range of time, in all.
type Counted struct {
	From, To time.Time
	First    time.Time // start of the first step in which an attempt ended; zero if none did
	Counts
}

// Count answers a query with its counts in all.
func (m *Metrics) Count(q Query) (c Counted, err error) {
	p, err := q.plan(m.now().Unix())
	if err != nil {
		return c, err
	}
	c.From, c.To = time.Unix(p.from, 0).UTC(), time.Unix(p.to, 0).UTC()
	err = m.look(&p, false, func(start int64, _ pair, r *row) {
		if at := time.Unix(start, 0).UTC(); c.First.IsZero() || at.Before(c.First) {
			c.First = at
		}
		c.Counts = c.plus(r.outcome())
	})
	return c, err
}
