package table

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"

	"github.com/millrace-jobs/millrace/view"
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

// Scan calls fn for the rows from lower up to, but not including, upper, until fn returns false or
// an error. key and value are valid only during the call.
func Scan(r view.Reader, lower, upper []byte, newest bool, fn func(key, value []byte) (more bool, err error)) error {
	var fault error
	err := r.Scan(lower, upper, newest, func(key, value []byte) (more bool) {
		more, fault = fn(key, value)
		return more && fault == nil
	})
	return cmp.Or(err, fault)
}

// Clear deletes all rows whose keys begin with prefix.
func Clear(tx *view.Tx, prefix ...byte) error { return tx.DeleteRange(prefix, After(prefix)) }
