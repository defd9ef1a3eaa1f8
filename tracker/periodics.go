package tracker

import (
	"maps"
	"slices"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// periodics writes the periodic jobs.
type periodics struct {
	*PeriodicJobs
	jobs definedTable[wire.PeriodicJob]
}

func newPeriodics(p *PeriodicJobs) *periodics {
	return &periodics{p, definedTable[wire.PeriodicJob]{kept: &p.defined, prefix: tablePeriodic, word: "periodic job"}}
}

func (p *periodics) load(r view.Reader) error {
	ever, err := p.jobs.load(r)
	p.ever.Store(ever)
	return err
}

// noteEver notes that there was a periodic job. A row without a name says so.
func (p *periodics) noteEver(tx *view.Tx) error {
	if p.ever.Load() {
		return nil
	}
	tx.AfterCommit(func() { p.ever.Store(true) })
	return tx.Set([]byte{tablePeriodic}, nil)
}

// get returns a copy of a job that may be changed, nil if there is none.
func (p *periodics) get(tx *view.Tx, name string) *wire.PeriodicJob {
	j := p.jobs.get(tx, name)
	if j == nil {
		return nil
	}
	return &wire.PeriodicJob{Name: j.Name, Layers: maps.Clone(j.Layers), Through: j.Through, Recent: slices.Clone(j.Recent)}
}

// define takes in layers that were set or removed.
func (p *periodics) define(tx *view.Tx, j *wire.JournalRecord) error {
	if err := p.noteEver(tx); err != nil {
		return err
	}
	for _, d := range j.Defined {
		if d.Kind != wire.KindPeriodic {
			continue
		}
		job := p.get(tx, d.Name)
		if job == nil {
			job = &wire.PeriodicJob{Name: d.Name}
		}
		job.Layers = withLayer(job.Layers, &d, j)
		job.Through = max(job.Through, d.Since)
		if len(job.Layers) == 0 {
			job = nil
		}
		if err := p.jobs.set(tx, d.Name, job); err != nil {
			return err
		}
	}
	return nil
}

// maxTicks is how many outcomes a job keeps. The journal has the others.
const maxTicks = 50

// tick takes in an outcome.
func (p *periodics) tick(tx *view.Tx, t wire.Tick, at float64, actor string) error {
	job := p.get(tx, t.Periodic)
	if job == nil { // it was removed meanwhile
		return nil
	}
	t.Periodic, t.At, t.Actor = "", at, actor
	switch {
	case t.Outcome == wire.TickVoid:
		job.Through = min(job.Through, t.Tick)
		job.Recent = slices.DeleteFunc(job.Recent, func(r wire.Tick) bool {
			return r.Tick > t.Tick && r.Outcome == wire.TickSkipped && r.Why != wire.WhyAsked
		})
	case t.IsTick() && t.Why != wire.WhyAsked:
		job.Through = max(job.Through, t.Tick)
	}
	job.Recent = append(job.Recent, t)
	slices.SortStableFunc(job.Recent, func(a, b wire.Tick) int { return int(a.Tick - b.Tick) })
	if n := len(job.Recent) - maxTicks; n > 0 {
		job.Recent = slices.Delete(job.Recent, 0, n)
	}
	return p.jobs.set(tx, job.Name, job)
}

// replace takes in some of the jobs, written again at low water.
func (p *periodics) replace(tx *view.Tx, piece *wire.PeriodicPiece) error {
	if piece == nil {
		return nil
	}
	if err := p.noteEver(tx); err != nil {
		return err
	}
	all := map[string]*wire.PeriodicJob{}
	for i := range piece.Jobs {
		all[piece.Jobs[i].Name] = &piece.Jobs[i]
	}
	return p.jobs.replace(tx, all, func(name string) bool {
		return name > piece.After && (piece.Through == "" || name <= piece.Through)
	})
}
