package metrics

import (
	"fmt"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// rollups is the fold over job_metrics_rollups.
type rollups struct {
	*writer
	trusted   map[string]bool // users
	resetting bool            // all streams are read again; the rest of this batch is ignored
}

// fold folds a record of job_metrics_rollups.
func (f *rollups) fold(tx *view.Tx, rec *wire.Record) (string, []byte, error) {
	if !f.trusted[rec.UserID] {
		return fmt.Sprintf("roll-ups are Millrace's own: it came from user %q", wire.ASCII(rec.UserID)), rec.Body, nil
	}
	r, err := wire.ParseRollup(rec.Body)
	if err != nil {
		return err.Error(), rec.Body, nil
	}
	if r.Format > wire.Format {
		return "", nil, fmt.Errorf("%w: a roll-up has format %d, this build knows %d: upgrade this sidecar", view.ErrHalt, r.Format, wire.Format)
	}
	if r.Type == wire.TypeDeploy {
		return "", nil, keepDeploy(tx, &r)
	}
	rows, err := rowsOf(&r)
	if err != nil {
		return err.Error(), rec.Body, nil
	}
	return "", nil, f.take(tx, &r, rows)
}

func rowsOf(r *wire.Rollup) (map[cell]*row, error) {
	rows := make(map[cell]*row, len(r.Rows))
	for i := range r.Rows {
		w := &r.Rows[i]
		c := cell{w.Minute, pair{w.Class, w.Queue}}
		one, err := rowOf(w)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
		if rows[c] != nil || w.Minute%minute != 0 {
			return nil, fmt.Errorf("row %d does not stand for a minute of its own", i)
		}
		rows[c] = one
	}
	return rows, nil
}

// take decides whether a roll-up is new to this view, known, or does not fit.
func (f *rollups) take(tx *view.Tx, r *wire.Rollup, rows map[cell]*row) error {
	switch s := &f.state; {
	case r.Generation < s.Generation, r.Generation == s.Generation && r.To <= s.Rolled:
		return nil
	// The stream was created again, and this view took it for the old one, or does not know yet.
	case r.Generation > s.Generation && s.Raw:
		return f.startOver(tx)
	case r.Generation > s.Generation:
		f.newStream(r.Generation)
		return f.learn(tx, r, rows)
	case r.To <= s.Through:
		return f.acknowledge(tx, r)
	case r.From == s.Through && s.Segment.Records == 0, r.From >= s.Through && !s.Raw:
		return f.learn(tx, r, rows)
	}
	f.pendingRollups[r.To] = r.From // this view is reading these records itself
	return nil
}

// learn counts a roll-up in place of its records.
func (f *rollups) learn(tx *view.Tx, r *wire.Rollup, rows map[cell]*row) error {
	f.runs.skip(rows)
	for c, one := range rows {
		n, err := f.sums.namesOf(tx, floor(c.minute, day))
		if err != nil {
			return err
		}
		n.learn(c.pair, one)
		n.total = n.total.plus(one.outcome())
		f.sums.total = f.sums.total.plus(one.outcome())
	}
	if err := f.flush(tx); err != nil { // the earlier records belong to another segment
		return err
	}
	f.sums.added = rows
	if err := f.flush(tx); err != nil {
		return err
	}
	if err := f.clearOpen(tx); err != nil {
		return err
	}
	f.state.Through, f.state.Rolled = r.To, r.To
	f.newSegment(r.To)
	return f.save(tx)
}

// acknowledge deletes the segment that a roll-up published. If no segment fits, this view has
// divided the records differently, and starts over.
func (f *rollups) acknowledge(tx *view.Tx, r *wire.Rollup) error {
	mine, ok, err := readSegment(tx, r.From)
	if err != nil {
		return err
	}
	if !ok || mine.To != r.To || r.From != f.state.Rolled {
		return f.startOver(tx)
	}
	if err := tx.Delete(keyStart(tableSegment, r.From)); err != nil {
		return err
	}
	f.state.Rolled = r.To
	return f.flush(tx) // the sums must be written together with the state that counts them
}

func (f *rollups) startOver(tx *view.Tx) error {
	f.resetting = true
	return f.reset(tx)
}
