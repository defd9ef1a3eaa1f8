package metrics

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// roll ends the segment before an offset if it is full.
func (w *writer) roll(tx *view.Tx, offset, newDay int64) error {
	p := w.state.Segment
	if !p.full(newDay) {
		return nil
	}
	if err := w.flush(tx); err != nil {
		return err
	}
	if err := w.keepSegment(tx, p.From, offset); err != nil {
		return err
	}
	w.newSegment(offset)
	return w.save(tx)
}

// newSegment begins a segment.
func (w *writer) newSegment(from int64) {
	w.state.Segment = segment{From: from}
	clear(w.cells)
}

// keepSegment stores the sums of a range until its roll-up is read.
func (w *writer) keepSegment(tx *view.Tx, from, to int64) error {
	r := wire.Rollup{Type: wire.TypeRollup, Generation: w.state.Generation, From: from, To: to}
	err := table.Scan(tx, keyRows(tableOpen), keyRows(tableOpen+1), false, func(key, value []byte) (bool, error) {
		sum, err := decodeRow(value, true)
		if err == nil {
			r.Rows = append(r.Rows, sum.rollup(startOf(key), pairOf(key)))
		}
		return true, err
	})
	if err != nil {
		return fmt.Errorf("metrics: cut a piece: %w", err)
	}
	if err := w.clearOpen(tx); err != nil {
		return err
	}
	if begun, rolled := w.pendingRollups[to]; rolled && begun == from {
		delete(w.pendingRollups, to)
		w.state.Rolled = to
		return nil
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("metrics: cut a piece: %w", err)
	}
	return tx.Set(keyStart(tableSegment, from), raw)
}

func (w *writer) clearOpen(tx *view.Tx) error {
	w.sums.uncache(tableOpen, math.MaxInt64)
	return tx.DeleteRange(keyRows(tableOpen), keyRows(tableOpen+1))
}

// dropSegments deletes all segments.
func (w *writer) dropSegments(tx *view.Tx) error {
	if err := w.clearOpen(tx); err != nil {
		return err
	}
	return tx.DeleteRange(keyRows(tableSegment), keyRows(tableSegment+1))
}
