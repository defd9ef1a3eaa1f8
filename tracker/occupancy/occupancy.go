package occupancy

import (
	"cmp"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// Counts are the gated jobs that are due, and the slots that are held, at one time.
type Counts struct {
	More    bool // more jobs wait than were counted
	Waiting int  // jobs of all groups

	kinds map[kind]map[wire.Group]*groupCount
	rates map[string]int64
	now   time.Time
}

// kind is what decides which limits count a job.
type kind struct{ queue, class string }

// Used are the slots that are held.
type Used struct {
	Slots  int
	Oldest *wire.HeldSlot // the one that is held for longest; nil if there is none
	Newest float64        // when the newest one was taken
}

func (u *Used) add(o Used) {
	u.Slots += o.Slots
	u.Newest = max(u.Newest, o.Newest)
	if u.Oldest == nil || o.Oldest != nil && o.Oldest.At < u.Oldest.At {
		u.Oldest = o.Oldest
	}
}

// groupCount is what there is of one group.
type groupCount struct {
	waiting int
	used    Used
}

// New returns Counts of nothing. rates are when the rates are free again that fires have used.
func New(now time.Time, rates map[string]int64) *Counts {
	return &Counts{kinds: map[kind]map[wire.Group]*groupCount{}, rates: rates, now: now}
}

// Wait counts jobs that wait.
func (c *Counts) Wait(g wire.Group, n int) {
	c.of(g).waiting += n
	c.Waiting += n
}

// Hold counts a slot that is held.
func (c *Counts) Hold(h *wire.HeldSlot) { c.of(h.Group).used.add(Used{1, h, h.At}) }

func (c *Counts) of(g wire.Group) *groupCount {
	k := kind{g.Queue, g.Class}
	if c.kinds[k] == nil {
		c.kinds[k] = map[wire.Group]*groupCount{}
	}
	one := c.kinds[k][g]
	if one == nil {
		one = &groupCount{}
		c.kinds[k][g] = one
	}
	return one
}

// Queue is what there is of one queue.
type Queue struct {
	Waiting int
	Used    int // slots that are held
}

// Queues returns what there is of each queue, by name.
func (c *Counts) Queues() map[string]Queue {
	all := map[string]Queue{}
	for k, groups := range c.kinds {
		q := all[k.queue]
		for _, n := range groups {
			q.Waiting, q.Used = q.Waiting+n.waiting, q.Used+n.used.Slots
		}
		all[k.queue] = q
	}
	return all
}

// Limit is what a limit counts.
type Limit struct {
	Parts   []Part // first those with most jobs waiting
	Used    int    // slots that are held
	Waiting int    // jobs that are due
	Blocked int    // of these, the jobs that this limit holds back
	Full    int    // parts without a free slot
	Slots   int64  // that the parts have which have jobs; 0 if the limit has none
}

// Part is a part of the jobs that a limit counts apart from others, such as those of one key.
type Part struct {
	wire.Group
	Concurrency int64 // slots that there are; 0 if the limit has none
	Waiting     int
	Used        Used
	Opens       float64 // when the rate lets the next job begin, if that is not yet
}

// Full reports whether the part has no free slot.
func (p *Part) Full() bool { return p.Concurrency > 0 && int64(p.Used.Slots) >= p.Concurrency }

// compare orders parts: first those with most jobs waiting.
func (p *Part) compare(o *Part) int {
	return cmp.Or(cmp.Compare(o.Waiting, p.Waiting), cmp.Compare(o.Used.Slots, p.Used.Slots), p.Group.Compare(o.Group))
}

// Of returns what a limit counts.
func (c *Counts) Of(name string, def wire.Limit) (l Limit) {
	parts := map[wire.Group]*Part{}
	for k, groups := range c.kinds {
		if !def.Covers(wire.Group{Queue: k.queue, Class: k.class}) {
			continue
		}
		for g, n := range groups {
			bound, of := def.Of(g)
			p := parts[of]
			if p == nil {
				p = &Part{Group: of, Concurrency: bound.Concurrency, Opens: Opens(c.rates, name, bound.Rate, of, c.now)}
				parts[of] = p
			}
			p.Waiting += n.waiting
			p.Used.add(n.used)
		}
	}
	for _, p := range parts {
		l.Used, l.Waiting, l.Slots = l.Used+p.Used.Slots, l.Waiting+p.Waiting, l.Slots+p.Concurrency
		if p.Full() {
			l.Full++
		}
		if def.Paused || p.Full() || p.Opens > 0 {
			l.Blocked += p.Waiting
		}
		l.Parts = append(l.Parts, *p)
	}
	if len(def.Per) == 0 { // it has one part, also without jobs
		l.Slots = def.Concurrency
	}
	slices.SortFunc(l.Parts, func(a, b Part) int { return a.compare(&b) })
	return l
}

// Opens returns when the rate of a part lets the next job begin, 0 if it does now. rates are when
// the rates are free again that fires have used.
func Opens(rates map[string]int64, limit string, r *wire.Rate, part wire.Group, now time.Time) float64 {
	if r == nil {
		return 0
	}
	if opens := float64(rates[wire.RateID(limit, r, part)]-r.Ahead()) / 1e6; opens > wire.Seconds(now) {
		return opens
	}
	return 0
}
