package tracker

import (
	"encoding/binary"
	"sync"

	"github.com/millrace-jobs/millrace/view"
)

// What is counted of a stream's pending entries.
const (
	countTotal = 't'
	countQueue = 'q'
	countClass = 'k'

	countDropped = 'd' // dead jobs that a queue dropped
	countBytes   = 'b' // bytes of the records, and not entries
)

type countKey struct {
	stream code
	kind   byte
	name   string
}

// counts are kept in memory and written with the batch that changed them. Readers never see fewer than there are rows: who has found as many
// as are counted looks no further.
type counts struct {
	mu sync.RWMutex
	n  map[countKey]int64

	// The fold's own: what its batch changes.
	batch   batch
	changes map[countKey]int64
}

func loadCounts(r view.Reader) (*counts, error) {
	c := &counts{n: map[countKey]int64{}, changes: map[countKey]int64{}}
	err := r.Scan([]byte{tableCount}, after([]byte{tableCount}), false, func(key, value []byte) bool {
		c.n[countKey{code(key[1]), key[2], string(key[3:])}] = int64(binary.BigEndian.Uint64(value))
		return true
	})
	return c, err
}

// entry counts one pending entry more (by 1) or less (by -1).
func (c *counts) entry(tx *view.Tx, s *Stored, by int64) {
	if c.batch.begins(tx) {
		clear(c.changes)
		tx.AfterCommit(c.show)
	}
	stream := s.listed().stream
	c.changes[countKey{stream, countTotal, ""}] += by
	c.changes[countKey{stream, countQueue, s.Queue}] += by
	c.changes[countKey{stream, countClass, s.Class}] += by
	c.changes[countKey{stream, countBytes, ""}] += by * s.Size
	if s.Dropped {
		c.changes[countKey{stream, countDropped, ""}] += by
	}
}

// save writes what the batch changed. What it adds is counted from now on, what it takes away once that is written.
func (c *counts) save(tx *view.Tx) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, by := range c.changes {
		key, n := keyCount(k.stream, k.kind, k.name), c.n[k]+by
		if by > 0 {
			c.n[k] = n
			delete(c.changes, k)
		}
		if n == 0 {
			if err := tx.Delete(key); err != nil {
				return err
			}
			continue
		}
		if err := tx.Set(key, binary.BigEndian.AppendUint64(nil, uint64(n))); err != nil {
			return err
		}
	}
	return nil
}

func (c *counts) show() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, by := range c.changes {
		if c.n[k] += by; c.n[k] == 0 {
			delete(c.n, k)
		}
	}
	clear(c.changes)
	c.batch = batch{}
}

func (c *counts) of(stream code, kind byte, name string) int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.n[countKey{stream, kind, name}]
}

func (c *counts) all(stream code, kind byte) map[string]int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	all := map[string]int64{}
	for k, n := range c.n {
		if k.stream == stream && k.kind == kind {
			all[k.name] = n
		}
	}
	return all
}
