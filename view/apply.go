package view

import (
	"fmt"

	"github.com/millrace-jobs/millrace/wire"
)

// Apply folds records of one stream and moves its position, in one transaction. guard runs first
// and may refuse. commit runs after the last fold and before the write. It gets the streams that
// must be read again.
//
// When a fold fails, Apply writes nothing more, of any stream, because the fold's memory is ahead
// of the store.
func (s *Store) Apply(fold Fold, stream string, records []wire.Record, guard func() error, commit func(rewound []string)) error {
	return s.Update(func(tx *Tx) (err error) {
		if s.ahead != nil {
			return s.ahead
		}
		if err := guard(); err != nil {
			return err
		}
		defer func() { s.ahead = err }()
		for i := range records {
			if err := fold.Fold(tx, &records[i]); err != nil {
				return fmt.Errorf("view: fold %s@%d: %w", records[i].Stream, records[i].Offset, err)
			}
		}
		if err := fold.Commit(tx); err != nil {
			return err
		}
		if !tx.held[stream] {
			if err := tx.advance(stream, records); err != nil {
				return err
			}
		}
		// After the position, because a fold may rewind the stream that it reads.
		for _, name := range tx.rewound {
			if err := tx.forgetPosition(name); err != nil {
				return err
			}
		}
		commit(tx.rewound)
		return nil
	})
}

// advance moves a stream's position to the end of a batch.
func (tx *Tx) advance(stream string, records []wire.Record) error {
	before, err := tx.Position(stream)
	if err != nil {
		return err
	}
	last := positionOf(&records[len(records)-1])
	if err := tx.setLandmarks(stream, before, &records[0], last); err != nil {
		return err
	}
	return tx.setPosition(stream, last)
}
