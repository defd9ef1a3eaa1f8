package scheduler

import "time"

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
