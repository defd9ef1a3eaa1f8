package tracker

import (
	"sync/atomic"

	"github.com/millrace-jobs/millrace/wire"
)

// PeriodicJobs are the periodic jobs: their definitions, and the outcomes of their newest ticks.
type PeriodicJobs struct {
	defined definitionsOf[wire.PeriodicJob]
	ever    atomic.Bool // there was one
}

// EverPeriodic reports whether there was ever a periodic job.
func (p *PeriodicJobs) EverPeriodic() bool { return p.ever.Load() }

// PeriodicVersion returns a number that changes when anything of the periodic jobs does.
func (p *PeriodicJobs) PeriodicVersion() int64 { return p.defined.version.Load() }

// PeriodicJob returns a periodic job, nil if there is none.
func (p *PeriodicJobs) PeriodicJob(name string) *wire.PeriodicJob { return p.defined.get(name) }

// PeriodicJobs returns all periodic jobs, by name.
func (p *PeriodicJobs) PeriodicJobs() []*wire.PeriodicJob { return p.defined.list() }
