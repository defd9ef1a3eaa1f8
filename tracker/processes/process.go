package processes

import (
	"maps"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// States of a process.
const (
	Live     = "live"
	Quiet    = "quiet"    // it takes no more jobs
	Stopping = "stopping" // it ends when its jobs have
	Lost     = "lost"     // it was not heard for a minute
)

// Process is a worker process.
type Process struct {
	wire.Heartbeat
	State  string        // as is known of it; Heartbeat.State is what it said
	Heard  time.Time     // the last of it, by the broker's clock if it is known
	Silent time.Duration // since then
}

// Totals are sums over processes.
type Totals struct {
	Processes   int            // not lost
	States      map[string]int // how many are in each
	Concurrency int64          // of those that are not lost
	Busy        int64
	RSSKB       int64
}

// Sum adds processes up.
func Sum(all []Process) Totals {
	t := Totals{States: map[string]int{Live: 0, Quiet: 0, Stopping: 0, Lost: 0}}
	for i := range all {
		t.States[all[i].State]++
		if all[i].State == Lost {
			continue
		}
		t.Processes++
		t.Concurrency += all[i].Concurrency
		t.Busy += all[i].Busy
		t.RSSKB += all[i].RSSKB
	}
	return t
}

// Skews lists the tags of which several versions run, with those.
func Skews(all []Process) map[string][]string {
	seen := map[string]map[string]bool{}
	for i := range all {
		p := &all[i]
		if p.State == Lost || p.Version == "" {
			continue
		}
		if seen[p.Tag] == nil {
			seen[p.Tag] = map[string]bool{}
		}
		seen[p.Tag][p.Version] = true
	}
	skews := map[string][]string{}
	for tag, versions := range seen {
		if len(versions) > 1 {
			skews[tag] = slices.Sorted(maps.Keys(versions))
		}
	}
	return skews
}

// Slots are a queue's consumers, as their processes report them.
type Slots struct {
	Processes int
	Slots     int64
	Busy      int64 // jobs of the queue that are known to run
}

// Serving returns, by queue without its prefix, the live processes that consume it. A process with
// several queues counts for each.
func Serving(all []Process) map[string]Slots {
	found := map[string]Slots{}
	for i := range all {
		p := &all[i]
		if p.State != Live {
			continue
		}
		for queue, slots := range p.slots() {
			s := found[queue]
			s.Processes, s.Slots = s.Processes+1, s.Slots+slots
			found[queue] = s
		}
		for _, w := range p.Work {
			name := wire.QueueName(w.Queue)
			s := found[name]
			s.Busy++
			found[name] = s
		}
	}
	return found
}

// Age is how long a job of a process had run at the last heartbeat, by the worker's own clock; 0
// where the process does not say.
func (p *Process) Age(w *wire.Work) time.Duration {
	if w.StartedAt.IsZero() {
		return 0
	}
	return max(0, p.Beat.Sub(w.StartedAt))
}

// Full describes the workers of a queue while none of their slots is free.
type Full struct {
	Slots int64
	Class string        // of the job that began last
	For   time.Duration // how long that job had run: no slot was free meanwhile. 0 where not every job is known
}

// Saturated returns, by queue without its prefix, those whose live processes have no free slot.
func Saturated(all []Process) map[string]Full {
	found, free := map[string]Full{}, map[string]bool{}
	for i := range all {
		p := &all[i]
		if p.State != Live {
			continue
		}
		for _, l := range p.lanes() {
			full, is := p.full(&l)
			for _, queue := range l.Queues {
				free[queue] = free[queue] || !is
				if known, seen := found[queue]; seen {
					found[queue] = full.join(known)
				} else {
					found[queue] = full
				}
			}
		}
	}
	maps.DeleteFunc(found, func(queue string, _ Full) bool { return free[queue] })
	return found
}

// join is what two groups of slots are together: a slot of either may have become free last.
func (f Full) join(other Full) Full {
	slots := f.Slots + other.Slots
	if other.For < f.For {
		f = other
	}
	f.Slots = slots
	return f
}

// lanes are the slots of a process and the queues that they serve: its lanes, and the whole process
// for the queues that are in none.
func (p *Process) lanes() []wire.Lane {
	var all []wire.Lane
	inLane := map[string]bool{}
	for _, l := range p.Lanes {
		l.Queues = queueNames(l.Queues)
		for _, q := range l.Queues {
			inLane[q] = true
		}
		all = append(all, l)
	}
	rest := slices.DeleteFunc(queueNames(p.Queues), func(q string) bool { return inLane[q] })
	if len(rest) > 0 {
		all = append(all, wire.Lane{Queues: rest, Concurrency: p.Concurrency, Busy: p.Busy})
	}
	return all
}

func queueNames(said []string) []string {
	all := make([]string, len(said))
	for i, q := range said {
		all[i] = wire.QueueName(q)
	}
	return all
}

// full reports whether no slot of a lane is free, and for how long. A lane without a name is the
// whole process.
func (p *Process) full(l *wire.Lane) (f Full, is bool) {
	f.Slots = l.Concurrency
	if l.Concurrency <= 0 || l.Busy < l.Concurrency {
		return f, false
	}
	known := int64(0)
	for i := range p.Work {
		w := &p.Work[i]
		if l.Name != "" && !slices.Contains(l.Queues, wire.QueueName(w.Queue)) {
			continue
		}
		if age := p.Age(w); known == 0 || age < f.For {
			f.Class, f.For = w.Class, age
		}
		known++
	}
	if known < l.Busy {
		f.Class, f.For = "", 0
	}
	return f, true
}

func (p *Process) slots() map[string]int64 {
	found := map[string]int64{}
	for _, l := range p.Lanes {
		for _, q := range l.Queues {
			found[wire.QueueName(q)] += l.Concurrency
		}
	}
	for _, q := range p.Queues {
		if name := wire.QueueName(q); found[name] == 0 {
			found[name] = p.Concurrency
		}
	}
	return found
}
