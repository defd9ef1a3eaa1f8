package tracker

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/millrace-jobs/millrace/wire"
)

// PeriodicJobs are the periodic jobs: their definitions, and the outcomes of their newest ticks.
type PeriodicJobs struct {
	mu      sync.RWMutex
	all     map[string]*wire.PeriodicJob // by name; none is ever changed, only replaced
	version atomic.Int64
	ever    atomic.Bool // there was one
}

// EverPeriodic reports whether there was ever a periodic job.
func (p *PeriodicJobs) EverPeriodic() bool { return p.ever.Load() }

// PeriodicVersion returns a number that changes when anything of the periodic jobs does.
func (p *PeriodicJobs) PeriodicVersion() int64 { return p.version.Load() }

// PeriodicJob returns a periodic job, nil if there is none.
func (p *PeriodicJobs) PeriodicJob(name string) *wire.PeriodicJob {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.all[name]
}

// PeriodicJobs returns all periodic jobs, by name.
func (p *PeriodicJobs) PeriodicJobs() []*wire.PeriodicJob {
	p.mu.RLock()
	all := slices.Collect(maps.Values(p.all))
	p.mu.RUnlock()
	slices.SortFunc(all, func(a, b *wire.PeriodicJob) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// update applies changes; nil removes a job.
func (p *PeriodicJobs) update(changed map[string]*wire.PeriodicJob) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, j := range changed {
		if p.all[name] = j; j == nil {
			delete(p.all, name)
		}
	}
	p.version.Add(1)
}
