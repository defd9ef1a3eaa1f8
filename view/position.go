package view

import (
	"bytes"
	"hash/crc32"

	"github.com/millrace-jobs/millrace/wire"
)

// position is the last folded record of a stream.
type position struct {
	offset int64
	// sum distinguishes the stream from one that was created again. It is unreadable if the
	// transport could not read the record.
	sum uint32
}

// unreadable is the sum of a record that could not be read. It is not compared, because another
// transport may be able to read the record.
const unreadable = 0

// none is the position of a stream of which nothing was folded.
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

// Position returns the offset of the last folded record of a stream, or -1 if there is none.
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

// Rewind makes the view read a stream again, from the first record that it has.
func (tx *Tx) Rewind(stream string) error {
	tx.rewound = append(tx.rewound, stream)
	return tx.forgetPosition(stream)
}

// HoldPosition leaves a stream's position as it is. The fold has the records of the batch in
// memory, and writes them with a later one. After a crash they are read again, so the fold must
// recognise those that it has.
func (tx *Tx) HoldPosition(stream string) {
	if tx.held == nil {
		tx.held = map[string]bool{}
	}
	tx.held[stream] = true
}

// Position returns the offset of the last folded record of a stream, or -1 if there is none.
func (s *Store) Position(stream string) (int64, error) {
	p, err := readPosition(s, stream)
	return p.offset, err
}

// prefixConfirmed begins the keys of records that are known to be confirmed. A rollback keeps these
// keys, because a confirmed record stays confirmed.
var prefixConfirmed = []byte("\x00confirmed/")

func keyConfirmed(stream string) []byte { return append(bytes.Clone(prefixConfirmed), stream...) }

// Mark identifies a record of a stream. Its checksum distinguishes the record from another one at
// the same offset.
type Mark = position

// MarkOf returns the mark of a record.
func MarkOf(r *wire.Record) Mark { return positionOf(r) }

// Confirmed stores that the broker has confirmed a record to its publisher. The broker then has all
// earlier records too, so a stream without this record has lost records that it must not lose.
// Records behind the newest confirmed one may be gone after a failover, which breaks no promise.
func (tx *Tx) Confirmed(stream string, at Mark) error {
	known, err := readMark(tx, keyConfirmed(stream))
	if err != nil || at.offset <= known.offset || at.sum == unreadable {
		return err
	}
	return tx.Set(keyConfirmed(stream), at.encode())
}

// Confirmed returns the offset of the newest record of a stream that is known to be confirmed, or
// -1 if there is none.
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
