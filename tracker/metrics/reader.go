package metrics

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Reader reads what was folded, also what is not in the store yet. It is safe for concurrent use.
type Reader struct {
	store *view.Store
	now   func() time.Time
	*memory
}

// Progress returns how far everything is counted.
func (d *Reader) Progress() State {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state
}

// Ask answers a query.
func (d *Reader) Ask(q Query) (Answer, error) {
	p, err := q.plan(d.now().Unix())
	if err != nil {
		return Answer{}, err
	}
	f := newFound(p)
	if err := d.look(&p, true, f.see); err != nil {
		return Answer{}, err
	}
	return f.answer(), nil
}

// look calls see for all rows of a plan. They have sketches only if sketches is set.
func (d *Reader) look(p *plan, sketches bool, see func(start int64, of pair, r *row)) error {
	d.mu.Lock()
	d.sums.visible(func(c cell, r *row) {
		if start := floor(c.minute, p.unit); start >= p.from && start < p.to && p.asks(c.pair) {
			see(start, c.pair, r)
		}
	})
	d.mu.Unlock()
	return scanOf(d.store, p.table, p.from, p.to, sketches, p.asks, see)
}

// Totals returns the counts of the day of a time (UTC), and of all time.
func (d *Reader) Totals(at time.Time) (today, ever Counts, err error) {
	start := floor(at.Unix(), day)
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := d.sums.days[start]; n != nil {
		return n.total, d.sums.total, nil
	}
	err = scan(d.store, tableDay, start, start+1, false, func(_ int64, _ pair, r *row) { today = today.plus(r.outcome()) })
	if err != nil {
		return today, d.sums.total, err
	}
	d.sums.visible(func(c cell, r *row) {
		if floor(c.minute, day) == start {
			today = today.plus(r.outcome())
		}
	})
	return today, d.sums.total, nil
}

// AllTime calls fn for the sums of all time, with failures by error class. There are at most 1,000
// pairs of class and queue, and other.
func (d *Reader) AllTime(fn func(class, queue string, s Sum, errors map[string]int64)) error {
	all := map[pair]*row{}
	d.mu.Lock()
	d.sums.visible(func(c cell, r *row) {
		add(all, d.sums.allTimePair(c.pair), r)
	})
	d.mu.Unlock()
	err := scan(d.store, tableAllTime, 0, 1, true, func(_ int64, p pair, r *row) { add(all, p, r) })
	if err != nil {
		return err
	}
	for p, r := range all {
		fn(orOther(p.class), orOther(p.queue), r.sum(), r.errors)
	}
	return nil
}

// Queues returns the queues with records on the day of a time, without other.
func (d *Reader) Queues(at time.Time) []string {
	start := floor(at.Unix(), day)
	found := map[string]bool{}
	err := scan(d.store, tableDay, start, start+1, false, func(_ int64, p pair, _ *row) { found[p.queue] = true })
	if err != nil {
		return nil // they are only more names
	}
	delete(found, "")
	return slices.Sorted(maps.Keys(found))
}

// Segments returns the roll-ups that are to be published next, at most n.
func (d *Reader) Segments(n int) (all []wire.Rollup, err error) {
	d.mu.Lock()
	next := d.shown.Rolled
	d.mu.Unlock()
	err = table.Scan(d.store, keyStart(tableSegment, next), keyRows(tableSegment+1), false, func(_, value []byte) (bool, error) {
		var r wire.Rollup
		if err := json.Unmarshal(value, &r); err != nil || r.From != next {
			return false, err
		}
		all, next = append(all, r), r.To
		return len(all) < n, nil
	})
	if err != nil {
		return nil, fmt.Errorf("metrics: read pieces: %w", err)
	}
	return all, nil
}
