package tracker

import (
	"encoding/json"
	"fmt"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// What is kept of rejected records, for each stream; older ones are counted only.
const (
	maxRejects     = 10_000
	maxRejectBytes = 64 << 20
	maxRejectBody  = 64 << 10 // of one record
)

// Reject is a record that could not be taken in.
type Reject struct {
	Stream string `json:"stream"`
	Offset int64  `json:"offset"`
	Reason string `json:"reason"`
	Size   int64  `json:"size"`           // of the record, in bytes
	Body   []byte `json:"body,omitempty"` // its first 64 KiB
}

// reject keeps a record that could not be taken in.
func (t *Entries) reject(tx *view.Tx, r *wire.Record, reason string) error {
	body := r.Body[:min(len(r.Body), maxRejectBody)]
	return t.keepReject(tx, Reject{Stream: r.Stream, Offset: r.Offset, Reason: reason, Size: int64(len(r.Body)), Body: body})
}

func (t *Entries) keepReject(tx *view.Tx, j Reject) error {
	t.update(func(s *State) { s.Rejected[j.Stream]++ })
	marker := keyDismissed(j.Stream, j.Offset)
	if _, dismissed, err := tx.Get(marker); err != nil || dismissed {
		return err
	}
	value, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("tracker: keep rejected record: %w", err)
	}
	key := keyReject(j.Stream, j.Offset)
	old, again, err := tx.Get(key) // a reader that could not read a place may have to step over it once more
	if err != nil {
		return err
	}
	if err := tx.Set(key, value); err != nil {
		return err
	}
	count := int64(1)
	if again {
		count = 0
	}
	return t.boundRejects(tx, j.Stream, j.Offset, count, int64(len(value)-len(old)))
}

// rejectSize is how many rejected records of a stream are kept, their bytes, and an offset below which there are none: what was forgotten
// leaves traces in the store that a scan from the beginning would step over, each time.
type rejectSize struct{ count, bytes, from int64 }

func keyRejectSize(stream string) []byte { return append([]byte{tableMeta, 'r'}, stream...) }

func readRejectSize(r view.Reader, stream string) (rejectSize, error) {
	raw, ok, err := r.Get(keyRejectSize(stream))
	if err != nil || !ok {
		return rejectSize{}, err
	}
	return rejectSize{intOf(raw), intOf(raw[intLen:]), intOf(raw[2*intLen:])}, nil
}

func (s rejectSize) save(tx *view.Tx, stream string) error {
	if s.count == 0 {
		return tx.Delete(keyRejectSize(stream))
	}
	return tx.Set(keyRejectSize(stream), appendInt(appendInt(appendInt(nil, s.count), s.bytes), s.from))
}

// boundRejects notes what was added at an offset and forgets the oldest beyond the bounds.
func (t *Entries) boundRejects(tx *view.Tx, stream string, offset, count, bytes int64) error {
	size, err := readRejectSize(tx, stream)
	if err != nil {
		return err
	}
	size.count, size.bytes, size.from = size.count+count, size.bytes+bytes, min(size.from, offset)
	if size.count > maxRejects || size.bytes > maxRejectBytes {
		if err := dropOldest(tx, stream, &size); err != nil {
			return err
		}
	}
	return size.save(tx, stream)
}

func dropOldest(tx *view.Tx, stream string, size *rejectSize) error {
	var keys [][]byte
	prefix := keyRejects(stream)
	err := tx.Scan(keyReject(stream, size.from), after(prefix), false, func(key, value []byte) bool {
		if size.count <= maxRejects && size.bytes <= maxRejectBytes {
			size.from = intOf(key[len(prefix):])
			return false
		}
		size.count, size.bytes = size.count-1, size.bytes-int64(len(value))
		keys = append(keys, append([]byte(nil), key...))
		return true
	})
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := tx.Delete(key); err != nil {
			return err
		}
	}
	return nil
}

func keyDismissals(stream string) []byte { return append(append([]byte{tableMeta, 'd'}, stream...), 0) }

func keyDismissed(stream string, offset int64) []byte {
	return appendInt(keyDismissals(stream), offset)
}

// forgetRejects forgets all of a stream's rejected records.
func forgetRejects(tx *view.Tx, stream string) error {
	for _, prefix := range [][]byte{keyRejects(stream), keyDismissals(stream)} {
		if err := tx.DeleteRange(prefix, after(prefix)); err != nil {
			return err
		}
	}
	return tx.Delete(keyRejectSize(stream))
}

// dismiss takes a rejected record off the list. The marker stays, for a view that reads the journal first.
func (t *Entries) dismiss(tx *view.Tx, stream string, offset int64) error {
	if err := tx.Set(keyDismissed(stream, offset), nil); err != nil {
		return err
	}
	key := keyReject(stream, offset)
	value, ok, err := tx.Get(key)
	if err != nil || !ok {
		return err
	}
	if err := tx.Delete(key); err != nil {
		return err
	}
	return t.boundRejects(tx, stream, offset, -1, -int64(len(value)))
}
