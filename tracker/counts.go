package tracker

import (
	"encoding/binary"
	"maps"
	"slices"
	"sync"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// The kinds of counts of a stream's pending entries.
const (
	countTotal = 't'
	countQueue = 'q'
	countClass = 'k'

	countExchange = 'x' // delayed messages, by the exchange to which they go

	countDropped = 'd' // dead jobs that a queue dropped
	countBytes   = 'b' // bytes of the records, and not entries
)

type countKey struct {
	stream code
	kind   byte
	name   string
}

// Counts has the numbers of pending entries. They are never lower than the numbers of rows, so a
// reader that has found as many rows as are counted can stop.
type Counts struct {
	mu sync.RWMutex
	n  map[countKey]int64
}

func (c *Counts) of(stream code, kind byte, name string) int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.n[countKey{stream, kind, name}]
}

func (c *Counts) all(stream code, kind byte) map[string]int64 {
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

// Total returns how many entries of a stream are pending.
func (c *Counts) Total(stream string) int64 { return c.of(codes[stream], countTotal, "") }

// Bytes returns the size of the records of a stream's pending entries.
func (c *Counts) Bytes(stream string) int64 { return c.of(codes[stream], countBytes, "") }

// ByQueue counts a stream's pending entries by queue.
func (c *Counts) ByQueue(stream string) map[string]int64 { return c.all(codes[stream], countQueue) }

// InQueue returns how many entries of a stream are pending in a queue.
func (c *Counts) InQueue(stream, queue string) int64 {
	return c.of(codes[stream], countQueue, queue)
}

// OfClass returns how many entries of a stream are pending that have a class.
func (c *Counts) OfClass(stream, class string) int64 {
	return c.of(codes[stream], countClass, class)
}

// ByExchange counts a stream's pending delayed messages by exchange. It leaves out those that have
// no Exchange.
func (c *Counts) ByExchange(stream string) map[string]int64 {
	return c.all(codes[stream], countExchange)
}

// LeasedOf returns how many jobs of a queue are leased.
func (c *Counts) LeasedOf(queue string) int64 { return c.of(leases, countQueue, queue) }

// Dead returns how many dead jobs there are that a queue dropped, or all others.
func (c *Counts) Dead(dropped bool) int64 {
	drops := c.of(codes[wire.DeadJobs], countDropped, "")
	if dropped {
		return drops
	}
	return c.Total(wire.DeadJobs) - drops
}

// Queues returns the queues that have entries which may fire some day.
func (c *Counts) Queues() []string {
	all := c.all(leases, countQueue)
	for _, stream := range []string{wire.ScheduledJobs, wire.Retries, wire.Gated} {
		maps.Copy(all, c.ByQueue(stream))
	}
	return slices.Sorted(maps.Keys(all))
}

// countFold changes the counts, and writes them with the batch that changed them.
type countFold struct {
	*Counts
	batch   table.Batch
	changes map[countKey]int64 // of the batch
}

func loadCounts(r view.Reader) (map[countKey]int64, error) {
	n := map[countKey]int64{}
	err := r.Scan([]byte{tableCount}, table.After([]byte{tableCount}), false, func(key, value []byte) bool {
		n[countKey{code(key[1]), key[2], string(key[3:])}] = int64(binary.BigEndian.Uint64(value))
		return true
	})
	return n, err
}

func (c *countFold) load(r view.Reader) error {
	n, err := loadCounts(r)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n, c.changes, c.batch = n, map[countKey]int64{}, table.Batch{}
	return nil
}

// add counts one pending entry more (by 1) or less (by -1).
func (c *countFold) add(tx *view.Tx, s *Stored, by int64) {
	if c.batch.Begins(tx) {
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
	if exchange, known := s.Exchange(); known {
		c.changes[countKey{stream, countExchange, exchange}] += by
	}
}

// save writes the changes of a batch. Added entries count from now on. Removed entries count until
// the batch is written.
func (c *countFold) save(tx *view.Tx) error {
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

func (c *countFold) show() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, by := range c.changes {
		if c.n[k] += by; c.n[k] == 0 {
			delete(c.n, k)
		}
	}
	clear(c.changes)
	c.batch = table.Batch{}
}
