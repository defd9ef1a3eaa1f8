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
)

type countKey struct {
	stream code
	kind   byte
	name   string
}

// counts are kept in memory and written with the batch that changed them.
type counts struct {
	mu    sync.RWMutex
	n     map[countKey]int64
	dirty map[countKey]bool
}

func loadCounts(r view.Reader) (*counts, error) {
	c := &counts{n: map[countKey]int64{}, dirty: map[countKey]bool{}}
	err := r.Scan([]byte{tableCount}, after([]byte{tableCount}), false, func(key, value []byte) bool {
		c.n[countKey{code(key[1]), key[2], string(key[3:])}] = int64(binary.BigEndian.Uint64(value))
		return true
	})
	return c, err
}

// entry counts one pending entry more (by 1) or less (by -1).
func (c *counts) entry(s *Stored, by int64) {
	stream := s.listed().stream
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(countKey{stream, countTotal, ""}, by)
	c.add(countKey{stream, countQueue, s.Queue}, by)
	c.add(countKey{stream, countClass, s.Class}, by)
	if s.Dropped {
		c.add(countKey{stream, countDropped, ""}, by)
	}
}

func (c *counts) add(k countKey, by int64) {
	if c.n[k] += by; c.n[k] == 0 {
		delete(c.n, k)
	}
	c.dirty[k] = true
}

func (c *counts) save(tx *view.Tx) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range c.dirty {
		key := keyCount(k.stream, k.kind, k.name)
		n, ok := c.n[k]
		if !ok {
			if err := tx.Delete(key); err != nil {
				return err
			}
			continue
		}
		if err := tx.Set(key, binary.BigEndian.AppendUint64(nil, uint64(n))); err != nil {
			return err
		}
	}
	clear(c.dirty)
	return nil
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
