package scheduler

import (
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// Counters count since this process started.
type Counters struct {
	Epochs       int64
	Fired        int64
	Returned     int64
	Refused      int64
	DeadLettered int64
	Commands     int64
	Lost         int64

	CopiesLost int64  // copies in jobs.gated that the broker had confirmed and lost
	FireDelays Delays // how late jobs were fired
	Confirms   Delays // how long the broker took to confirm a publish
	Ticks      TickCounters
	Claims     ClaimCounters
	Decided    DecisionCounters
	SlotsFreed FreedCounters
}

// FreedCounters count slots that were freed although no worker had reported the end.
type FreedCounters struct {
	Gone    int64 // their queues had fewer messages
	Asked   int64 // a user asked for it
	NoQueue int64 // the job found no queue
}

func (f *FreedCounters) add(o *FreedCounters) {
	f.Gone, f.Asked, f.NoQueue = f.Gone+o.Gone, f.Asked+o.Asked, f.NoQueue+o.NoQueue
}

// DecisionCounters count the decisions about unique jobs.
type DecisionCounters struct{ Admitted, Duplicate, Repeated, Replaced int64 }

func (c *DecisionCounters) count(d *wire.Decision) {
	switch d.Outcome {
	case wire.UniqueAdmitted:
		c.Admitted++
		if d.Holder != nil {
			c.Replaced++
		}
	case wire.UniqueDuplicate:
		c.Duplicate++
	case wire.UniqueRepeated:
		c.Repeated++
	}
}

func (c *DecisionCounters) add(other *DecisionCounters) {
	c.Admitted, c.Duplicate = c.Admitted+other.Admitted, c.Duplicate+other.Duplicate
	c.Repeated, c.Replaced = c.Repeated+other.Repeated, c.Replaced+other.Replaced
}

// ClaimCounters count the answers to claims of slots.
type ClaimCounters struct{ Run, Dropped int64 }

func (c *ClaimCounters) count(answer string) {
	if answer == wire.ClaimRun {
		c.Run++
	} else {
		c.Dropped++
	}
}

// TickCounters count the outcomes of ticks of periodic jobs.
type TickCounters struct {
	Made    int64
	Missed  int64  // skipped, because they were too late
	Skipped int64  // for other reasons
	Runs    int64  // jobs that users asked for
	Late    Delays // how late jobs were made
}

func (t *TickCounters) count(tick wire.Tick) {
	n := max(1, tick.Count)
	switch {
	case tick.Outcome == wire.TickMade:
		t.Made += n
	case tick.Outcome == wire.TickRun:
		t.Runs += n
	case tick.Why == wire.WhyMissed:
		t.Missed += n
	case tick.Outcome == wire.TickSkipped:
		t.Skipped += n
	}
}

func (t *TickCounters) add(other *TickCounters) {
	t.Made, t.Missed = t.Made+other.Made, t.Missed+other.Missed
	t.Skipped, t.Runs = t.Skipped+other.Skipped, t.Runs+other.Runs
	t.Late.add(&other.Late)
}

// DelayBounds are the buckets of Delays.
var DelayBounds = [...]time.Duration{
	time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute,
}

// Delays counts times by their length: within each bound and beyond the one before, and beyond all.
type Delays struct {
	Sum    time.Duration
	Counts [len(DelayBounds) + 1]int64
}

// Count is how many there were.
func (d *Delays) Count() (n int64) {
	for _, some := range d.Counts {
		n += some
	}
	return n
}

func (d *Delays) note(took time.Duration) {
	took = max(took, 0)
	i := 0
	for i < len(DelayBounds) && took > DelayBounds[i] {
		i++
	}
	d.Sum += took
	d.Counts[i]++
}

func (d *Delays) add(o *Delays) {
	d.Sum += o.Sum
	for i, n := range o.Counts {
		d.Counts[i] += n
	}
}
