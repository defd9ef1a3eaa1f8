package metrics

import (
	"encoding/json"
	"fmt"
	"math"

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
