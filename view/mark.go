package view

import (
	"bytes"
	"encoding/binary"
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

// prefixConfirmed begins the keys of records that are known to be confirmed. A rollback keeps these
// keys, because a confirmed record stays confirmed.
var prefixConfirmed = []byte("\x00confirmed/")

func keyConfirmed(stream string) []byte { return append(bytes.Clone(prefixConfirmed), stream...) }

// Mark identifies a record of a stream. Its checksum distinguishes the record from another one at
// the same offset.
type Mark = position

// MarkOf returns the mark of a record.
func MarkOf(r *wire.Record) Mark { return positionOf(r) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(r *wire.Record) uint32 {
	if r.Fault != "" {
		return unreadable
	}
	sum := crc32.Update(0, castagnoli, r.Body)
	return crc32.Update(sum, castagnoli, []byte(r.UserID))
}

func positionOf(r *wire.Record) position { return position{max(r.Offset, r.Through), checksum(r)} }

func (p position) encode() []byte {
	raw := binary.BigEndian.AppendUint64(nil, uint64(p.offset))
	return binary.BigEndian.AppendUint32(raw, p.sum)
}

func decodePosition(raw []byte) position {
	return position{int64(binary.BigEndian.Uint64(raw)), binary.BigEndian.Uint32(raw[8:])}
}
