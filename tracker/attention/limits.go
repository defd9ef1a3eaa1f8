package attention

import (
	"time"

	"github.com/millrace-jobs/millrace/tracker/occupancy"
	"github.com/millrace-jobs/millrace/wire"
)

// Limit is what is known of a limit.
type Limit struct {
	Name       string
	Incomplete string // why it holds nothing back
	Paused     bool
	occupancy.Limit
}

// LimitsOf returns what is known of limits.
func LimitsOf(defined []*wire.DefinedLimit, counts *occupancy.Counts) (all []Limit) {
	for _, d := range defined {
		l := Limit{Name: d.Name}
		if def, err := d.Definition(); err != nil {
			l.Incomplete = err.Error()
		} else {
			l.Paused, l.Limit = def.Paused, counts.Of(d.Name, def)
		}
		all = append(all, l)
	}
	return all
}

// limitStallsAfter is for how long no slot of a full part has become free.
const limitStallsAfter = 5 * time.Minute

// Stalled returns the parts of the limit that make no progress, and for how long the worst of them
// does. Such a part is full, jobs wait, and no slot has become free for five minutes, or for longer
// than its jobs usually run. A slot that becomes free is taken by a job that waits, so the newest
// slot says since when none has.
func (l *Limit) Stalled(now time.Time, usual map[string]time.Duration) (worst *occupancy.Part, since time.Duration, parts int) {
	if l.Paused {
		return nil, 0, 0
	}
	for i := range l.Parts {
		p := &l.Parts[i]
		if !p.Full() || p.Waiting == 0 || p.Opens > 0 {
			continue
		}
		held := time.Duration((wire.Seconds(now) - p.Used.Newest) * float64(time.Second))
		if held < max(limitStallsAfter, usual[p.Used.Oldest.Class]) {
			continue
		}
		if parts++; held > since {
			worst, since = p, held
		}
	}
	return worst, since, parts
}
