package view

import (
	"bytes"
	"hash/crc32"

	"github.com/millrace-jobs/millrace/wire"
)

// position is the last record of a stream that was folded.
type position struct {
	offset int64
	sum    uint32 // tells a stream that was made anew from the one that was read; unreadable if the transport could not read it
}

// unreadable is the sum of a record that could not be read: another transport may read it, so there is nothing to compare.
const unreadable = 0

// none is the position in a stream of which nothing was folded.
const none = -1

func keyPosition(stream string) []byte { return append([]byte("\x00position/"), stream...) }

func readPosition(r Reader, stream string) (position, error) { return readMark(r, keyPosition(stream)) }

func readMark(r Reader, key []byte) (position, error) {
	raw, ok, err := r.Get(key)
	if err != nil || !ok {
		return position{offset: none}, err
	}
	return decodePosition(raw), nil
}

func (tx *Tx) setPosition(stream string, p position) error {
	delete(tx.positions, stream)
	return tx.Set(keyPosition(stream), p.encode())
}

// Position is the offset of the last record of a stream that was folded, -1 if none was.
func (tx *Tx) Position(stream string) (int64, error) {
	if at, known := tx.positions[stream]; known { // a fold asks for each record
		return at, nil
	}
	p, err := readPosition(tx, stream)
	if err != nil {
		return none, err
	}
	if tx.positions == nil {
		tx.positions = map[string]int64{}
	}
	tx.positions[stream] = p.offset
	return p.offset, nil
}

// Rewind makes the view read a stream anew, from the first record that it has.
func (tx *Tx) Rewind(stream string) error {
	tx.rewound = append(tx.rewound, stream)
	return tx.forgetPosition(stream)
}

// HoldPosition keeps a stream's position where it is: the fold has what the batch brought in memory, and writes it with a later one. After a
// crash it is read again, so the fold must know what it has.
func (tx *Tx) HoldPosition(stream string) {
	if tx.held == nil {
		tx.held = map[string]bool{}
	}
	tx.held[stream] = true
}

// Position is the offset of the last record of a stream that was folded, -1 if none was.
func (s *Store) Position(stream string) (int64, error) {
	p, err := readPosition(s, stream)
	return p.offset, err
}

// prefixConfirmed begins the keys of records that are known to be confirmed. A store that is rolled
// back keeps them: that the broker has confirmed a record stays true.
var prefixConfirmed = []byte("\x00confirmed/")

func keyConfirmed(stream string) []byte { return append(bytes.Clone(prefixConfirmed), stream...) }

// Mark names a record of a stream, and by its checksum tells it from another one at the same offset.
type Mark = position

// MarkOf returns the mark of a record.
func MarkOf(r *wire.Record) Mark { return positionOf(r) }

// Confirmed notes that the broker has confirmed a record to its publisher. Then it has all that
// stands before it too: a stream without that record has lost what was promised to be kept. What
// stands behind the newest such record may be gone after a failover, and nothing is lost by that.
func (tx *Tx) Confirmed(stream string, at Mark) error {
	known, err := readMark(tx, keyConfirmed(stream))
	if err != nil || at.offset <= known.offset || at.sum == unreadable {
		return err
	}
	return tx.Set(keyConfirmed(stream), at.encode())
}

// Confirmed returns the offset of the newest record of a stream that is known to be confirmed, -1 if
// none is.
func (s *Store) Confirmed(stream string) (int64, error) {
	at, err := readMark(s, keyConfirmed(stream))
	return at.offset, err
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(r *wire.Record) uint32 {
	if r.Fault != "" {
		return unreadable
	}
	sum := crc32.Update(0, castagnoli, r.Body)
	return crc32.Update(sum, castagnoli, []byte(r.UserID))
}
