package tracker

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// What is kept of the past: enough to tell what became of an entry that somebody asks for, and to answer a repeated command.
const (
	maxHappened = 100_000
	maxCommands = 20_000
)

// remember keeps what became of the entry with a jid, in place of what was kept before.
func (t *Entries) remember(tx *view.Tx, journal int64, stream code, tag string, h wire.Happened) error {
	value, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("tracker: remember: %w", err)
	}
	return t.rings.keep(tx, tableHistory, journal, keyHappened(stream, tag), value, maxHappened)
}

// answer keeps that a command was carried out.
func (t *Entries) answer(tx *view.Tx, journal int64, command string) error {
	if command == "" {
		return nil
	}
	return t.rings.keep(tx, tableCommands, journal, keyCommand(command), []byte{1}, maxCommands)
}

func keyCommand(id string) []byte { return append([]byte{tableCommand}, id...) }

// rings are tables of the past, each with one of their keys' ages. How large they are is kept in memory, and written with the batch that
// changed it.
type rings struct {
	size    map[byte]ringSize // by the table of ages
	changed map[byte]bool
}

// ringSize is how many keys a ring has, and an age below which it has none: what was forgotten leaves traces in the store that a scan from
// the beginning would step over, each time.
type ringSize struct{ count, from uint64 }

func loadRings(r view.Reader) (*rings, error) {
	all := &rings{map[byte]ringSize{}, map[byte]bool{}}
	for _, index := range []byte{tableHistory, tableCommands, actsSingle, actsMany} {
		size, err := readRing(r, index)
		if err != nil {
			return nil, err
		}
		all.size[index] = size
	}
	return all, nil
}

func readRing(r view.Reader, index byte) (size ringSize, err error) {
	raw, ok, err := r.Get([]byte{tableMeta, index})
	if err != nil || !ok {
		return size, err
	}
	return ringSize{binary.BigEndian.Uint64(raw), binary.BigEndian.Uint64(raw[8:])}, nil
}

func (r *rings) set(index byte, size ringSize) { r.size[index], r.changed[index] = size, true }

func (r *rings) save(tx *view.Tx) error {
	for index := range r.changed {
		raw := binary.BigEndian.AppendUint64(nil, r.size[index].count)
		if err := tx.Set([]byte{tableMeta, index}, binary.BigEndian.AppendUint64(raw, r.size[index].from)); err != nil {
			return err
		}
	}
	clear(r.changed)
	return nil
}

// keep sets key to value, and forgets the oldest of a ring when it has more than limit keys.
func (r *rings) keep(tx *view.Tx, index byte, journal int64, key, value []byte, limit uint64) error {
	age := binary.BigEndian.AppendUint64(nil, uint64(journal))
	if old, ok, err := tx.Get(key); err != nil {
		return err
	} else if ok {
		if err := tx.Delete(append([]byte{index}, old[:8]...)); err != nil {
			return err
		}
	} else if err := r.grow(tx, index, limit); err != nil {
		return err
	}
	if err := tx.Set(key, append(age, value...)); err != nil {
		return err
	}
	return tx.Set(append([]byte{index}, age...), key)
}

// forget takes a key out of a ring.
func (r *rings) forget(tx *view.Tx, index byte, key []byte) error {
	value, ok, err := tx.Get(key)
	if err != nil || !ok {
		return err
	}
	size := r.size[index]
	size.count--
	r.set(index, size)
	return errors.Join(tx.Delete(append([]byte{index}, value[:8]...)), tx.Delete(key))
}

// grow counts one key more, or makes room for it.
func (r *rings) grow(tx *view.Tx, index byte, limit uint64) error {
	size := r.size[index]
	if size.count < limit {
		size.count++
		r.set(index, size)
		return nil
	}
	var oldest, key []byte
	lower := binary.BigEndian.AppendUint64([]byte{index}, size.from)
	err := tx.Scan(lower, after([]byte{index}), false, func(k, v []byte) bool {
		oldest, key = bytes.Clone(k), bytes.Clone(v)
		return false
	})
	if err != nil || oldest == nil {
		return err
	}
	size.from = binary.BigEndian.Uint64(oldest[1:]) + 1
	r.set(index, size)
	return errors.Join(tx.Delete(oldest), tx.Delete(key))
}
