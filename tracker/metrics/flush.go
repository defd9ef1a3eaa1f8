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

// flush writes the sums and runs that were added, and the state.
func (m *Metrics) flush(tx *view.Tx) error {
	if err := m.sums.flush(tx, m.now().Unix()); err != nil {
		return err
	}
	m.flushed = m.now()
	if err := m.runs.flush(tx, m.now()); err != nil {
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
	m.sums.flushing = nil
	m.runs.written()
}

func (m *Metrics) save(tx *view.Tx) error {
	raw, err := json.Marshal(m.state)
	if err != nil {
		return fmt.Errorf("metrics: save state: %w", err)
	}
	m.shown = m.state
	return tx.Set(keyRows(tableState), raw)
}

// prune deletes sums that are older than their table keeps them.
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
		m.sums.uncache(k.table, oldest)
	}
	return nil
}
