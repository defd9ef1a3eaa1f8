package metrics

import (
	"fmt"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
)

func readRow(r view.Reader, key []byte) (*row, error) {
	raw, ok, err := r.Get(key)
	if err != nil {
		return nil, err
	}
	if !ok {
		return &row{}, nil
	}
	return decodeRow(raw, true)
}

// scan reads the rows of a table from one start up to another.
func scan(in view.Reader, t byte, from, to int64, sketches bool, fn func(start int64, p pair, r *row)) error {
	return scanOf(in, t, from, to, sketches, func(pair) bool { return true }, fn)
}

// scanOf is scan for some pairs. Decoding the rows is what takes time.
func scanOf(in view.Reader, t byte, from, to int64, sketches bool, asks func(p pair) bool, fn func(start int64, p pair, r *row)) error {
	err := table.Scan(in, keyStart(t, from), keyStart(t, to), false, func(key, value []byte) (bool, error) {
		p := pairOf(key)
		if !asks(p) {
			return true, nil
		}
		r, err := decodeRow(value, sketches)
		if err == nil {
			fn(startOf(key), p, r)
		}
		return true, err
	})
	if err != nil {
		return fmt.Errorf("metrics: read sums: %w", err)
	}
	return nil
}
