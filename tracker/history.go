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
// changed it; so are the ages: every fire asks for that of a job which mostly has none, and the store would look everywhere.
type rings struct {
	size    map[byte]ringSize // by the table of ages
	changed map[byte]bool
	ages    map[byte]map[string]uint64 // by the table of ages, and key
}

// ringSize is how many keys a ring has, and an age below which it has none: what was forgotten leaves traces in the store that a scan from
// the beginning would step over, each time.
type ringSize struct{ count, from uint64 }

func loadRings(r view.Reader) (*rings, error) {
	all := &rings{map[byte]ringSize{}, map[byte]bool{}, map[byte]map[string]uint64{}}
	for _, index := range []byte{tableHistory, tableCommands, actsSingle, actsMany} {
		size, err := readRing(r, index)
		if err != nil {
			return nil, err
		}
		all.size[index] = size
	}
	for _, index := range []byte{tableHistory, tableCommands} {
		ages := map[string]uint64{}
		err := r.Scan([]byte{index}, after([]byte{index}), false, func(age, key []byte) bool {
			ages[string(key)] = binary.BigEndian.Uint64(age[1:])
			return true
		})
		if err != nil {
			return nil, err
		}
		all.ages[index] = ages
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

// reset notes that a ring has nothing any more.
func (r *rings) reset(index byte) {
	r.set(index, ringSize{})
	clear(r.ages[index])
}

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
	if old, known := r.ages[index][string(key)]; known {
		if err := tx.Delete(keyAge(index, old)); err != nil {
			return err
		}
	} else if err := r.grow(tx, index, limit); err != nil {
		return err
	}
	age := uint64(journal)
	r.ages[index][string(key)] = age
	if err := tx.Set(key, append(binary.BigEndian.AppendUint64(nil, age), value...)); err != nil {
		return err
	}
	return tx.Set(keyAge(index, age), key)
}

func keyAge(index byte, age uint64) []byte { return binary.BigEndian.AppendUint64([]byte{index}, age) }

// forget takes a key out of a ring.
func (r *rings) forget(tx *view.Tx, index byte, key []byte) error {
	age, known := r.ages[index][string(key)]
	if !known {
		return nil
	}
	size := r.size[index]
	size.count--
	r.set(index, size)
	delete(r.ages[index], string(key))
	return errors.Join(tx.Delete(keyAge(index, age)), tx.Delete(key))
}

// grow counts one key more. Where there are too many, it forgets a sixty-fourth of them at once: looking for the oldest costs more than keeping
// one.
func (r *rings) grow(tx *view.Tx, index byte, limit uint64) error {
	size := r.size[index]
	if size.count >= limit {
		if err := r.forgetOldest(tx, index, limit/64+1, &size); err != nil {
			return err
		}
	}
	size.count++
	r.set(index, size)
	return nil
}

// forgetOldest forgets some of a ring's keys.
func (r *rings) forgetOldest(tx *view.Tx, index byte, some uint64, size *ringSize) error {
	var ages, keys [][]byte
	err := tx.Scan(keyAge(index, size.from), after([]byte{index}), false, func(age, key []byte) bool {
		ages, keys = append(ages, bytes.Clone(age)), append(keys, bytes.Clone(key))
		return uint64(len(ages)) < some
	})
	if err != nil {
		return err
	}
	for i := range ages {
		if err := errors.Join(tx.Delete(ages[i]), tx.Delete(keys[i])); err != nil {
			return err
		}
		delete(r.ages[index], string(keys[i]))
		size.count--
		size.from = binary.BigEndian.Uint64(ages[i][1:]) + 1
	}
	return nil
}
