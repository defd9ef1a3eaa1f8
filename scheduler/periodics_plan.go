package scheduler

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/periodic"
	"github.com/millrace-jobs/millrace/wire"
)

// plan is a periodic job as the leader uses it.
type plan struct {
	job      *wire.PeriodicJob
	def      wire.Periodic
	schedule *periodic.Schedule // nil if the definition is not complete
	next     int64              // the first tick without an outcome
}

func newPlan(j *wire.PeriodicJob) *plan {
	pl := &plan{job: j, next: periodic.Never}
	def, err := j.Definition()
	if err != nil {
		return pl
	}
	if s, err := periodic.New(&def); err == nil {
		pl.def, pl.schedule = def, s
	}
	return pl
}

func sameLayers(a, b *wire.PeriodicJob) bool {
	return maps.EqualFunc(a.Layers, b.Layers, func(a, b wire.DefinedLayer) bool { return bytes.Equal(a.Value, b.Value) })
}

// maxDue is how many ticks of one job are looked at in a round.
const maxDue = 10_000

// dueTicks returns the ticks of a job that are due and have no outcome, the oldest first.
func dueTicks(pl *plan, now int64) (due []int64) {
	for t := pl.next; t <= now && len(due) < maxDue; t = pl.schedule.Undecided(pl.job, t) {
		due = append(due, t)
	}
	return due
}

// missed returns how many of the due ticks, the oldest, are too late to be made up for.
func (pl *plan) missed(now int64, due []int64) int {
	grace := int64(pl.def.GraceTime() / time.Second)
	late, _ := slices.BinarySearch(due, now-grace)
	keep := 0
	switch pl.def.CatchUp {
	case wire.CatchUpLast:
		if late == len(due) {
			keep = 1
		}
	case wire.CatchUpAll:
		keep = cmp.Or(pl.def.CatchUpMax, wire.DefaultCatchUp)
	}
	return max(0, late-keep)
}
