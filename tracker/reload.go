package tracker

import (
	"github.com/millrace-jobs/millrace/view"
)

// load reads from the store what the fold keeps in memory.
func (t *Entries) load() error {
	state, err := loadState(t.store)
	if err != nil {
		return err
	}
	counts, err := loadCounts(t.store)
	if err != nil {
		return err
	}
	operations, err := loadOperations(t.store)
	if err != nil {
		return err
	}
	pauses, err := loadPauses(t.store)
	if err != nil {
		return err
	}
	if t.rings, err = loadRings(t.store); err != nil {
		return err
	}
	if t.tops, err = loadTops(t.store); err != nil {
		return err
	}
	if t.doubts, err = loadDoubts(t.store); err != nil {
		return err
	}
	for s := range names {
		if t.waiting[s], err = firstSettled(t.store, s, minOffset); err != nil {
			return err
		}
	}
	t.state, t.changed = state, false
	t.numbers, t.fresh, t.copies = numbers{}, map[string]Ready{}, nil
	t.counts.replace(counts)
	t.operations.replace(operations)
	t.pauses.replace(pauses)
	t.fronts.forget()
	t.show(state.clone())
	return nil
}

// Reload implements view.Reloader: the store was rolled back.
func (t *Entries) Reload() error {
	if err := t.load(); err != nil {
		return err
	}
	for _, p := range t.parts {
		if r, ok := p.(view.Reloader); ok {
			if err := r.Reload(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *counts) replace(by *counts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n, c.changes, c.batch = by.n, by.changes, batch{}
}

func (o *operations) replace(by *operations) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.shown, o.all, o.dirty = by.shown, by.all, by.dirty
}

func (p *pauses) replace(by *pauses) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = by.all
}

// forget has every list looked through from its very beginning again.
func (f *fronts) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.batch, f.coming = batch{}, nil
	for list := range f.at {
		a := &f.at[list]
		a.key, a.coming, a.came = nil, nil, nil
		if a.looking > 0 { // what they find may not be the first any more
			lower, upper := listBounds(code(list), Cursor{})
			a.came = lower
			if newestFirst(code(list)) {
				a.came = upper
			}
		}
	}
}
