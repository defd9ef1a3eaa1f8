package table

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/millrace-jobs/millrace/view"
)

// Size is how many rows a bounded table has, and an age below which it has none. What was forgotten
// leaves tombstones in the store: a scan from the beginning would step over them each time.
type Size struct{ Count, From uint64 }

// ReadSize returns the size of the table with an index.
func ReadSize(r view.Reader, index ...byte) (Size, error) {
	raw, ok, err := r.Get(append([]byte{Meta}, index...))
	if err != nil || !ok {
		return Size{}, err
	}
	return Size{binary.BigEndian.Uint64(raw), binary.BigEndian.Uint64(raw[8:])}, nil
}

// Sized keeps the size of a table in memory. It writes it with the batch that changed it.
type Sized struct {
	Size
	index   []byte
	changed bool
}

// LoadSized reads the size of the table with an index.
func LoadSized(r view.Reader, index ...byte) (Sized, error) {
	size, err := ReadSize(r, index...)
	return Sized{Size: size, index: index}, err
}

// Resize notes another size.
func (s *Sized) Resize(size Size) { s.Size, s.changed = size, true }

// Save writes the size if it changed.
func (s *Sized) Save(tx *view.Tx) error {
	if !s.changed {
		return nil
	}
	s.changed = false
	raw := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, s.Count), s.From)
	return tx.Set(append([]byte{Meta}, s.index...), raw)
}

// Bounded is a table that forgets its oldest rows. A second table, the index, has the keys by their
// ages, so no two rows may have the same age. The ages are in memory too: each fire asks for the
// age of a job that mostly has none, and the store would have to look for it at all levels.
type Bounded struct {
	Sized
	ages map[string]uint64 // by key
}

// LoadBounded reads what a table keeps in memory.
func LoadBounded(r view.Reader, index ...byte) (b Bounded, err error) {
	if b.Sized, err = LoadSized(r, index...); err != nil {
		return b, err
	}
	b.ages = map[string]uint64{}
	err = r.Scan(index, After(index), false, func(age, key []byte) bool {
		b.ages[string(key)] = binary.BigEndian.Uint64(age[len(index):])
		return true
	})
	return b, err
}

// Ages returns the ages of the rows, by key. They must not be changed.
func (b *Bounded) Ages() map[string]uint64 { return b.ages }

// Reset notes that the table was emptied.
func (b *Bounded) Reset() {
	b.Resize(Size{})
	clear(b.ages)
}

// Keep sets a key. It forgets the oldest rows if the table has more than limit of them.
func (b *Bounded) Keep(tx *view.Tx, age uint64, key, value []byte, limit uint64) error {
	if old, known := b.ages[string(key)]; known {
		if err := tx.Delete(b.keyAge(old)); err != nil {
			return err
		}
	} else if err := b.grow(tx, limit); err != nil {
		return err
	}
	b.ages[string(key)] = age
	if err := tx.Set(key, append(binary.BigEndian.AppendUint64(nil, age), value...)); err != nil {
		return err
	}
	return tx.Set(b.keyAge(age), key)
}

func (b *Bounded) keyAge(age uint64) []byte {
	return binary.BigEndian.AppendUint64(slices.Clip(b.index), age)
}

// Forget removes a key.
func (b *Bounded) Forget(tx *view.Tx, key []byte) error {
	age, known := b.ages[string(key)]
	if !known {
		return nil
	}
	b.Resize(Size{b.Count - 1, b.From})
	delete(b.ages, string(key))
	return errors.Join(tx.Delete(b.keyAge(age)), tx.Delete(key))
}

// grow counts one row more. If there are too many, it forgets a sixty-fourth of them: to look for
// the oldest row costs more than to keep one.
func (b *Bounded) grow(tx *view.Tx, limit uint64) error {
	size := b.Size
	if size.Count >= limit {
		if err := b.forgetOldest(tx, limit/64+1, &size); err != nil {
			return err
		}
	}
	size.Count++
	b.Resize(size)
	return nil
}

// forgetOldest removes the oldest rows.
func (b *Bounded) forgetOldest(tx *view.Tx, some uint64, size *Size) error {
	var ages, keys [][]byte
	err := tx.Scan(b.keyAge(size.From), After(b.index), false, func(age, key []byte) bool {
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
		delete(b.ages, string(keys[i]))
		size.Count--
		size.From = binary.BigEndian.Uint64(ages[i][len(b.index):]) + 1
	}
	return nil
}
