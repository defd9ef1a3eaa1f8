package metrics

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// A segment ends before the record that would take it beyond these limits. They decide what a
// roll-up contains, so all sidecars must have the same ones.
const (
	maxRecords = 65_536
	maxCells   = 8_192
	maxText    = 512 << 10 // bytes of names
)

// segment is the range of offsets that is being counted.
type segment struct {
	From    int64 `json:"from"`
	Day     int64 `json:"day"`     // of its first record
	Records int64 `json:"records"` // in it
	Cells   int64 `json:"cells"`   // minutes × pairs, as they came
	Text    int64 `json:"text"`    // bytes of their names
}

// segments is what the state does not have about segments.
type segments struct {
	cells          map[cell]struct{} // of the segment that is being counted
	pendingRollups map[int64]int64   // roll-ups that were read before their records: end → begin
}

func (s *segments) load(in view.Reader) error {
	return scan(in, tableOpen, math.MinInt64, math.MaxInt64, false, func(start int64, p pair, _ *row) {
		s.cells[cell{start, p}] = struct{}{}
	})
}

// note counts a record of the segment p.
func (s *segments) note(p *segment, c cell) {
	if p.Records == 0 {
		p.Day = floor(c.minute, day)
	}
	p.Records++
	if _, seen := s.cells[c]; !seen {
		s.cells[c] = struct{}{}
		p.Cells++
		p.Text += int64(len(c.class) + len(c.queue))
	}
}

func (p *segment) full(newDay int64) bool {
	return p.Records > 0 && (p.Records >= maxRecords || p.Cells >= maxCells || p.Text >= maxText || newDay > p.Day)
}

// roll ends the segment before an offset if it is full.
func (m *Metrics) roll(tx *view.Tx, offset, newDay int64) error {
	p := m.state.Segment
	if !p.full(newDay) {
		return nil
	}
	if err := m.flush(tx); err != nil {
		return err
	}
	if err := m.keepSegment(tx, p.From, offset); err != nil {
		return err
	}
	m.newSegment(offset)
	return m.save(tx)
}

// newSegment begins a segment.
func (m *Metrics) newSegment(from int64) {
	m.state.Segment = segment{From: from}
	clear(m.cells)
}

// keepSegment stores the sums of a range until its roll-up is read.
func (m *Metrics) keepSegment(tx *view.Tx, from, to int64) error {
	r := wire.Rollup{Type: wire.TypeRollup, Generation: m.state.Generation, From: from, To: to}
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
	if err := m.clearOpen(tx); err != nil {
		return err
	}
	if begun, rolled := m.pendingRollups[to]; rolled && begun == from {
		delete(m.pendingRollups, to)
		m.state.Rolled = to
		return nil
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("metrics: cut a piece: %w", err)
	}
	return tx.Set(keyStart(tableSegment, from), raw)
}

func (m *Metrics) clearOpen(tx *view.Tx) error {
	m.sums.uncache(tableOpen, math.MaxInt64)
	return tx.DeleteRange(keyRows(tableOpen), keyRows(tableOpen+1))
}

// dropSegments deletes all segments.
func (m *Metrics) dropSegments(tx *view.Tx) error {
	if err := m.clearOpen(tx); err != nil {
		return err
	}
	return tx.DeleteRange(keyRows(tableSegment), keyRows(tableSegment+1))
}

// readSegment reads a segment that was closed.
func readSegment(in view.Reader, from int64) (r wire.Rollup, ok bool, err error) {
	raw, ok, err := in.Get(keyStart(tableSegment, from))
	if err != nil || !ok {
		return r, false, err
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, false, fmt.Errorf("metrics: piece is damaged: %w", err)
	}
	return r, true, nil
}
