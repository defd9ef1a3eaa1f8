package view

import (
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// past is the position of a stream at a checkpoint.
type past struct {
	number int64
	at     position
}

// pasts returns the position of a stream at each checkpoint, the newest first.
func (s *Store) pasts(stream string) (all []past, err error) {
	s.write.Lock()
	defer s.write.Unlock()
	for _, p := range s.checkpoints.all {
		at, err := readPosition(snapshot{p.at}, stream)
		if err != nil {
			return nil, err
		}
		all = append([]past{{p.number, at}}, all...)
	}
	return all, nil
}

// rollBack brings the store back to a checkpoint. It calls then before anything else is written.
func (s *Store) rollBack(number int64, then func() error) error {
	s.write.Lock()
	defer s.write.Unlock()
	from, err := s.checkpoints.since(number)
	if err != nil {
		return err
	}
	batch := s.db.NewBatch()
	defer func() { _ = batch.Close() }()
	if err := s.checkpoints.restore(from, batch); err != nil {
		return err
	}
	if err := batch.Commit(pebble.NoSync); err != nil {
		s.ahead = fmt.Errorf("view: commit: %w", err)
		return s.ahead
	}
	if err := s.checkpoints.drop(from); err != nil {
		return fmt.Errorf("view: close a checkpoint: %w", err)
	}
	s.checkpoints.take(time.Now())
	return then()
}
