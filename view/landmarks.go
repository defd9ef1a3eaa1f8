package view

import (
	"cmp"
	"errors"
	"slices"

	"github.com/millrace-jobs/millrace/wire"
)

// Landmarks are folded records of a stream, at growing distances from its end. They distinguish a
// stream that lost its end from one that was created again. Slot 0 holds the first folded record.
// Slot k holds the end of the newest batch that passed a multiple of 4^k.
const slots = 24

func keyLandmarks(stream string) []byte { return append(append([]byte("\x00landmark/"), stream...), 0) }

func keyLandmark(stream string, slot byte) []byte { return append(keyLandmarks(stream), slot) }

// setLandmarks stores the landmarks that a batch passed. A record that could not be read cannot be
// compared later, so it is no landmark.
func (tx *Tx) setLandmarks(stream string, before int64, first *wire.Record, last position) error {
	if before == none {
		if at := positionOf(first); at.sum != unreadable {
			if err := tx.Set(keyLandmark(stream, 0), at.encode()); err != nil {
				return err
			}
		}
	}
	if last.sum == unreadable {
		return nil
	}
	for slot := 1; slot < slots && before>>(2*slot) != last.offset>>(2*slot); slot++ {
		if err := tx.Set(keyLandmark(stream, byte(slot)), last.encode()); err != nil {
			return err
		}
	}
	return nil
}

// forgetPosition makes the view read a stream from its beginning.
func (tx *Tx) forgetPosition(stream string) error {
	delete(tx.positions, stream)
	prefix := keyLandmarks(stream)
	if err := tx.DeleteRange(prefix, append(prefix[:len(prefix)-1:len(prefix)-1], 1)); err != nil {
		return err
	}
	return errors.Join(tx.Delete(keyConfirmed(stream)), tx.Delete(keyPosition(stream)))
}

// landmarks returns the landmarks of a stream, the newest first, without repetitions.
func landmarks(r Reader, stream string) (all []position, err error) {
	prefix := keyLandmarks(stream)
	err = r.Scan(prefix, append(prefix, 0xff), false, func(_, value []byte) bool {
		all = append(all, decodePosition(value))
		return true
	})
	slices.SortFunc(all, func(a, b position) int { return cmp.Compare(b.offset, a.offset) })
	return slices.Compact(all), err
}
