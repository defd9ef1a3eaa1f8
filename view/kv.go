package view

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// Reader reads a store, a snapshot of it, or a transaction with the store below it.
type Reader interface {
	Get(key []byte) ([]byte, bool, error)
	Scan(lower, upper []byte, reverse bool, fn func(key, value []byte) bool) error
}

func get(r pebble.Reader, key []byte) ([]byte, bool, error) {
	value, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("view: get: %w", err)
	}
	defer closeQuietly(closer)
	return bytes.Clone(value), true, nil
}

func scan(r pebble.Reader, lower, upper []byte, reverse bool, fn func(key, value []byte) bool) error {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return fmt.Errorf("view: scan: %w", err)
	}
	step, ok := it.Next, false
	if reverse {
		step, ok = it.Prev, it.Last()
	} else {
		ok = it.First()
	}
	for ; ok; ok = step() {
		if !fn(it.Key(), it.Value()) {
			break
		}
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return fmt.Errorf("view: scan: %w", err)
	}
	return nil
}

func closeQuietly(c io.Closer) { _ = c.Close() }

var keyIdentity = []byte("\x00identity")
