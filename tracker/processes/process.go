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
	Heard  time.Time     // the last of it, by the broker's clock where that tells
	Silent time.Duration // since then
}

// process says how a process is now; ok is false if it has stopped, or was forgotten.
func (p *Processes) process(k *known) (_ Process, ok bool) {
	found := Process{Heartbeat: k.Said, Heard: k.Heard, State: Live}
	found.Silent = max(0, p.now().Sub(k.Heard)-p.skew)
	switch {
	case found.Silent > KeptFor:
		return found, false
	case found.Silent > LostAfter && k.Said.State == wire.StateStopping:
		return found, false // it said so, and did
	case found.Silent > LostAfter:
		found.State = Lost
	case k.Said.State == wire.StateQuiet:
		found.State = Quiet
	case k.Said.State == wire.StateStopping:
		found.State = Stopping
	}
	return found, true
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

// Slots are a queue's consumers, as their processes tell it.
type Slots struct {
	Processes int
	Slots     int64
	Busy      int64 // jobs of the queue that are known to run
}

// Serving tells, by queue without its prefix, which live processes consume it. A process with several queues counts for each.
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
