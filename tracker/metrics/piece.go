package metrics

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// A piece ends before the record that would take it beyond these. They decide what a roll-up holds,
// so all sidecars must have the same.
const (
	maxRecords = 65_536
	maxCells   = 8_192
	maxText    = 512 << 10 // bytes of names
)

// piece is the range of offsets that is being counted.
type piece struct {
	From    int64 `json:"from"`
	Day     int64 `json:"day"`     // of its first record
	Records int64 `json:"records"` // in it
	Cells   int64 `json:"cells"`   // minutes × pairs, as they came
	Text    int64 `json:"text"`    // bytes of their names
}

// note counts a record of the piece.
func (m *Metrics) note(c cell) {
	p := &m.state.Piece
	if p.Records == 0 {
		p.Day = floor(c.minute, day)
	}
	p.Records++
	if _, seen := m.cells[c]; !seen {
		m.cells[c] = struct{}{}
		p.Cells++
		p.Text += int64(len(c.class) + len(c.queue))
	}
}

func (m *Metrics) loadPiece() error {
	return m.scan(m.store, tableOpen, math.MinInt64, math.MaxInt64, false, func(start int64, p pair, _ *row) {
		m.cells[cell{start, p}] = struct{}{}
	})
}

func (p *piece) full(newDay int64) bool {
	return p.Records > 0 && (p.Records >= maxRecords || p.Cells >= maxCells || p.Text >= maxText || newDay > p.Day)
}

// cut ends the piece before an offset if it is full.
func (m *Metrics) cut(tx *view.Tx, offset, newDay int64) error {
	p := m.state.Piece
	if !p.full(newDay) {
		return nil
	}
	if err := m.flush(tx); err != nil {
		return err
	}
	if err := m.keepPiece(tx, p.From, offset); err != nil {
		return err
	}
	m.begin(offset)
	return m.save(tx)
}

// begin is a new piece.
func (m *Metrics) begin(from int64) {
	m.state.Piece = piece{From: from}
	clear(m.cells)
}

// keepPiece keeps what a range adds up to until its roll-up is read.
func (m *Metrics) keepPiece(tx *view.Tx, from, to int64) error {
	r := wire.Rollup{Type: wire.TypeRollup, Generation: m.state.Generation, From: from, To: to}
	var fault error
	err := tx.Scan(keyRows(tableOpen), keyRows(tableOpen+1), false, func(key, value []byte) bool {
		var sum *row
		if sum, fault = decodeRow(value, true); fault != nil {
			return false
		}
		r.Rows = append(r.Rows, sum.rollup(startOf(key), pairOf(key)))
		return true
	})
	if err == nil {
		err = fault
	}
	if err != nil {
		return fmt.Errorf("metrics: cut a piece: %w", err)
	}
	if err := m.clearOpen(tx); err != nil {
		return err
	}
	if begun, rolled := m.ahead[to]; rolled && begun == from {
		delete(m.ahead, to)
		m.state.Rolled = to
		return nil
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("metrics: cut a piece: %w", err)
	}
	return tx.Set(keyPiece(from), raw)
}

func (m *Metrics) clearOpen(tx *view.Tx) error {
	for key := range m.cached {
		if key[1] == tableOpen {
			delete(m.cached, key)
		}
	}
	return tx.DeleteRange(keyRows(tableOpen), keyRows(tableOpen+1))
}

// piece reads a piece that was cut.
func (m *Metrics) piece(in view.Reader, from int64) (r wire.Rollup, ok bool, err error) {
	raw, ok, err := in.Get(keyPiece(from))
	if err != nil || !ok {
		return r, false, err
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, false, fmt.Errorf("metrics: piece is damaged: %w", err)
	}
	return r, true, nil
}

// dropPieces forgets all pieces.
func (m *Metrics) dropPieces(tx *view.Tx) error {
	if err := m.clearOpen(tx); err != nil {
		return err
	}
	return tx.DeleteRange(keyRows(tablePiece), keyRows(tablePiece+1))
}

// Pieces gives the roll-ups that are to be published next, at most n, with the offset at which each
// ends.
func (m *Metrics) Pieces(n int) (all []wire.Rollup, err error) {
	m.mu.Lock()
	next := m.shown.Rolled
	m.mu.Unlock()
	var fault error
	err = m.store.Scan(keyPiece(next), keyRows(tablePiece+1), false, func(_, value []byte) bool {
		var r wire.Rollup
		if fault = json.Unmarshal(value, &r); fault != nil || r.From != next {
			return false
		}
		all, next = append(all, r), r.To
		return len(all) < n
	})
	if err == nil {
		err = fault
	}
	if err != nil {
		return nil, fmt.Errorf("metrics: read pieces: %w", err)
	}
	return all, nil
}
