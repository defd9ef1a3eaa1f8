package table

import (
	"crypto/sha256"
	"encoding/binary"
)

// Meta begins the keys of single rows: states, and the sizes of tables.
const Meta = 'm'

// IntLen is the length of a number in a key.
const IntLen = 8

// AppendInt appends a number so that keys sort as numbers do.
func AppendInt(b []byte, n int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(n)^1<<63) }

// Int returns the number that AppendInt wrote at the beginning of b.
func Int(b []byte) int64 { return int64(binary.BigEndian.Uint64(b) ^ 1<<63) }

// AppendHash appends 16 bytes for a text of any length.
func AppendHash(b []byte, s string) []byte {
	sum := sha256.Sum256([]byte(s))
	return append(b, sum[:16]...)
}

// After returns the first key behind all keys that begin with prefix.
func After(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}
