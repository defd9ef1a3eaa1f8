package scheduler

import (
	"time"

	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// instant has the jids of the scheduled jobs that are due at one time. Only these can be the same
// publish. To read them in order takes far less time than to look up each of them, as
// BenchmarkFold shows.
type instant struct {
	at       time.Time
	step     int             // in which it was read last
	last     int64           // the offset up to which it was read
	seen     map[string]bool // the jids
	repeated map[string]bool // those that were seen twice
	unknown  bool            // they are too many, or have changed behind last
}

// maxInstant is how many entries are read: they delay the first of them.
const maxInstant = 50_000

// read reads what the snapshot of this step has of the entries that are due at a time.
func (i *instant) read(entries tracker.Lookup, at time.Time, step int) error {
	if begun := i.unknown || i.seen != nil; !begun || !i.at.Equal(at) {
		*i = instant{at: at, last: -1, seen: map[string]bool{}, repeated: map[string]bool{}}
	}
	if i.unknown || i.step == step {
		return nil
	}
	i.step = step
	return entries.DueAt(wire.ScheduledJobs, at, i.last, func(r tracker.Row) bool {
		i.last = r.Offset
		if i.seen[r.JID] {
			i.repeated[r.JID] = true
		}
		i.seen[r.JID] = true
		i.unknown = len(i.seen) > maxInstant
		return !i.unknown
	})
}

// cameBack notes that entries became pending, the first of them with this key. One that was read
// over, because a fire of it was in doubt, is not in seen.
func (i *instant) cameBack(key tracker.DueKey) {
	if key.At.Before(i.at) || key.At.Equal(i.at) && key.Offset <= i.last {
		i.forget()
	}
}

// forget has the entries looked up one by one.
func (i *instant) forget() { i.unknown, i.seen, i.repeated = true, nil, nil }
