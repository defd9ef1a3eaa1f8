package view

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/klauspost/compress/s2"
)

// A broker may show records that it loses in a failover. LavinMQ shows a stream's records to
// readers before its followers have them, and RabbitMQ confirms records that are not on the disk
// yet. So the store can be rolled back by some seconds. A checkpoint is a snapshot of the store,
// together with the keys that were written after it. The snapshot has what they were before.

const (
	checkpointEvery = 2 * time.Second
	// A store can be rolled back at least this far, unless very much was written.
	checkpointAge   = time.Minute
	checkpointBytes = 16 << 20 // limits the keys that are kept
)

// checkpoints are the checkpoints of a store, the oldest first. The store's write lock guards them.
type checkpoints struct {
	db    *pebble.DB
	every time.Duration // shorter in tests
	all   []*checkpoint
	count int64  // how many were ever taken
	bytes int    // of the keys that are kept
	noted []byte // the keys of the newest checkpoint
}

// checkpoint is the state of the store at one moment.
type checkpoint struct {
	number int64
	taken  time.Time
	at     *pebble.Snapshot
	packed [][]byte // keys that were written after this checkpoint and before the next, compressed
	ranges []keyRange
	bytes  int // of both
}

// keyRange is a range of keys that was deleted.
type keyRange struct{ lower, upper []byte }

// errNoCheckpoint is returned when a checkpoint has been dropped.
var errNoCheckpoint = errors.New("view: the store cannot be rolled back so far")

// take takes a checkpoint if one is due, and drops the oldest ones. It takes none while nothing is
// written: the checkpoints from before an outage of the broker are needed after it.
func (c *checkpoints) take(now time.Time) {
	if c == nil {
		return
	}
	if n := len(c.all); n > 0 {
		newest := c.all[n-1]
		if newest.bytes == 0 || now.Sub(newest.taken) < c.every && newest.bytes < checkpointBytes/4 {
			return
		}
	}
	c.pack()
	c.count++
	c.all = append(c.all, &checkpoint{number: c.count, taken: now, at: c.db.NewSnapshot()})
	for len(c.all) > 2 && (now.Sub(c.all[1].taken) > checkpointAge || c.bytes > checkpointBytes) {
		c.bytes -= c.all[0].bytes
		_ = c.all[0].at.Close()            // fails only if it is closed already
		c.all = slices.Delete(c.all, 0, 1) // and what it kept is free
	}
}

// note keeps the keys of a batch.
func (c *checkpoints) note(batch *pebble.Batch) error {
	if c == nil || len(c.all) == 0 {
		return nil
	}
	newest, before := c.all[len(c.all)-1], len(c.noted)
	for r := batch.Reader(); ; {
		kind, key, value, ok, err := r.Next()
		switch {
		case err != nil:
			return fmt.Errorf("view: read a batch: %w", err)
		case !ok:
			c.grow(newest, len(c.noted)-before)
			return nil
		case kind == pebble.InternalKeyKindRangeDelete:
			newest.ranges = append(newest.ranges, keyRange{bytes.Clone(key), bytes.Clone(value)})
			c.grow(newest, len(key)+len(value))
		default:
			c.noted = append(binary.AppendUvarint(c.noted, uint64(len(key))), key...)
		}
	}
}

func (c *checkpoints) grow(p *checkpoint, by int) {
	p.bytes += by
	c.bytes += by
}

// pack compresses the keys of the newest checkpoint.
func (c *checkpoints) pack() {
	if len(c.noted) == 0 {
		return
	}
	newest, packed := c.all[len(c.all)-1], bytes.Clone(s2.Encode(nil, c.noted)) // in a buffer that is large enough for anything
	newest.packed = append(newest.packed, packed)
	c.grow(newest, len(packed)-len(c.noted))
	c.noted = c.noted[:0]
}

// each calls fn for every key that was written between this checkpoint and the next.
func (p *checkpoint) each(fn func(key []byte) error) error {
	for _, packed := range p.packed {
		keys, err := s2.Decode(nil, packed)
		if err != nil {
			return fmt.Errorf("view: read the keys of a checkpoint: %w", err)
		}
		for len(keys) > 0 {
			size, n := binary.Uvarint(keys)
			keys = keys[n:]
			if err := fn(keys[:size]); err != nil {
				return err
			}
			keys = keys[size:]
		}
	}
	return nil
}

// since returns the index of a checkpoint.
func (c *checkpoints) since(number int64) (int, error) {
	for i, p := range c.all {
		if p.number == number {
			return i, nil
		}
	}
	return 0, errNoCheckpoint
}

// drop closes the checkpoints from index from on.
func (c *checkpoints) drop(from int) error {
	if c == nil {
		return nil
	}
	var errs []error
	for _, p := range c.all[from:] {
		c.bytes -= p.bytes
		errs = append(errs, p.at.Close())
	}
	c.all = c.all[:from]
	return errors.Join(errs...)
}

// restore fills a batch with the writes that bring the store back to a checkpoint.
func (c *checkpoints) restore(from int, batch *pebble.Batch) error {
	c.pack()
	at, done := c.all[from].at, map[string]bool{}
	one := func(key []byte) error {
		if done[string(key)] || bytes.HasPrefix(key, prefixConfirmed) || bytes.Equal(key, keyIdentity) {
			// Confirmed records stay confirmed, and a store that is to be emptied stays so.
			return nil
		}
		done[string(key)] = true
		value, ok, err := get(at, key)
		switch {
		case err != nil:
			return err
		case ok:
			return batch.Set(key, value, nil)
		}
		return batch.Delete(key, nil)
	}
	for _, p := range c.all[from:] {
		if err := p.each(one); err != nil {
			return err
		}
		for _, r := range p.ranges {
			if err := restoreRange(at, r.lower, r.upper, batch); err != nil {
				return err
			}
		}
	}
	return nil
}

func restoreRange(at *pebble.Snapshot, lower, upper []byte, batch *pebble.Batch) error {
	var fault error
	err := scan(at, lower, upper, false, func(key, value []byte) bool {
		fault = batch.Set(key, value, nil)
		return fault == nil
	})
	return errors.Join(err, fault)
}

// snapshot reads a snapshot of the store.
type snapshot struct{ at *pebble.Snapshot }

func (s snapshot) Get(key []byte) ([]byte, bool, error) { return get(s.at, key) }

func (s snapshot) Scan(lower, upper []byte, reverse bool, fn func(key, value []byte) bool) error {
	return scan(s.at, lower, upper, reverse, fn)
}
