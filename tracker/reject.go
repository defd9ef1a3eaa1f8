package tracker

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// What is kept of the rejected records of each stream. Older ones are counted only.
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

// RejectedRecords reads the rejected records.
type RejectedRecords struct {
	store *view.Store
	shown *Shown
}

// Rejects calls fn for the rejected records of a stream, newest first, until fn returns false.
func (l RejectedRecords) Rejects(stream string, fn func(Reject) bool) error {
	prefix := keyRejects(stream)
	return table.Scan(l.store, prefix, table.After(prefix), true, func(_, value []byte) (bool, error) {
		var j Reject
		if err := json.Unmarshal(value, &j); err != nil {
			return false, err
		}
		return fn(j), nil
	})
}

// Rejected returns one rejected record. ok is false if it is not kept.
func (l RejectedRecords) Rejected(stream string, offset int64) (j Reject, ok bool, err error) {
	raw, ok, err := l.store.Get(keyReject(stream, offset))
	if err != nil || !ok {
		return j, false, err
	}
	if err := json.Unmarshal(raw, &j); err != nil {
		return j, false, fmt.Errorf("tracker: rejected record is damaged: %w", err)
	}
	return j, true, nil
}

// RejectedKept returns how many rejected records of each stream are kept.
func (l RejectedRecords) RejectedKept() (map[string]int64, error) {
	all := map[string]int64{}
	for stream := range l.shown.State().Rejected {
		size, err := readRejectSize(l.store, stream)
		if err != nil {
			return nil, err
		}
		all[stream] = size.count
	}
	return all, nil
}

// rejects writes the rejected records.
type rejects struct{ state *leadership }

// record keeps a record that could not be taken in.
func (t *rejects) record(tx *view.Tx, r *wire.Record, reason string) error {
	body := r.Body[:min(len(r.Body), maxRejectBody)]
	return t.keep(tx, Reject{Stream: r.Stream, Offset: r.Offset, Reason: reason, Size: int64(len(r.Body)), Body: body})
}

// keep keeps a rejected record, unless it was dismissed. A reader that could not read a record may
// have to step over it once more.
func (t *rejects) keep(tx *view.Tx, j Reject) error {
	t.state.update(func(s *State) { s.Rejected[j.Stream]++ })
	if _, dismissed, err := tx.Get(keyDismissed(j.Stream, j.Offset)); err != nil || dismissed {
		return err
	}
	old, again, err := tx.Get(keyReject(j.Stream, j.Offset))
	if err != nil {
		return err
	}
	value, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("tracker: keep rejected record: %w", err)
	}
	count := int64(1)
	if again {
		count = 0
	}
	if err := tx.Set(keyReject(j.Stream, j.Offset), value); err != nil {
		return err
	}
	return boundRejects(tx, j.Stream, j.Offset, count, int64(len(value)-len(old)))
}

// rejectSize is how many rejected records of a stream are kept, their bytes, and an offset below
// which there are none. What was forgotten leaves tombstones in the store: a scan from the
// beginning would step over them each time.
type rejectSize struct{ count, bytes, from int64 }

func keyRejectSize(stream string) []byte { return append([]byte{table.Meta, 'r'}, stream...) }

func readRejectSize(r view.Reader, stream string) (rejectSize, error) {
	raw, ok, err := r.Get(keyRejectSize(stream))
	if err != nil || !ok {
		return rejectSize{}, err
	}
	return rejectSize{table.Int(raw), table.Int(raw[table.IntLen:]), table.Int(raw[2*table.IntLen:])}, nil
}

func (s rejectSize) save(tx *view.Tx, stream string) error {
	if s.count == 0 {
		return tx.Delete(keyRejectSize(stream))
	}
	return tx.Set(keyRejectSize(stream), table.AppendInt(table.AppendInt(table.AppendInt(nil, s.count), s.bytes), s.from))
}

// boundRejects notes what was added at an offset, and forgets the oldest beyond the bounds.
func boundRejects(tx *view.Tx, stream string, offset, count, bytes int64) error {
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
	err := tx.Scan(keyReject(stream, size.from), table.After(prefix), false, func(key, value []byte) bool {
		if size.count <= maxRejects && size.bytes <= maxRejectBytes {
			size.from = table.Int(key[len(prefix):])
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

func keyDismissals(stream string) []byte {
	return append(append([]byte{table.Meta, 'd'}, stream...), 0)
}

func keyDismissed(stream string, offset int64) []byte {
	return table.AppendInt(keyDismissals(stream), offset)
}

// forget forgets all rejected records of a stream.
func (t *rejects) forget(tx *view.Tx, stream string) error {
	t.state.update(func(s *State) { delete(s.Rejected, stream) })
	return cmp.Or(table.Clear(tx, keyRejects(stream)...), table.Clear(tx, keyDismissals(stream)...), tx.Delete(keyRejectSize(stream)))
}

// dismiss takes a rejected record off the list. A marker stays, for a view that reads the journal
// first.
func (t *rejects) dismiss(tx *view.Tx, stream string, offset int64) error {
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
	return boundRejects(tx, stream, offset, -1, -int64(len(value)))
}
