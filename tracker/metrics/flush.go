package metrics

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/millrace-jobs/millrace/view"
)

const (
	flushEvery = time.Second
	pruneEvery = time.Minute
	maxAdded   = 20_000 // cells in memory
	maxDays    = 16     // days whose names are in memory
	maxCached  = 4096   // rows of the store that are kept decoded
)

// flush writes what was added, to every table it belongs to.
func (m *Metrics) flush(tx *view.Tx) error {
	m.flushing, m.added = m.added, map[cell]*row{}
	if len(m.cached) > maxCached {
		clear(m.cached)
	}
	dirty := map[string]*row{}
	now := m.now().Unix()
	for c, r := range m.flushing {
		if err := m.addTo(tx, dirty, keyRow(tableOpen, c.minute, c.pair), r); err != nil {
			return err
		}
		if err := m.spread(tx, dirty, c, r, now); err != nil {
			return err
		}
	}
	for key, r := range dirty {
		if err := tx.Set([]byte(key), r.encode()); err != nil {
			return err
		}
	}
	m.flushed = m.now()
	if len(m.days) >= maxDays {
		clear(m.days)
	}
	if err := m.flushRuns(tx); err != nil {
		return err
	}
	if err := m.prune(tx); err != nil {
		return err
	}
	tx.AfterCommit(m.written)
	return m.save(tx)
}

func (m *Metrics) written() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.flushing, m.writing, m.runsShown = nil, nil, m.runs
}

// spread adds what happened in a minute to minute, hour, day and all there ever was, as far as
// those are kept.
func (m *Metrics) spread(tx *view.Tx, dirty map[string]*row, c cell, r *row, now int64) error {
	for _, k := range kept {
		p := c.pair
		if k.table == tableEver {
			p = m.everPair(p)
		} else if start := floor(c.minute, k.step); now-start > k.age {
			continue
		}
		if err := m.addTo(tx, dirty, keyRow(k.table, floor(c.minute, k.step), p), r); err != nil {
			return err
		}
	}
	return nil
}

// everPair bounds the pairs that have sums of their own for ever.
func (m *Metrics) everPair(p pair) pair {
	if p != other && !m.ever[p] && len(m.ever) >= maxPairs {
		return other
	}
	if p != other {
		m.ever[p] = true
	}
	return p
}

func (m *Metrics) addTo(tx *view.Tx, dirty map[string]*row, key []byte, r *row) (err error) {
	sum := dirty[string(key)]
	if sum == nil {
		sum = m.cached[string(key)]
	}
	if sum == nil {
		if sum, err = readRow(tx, key); err != nil {
			return err
		}
		m.cached[string(key)] = sum
	}
	dirty[string(key)] = sum
	sum.merge(r)
	return nil
}

func (m *Metrics) save(tx *view.Tx) error {
	raw, err := json.Marshal(m.state)
	if err != nil {
		return fmt.Errorf("metrics: save state: %w", err)
	}
	m.shown = m.state
	return tx.Set(keyRows(tableState), raw)
}

// prune forgets what is older than it is kept.
func (m *Metrics) prune(tx *view.Tx) error {
	if m.flushed.Sub(m.pruned) < pruneEvery {
		return nil
	}
	m.pruned = m.flushed
	for _, k := range kept {
		if k.age == math.MaxInt64 {
			continue
		}
		oldest := floor(m.flushed.Unix()-k.age, k.step)
		if err := tx.DeleteRange(keyRows(k.table), keyStart(k.table, oldest)); err != nil {
			return err
		}
		for key := range m.cached {
			if key[1] == k.table && startOf([]byte(key)) < oldest {
				delete(m.cached, key)
			}
		}
	}
	return nil
}

// scan reads the rows of a table from one start up to another.
func (m *Metrics) scan(in view.Reader, t byte, from, to int64, sketches bool, fn func(start int64, p pair, r *row)) error {
	return m.scanOf(in, t, from, to, sketches, func(pair) bool { return true }, fn)
}

// scanOf is scan for some pairs: to make rows of what is stored is what takes time.
func (m *Metrics) scanOf(in view.Reader, t byte, from, to int64, sketches bool, asks func(p pair) bool, fn func(start int64, p pair, r *row)) error {
	var fault error
	err := in.Scan(keyStart(t, from), keyStart(t, to), false, func(key, value []byte) bool {
		p := pairOf(key)
		if !asks(p) {
			return true
		}
		var r *row
		if r, fault = decodeRow(value, sketches); fault != nil {
			return false
		}
		fn(startOf(key), p, r)
		return true
	})
	if err == nil {
		err = fault
	}
	if err != nil {
		return fmt.Errorf("metrics: read sums: %w", err)
	}
	return nil
}
