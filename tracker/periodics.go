package tracker

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// periodics writes the periodic jobs. The journal alone says what they are.
type periodics struct {
	*PeriodicJobs
	batch   table.Batch
	changed map[string]*wire.PeriodicJob // in this batch; nil: removed
}

func keyPeriodic(name string) []byte { return append([]byte{tablePeriodic}, name...) }

func (p *periodics) load(r view.Reader) error {
	all, ever := map[string]*wire.PeriodicJob{}, false
	err := table.Scan(r, []byte{tablePeriodic}, table.After([]byte{tablePeriodic}), false, func(key, raw []byte) (bool, error) {
		if ever = true; len(key) == 1 {
			return true, nil
		}
		j := &wire.PeriodicJob{}
		if err := json.Unmarshal(raw, j); err != nil {
			return false, fmt.Errorf("tracker: periodic job is damaged: %w", err)
		}
		all[j.Name] = j
		return true, nil
	})
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all, p.batch, p.changed = all, table.Batch{}, nil
	p.ever.Store(ever)
	p.version.Add(1)
	return nil
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
	p.begin(tx)
	j, changed := p.changed[name]
	if !changed {
		j = p.PeriodicJob(name)
	}
	if j == nil {
		return nil
	}
	return &wire.PeriodicJob{Name: j.Name, Layers: maps.Clone(j.Layers), Through: j.Through, Recent: slices.Clone(j.Recent)}
}

func (p *periodics) begin(tx *view.Tx) {
	if !p.batch.Begins(tx) {
		return
	}
	changed := map[string]*wire.PeriodicJob{}
	p.changed = changed
	tx.AfterCommit(func() {
		if len(changed) > 0 {
			p.update(changed)
		}
		p.batch = table.Batch{}
	})
}

func (p *periodics) set(tx *view.Tx, j *wire.PeriodicJob) error {
	p.begin(tx)
	p.changed[j.Name] = j
	raw, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("tracker: save periodic job: %w", err)
	}
	return tx.Set(keyPeriodic(j.Name), raw)
}

func (p *periodics) remove(tx *view.Tx, name string) error {
	p.begin(tx)
	p.changed[name] = nil
	return tx.Delete(keyPeriodic(name))
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
			job = &wire.PeriodicJob{Name: d.Name, Layers: map[string]wire.DefinedLayer{}}
		}
		if delete(job.Layers, d.Layer); len(d.Value) > 0 {
			job.Layers[d.Layer] = wire.DefinedLayer{Source: d.Source, Value: d.Value, At: j.At, Actor: j.Actor}
		}
		job.Through = max(job.Through, d.Since)
		set := p.set(tx, job)
		if len(job.Layers) == 0 {
			set = p.remove(tx, d.Name)
		}
		if set != nil {
			return set
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
	return p.set(tx, job)
}

// replace takes in some of the jobs, written again at low water.
func (p *periodics) replace(tx *view.Tx, piece *wire.PeriodicPiece) error {
	if piece == nil {
		return nil
	}
	if err := p.noteEver(tx); err != nil {
		return err
	}
	within := func(name string) bool {
		return name > piece.After && (piece.Through == "" || name <= piece.Through)
	}
	p.begin(tx)
	known := map[string]bool{}
	for _, j := range p.PeriodicJobs.PeriodicJobs() {
		known[j.Name] = true
	}
	for name, j := range p.changed {
		known[name] = j != nil
	}
	for name, is := range known {
		if is && within(name) && !slices.ContainsFunc(piece.Jobs, func(j wire.PeriodicJob) bool { return j.Name == name }) {
			if err := p.remove(tx, name); err != nil {
				return err
			}
		}
	}
	for i := range piece.Jobs {
		if err := p.set(tx, &piece.Jobs[i]); err != nil {
			return err
		}
	}
	return nil
}
