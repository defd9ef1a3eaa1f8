package metrics

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

const (
	flushEvery = time.Second
	pruneEvery = time.Minute
)

// folded are the streams that are folded.
var folded = []string{wire.JobMetrics, wire.Rollups}

// writer counts, and writes what it counted to the store.
type writer struct {
	now func() time.Time
	*memory
	segments
	flushed time.Time
	pruned  time.Time
}

// flush writes the sums and runs that were added, and the state.
func (w *writer) flush(tx *view.Tx) error {
	if err := w.sums.flush(tx, w.now().Unix()); err != nil {
		return err
	}
	w.flushed = w.now()
	if err := w.runs.flush(tx, w.now()); err != nil {
		return err
	}
	if err := w.prune(tx); err != nil {
		return err
	}
	tx.AfterCommit(w.written)
	return w.save(tx)
}

func (w *writer) written() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sums.flushing = nil
	w.runs.written()
}

func (w *writer) save(tx *view.Tx) error {
	raw, err := json.Marshal(w.state)
	if err != nil {
		return fmt.Errorf("metrics: save state: %w", err)
	}
	w.shown = w.state
	return tx.Set(keyRows(tableState), raw)
}

// prune deletes sums that are older than their table keeps them.
func (w *writer) prune(tx *view.Tx) error {
	if w.flushed.Sub(w.pruned) < pruneEvery {
		return nil
	}
	w.pruned = w.flushed
	for _, k := range kept {
		if k.age == math.MaxInt64 {
			continue
		}
		oldest := floor(w.flushed.Unix()-k.age, k.step)
		if err := tx.DeleteRange(keyRows(k.table), keyStart(k.table, oldest)); err != nil {
			return err
		}
		w.sums.uncache(k.table, oldest)
	}
	return nil
}

// clear empties the memory.
func (w *writer) clear() {
	w.state, w.shown = State{}, State{}
	w.sums, w.segments = newSums(), segments{cells: map[cell]struct{}{}, pendingRollups: map[int64]int64{}}
	w.runs = runLog{bounds: w.runs.bounds}
	w.flushed = time.Time{}
}

// newStream begins with a stream of which nothing was counted.
func (w *writer) newStream(generation int64) {
	w.state = State{Generation: generation}
	clear(w.cells)
	clear(w.pendingRollups)
}

// reset deletes everything, and rewinds both streams.
func (w *writer) reset(tx *view.Tx) error {
	w.clear()
	if err := tx.DeleteRange([]byte{prefix}, []byte{prefix + 1}); err != nil {
		return err
	}
	for _, stream := range folded {
		if err := tx.Rewind(stream); err != nil {
			return err
		}
	}
	return nil
}
