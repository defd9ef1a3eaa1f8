package attention

import (
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// Ticks are the ticks of a periodic job that went wrong in the last hour.
type Ticks struct {
	Name       string
	Missed     int64         // too late to be made up for
	Late       time.Duration // of the latest that was made, if that is much
	Incomplete string        // why the job has no ticks
}

const (
	ticksFor = time.Hour
	maxLate  = time.Minute
)

// TicksOf returns what went wrong with the ticks of periodic jobs.
func TicksOf(jobs []*wire.PeriodicJob, now time.Time) (all []Ticks) {
	since := wire.Seconds(now.Add(-ticksFor))
	for _, j := range jobs {
		t := Ticks{Name: j.Name}
		for i := range j.Recent {
			r := &j.Recent[i]
			switch late := time.Duration((r.At - float64(r.Tick)) * float64(time.Second)); {
			case r.At < since:
			case r.Why == wire.WhyMissed:
				t.Missed += max(1, r.Count)
			case r.Outcome == wire.TickMade && late > maxLate:
				t.Late = max(t.Late, late)
			}
		}
		if _, err := j.Definition(); err != nil {
			t.Incomplete = err.Error()
		}
		if t.Missed > 0 || t.Late > 0 || t.Incomplete != "" {
			all = append(all, t)
		}
	}
	return all
}
