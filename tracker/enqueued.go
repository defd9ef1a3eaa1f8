package tracker

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Keys of enqueued jobs. The kept keys depend only on the set of records, not on their order: the
// newest record of each key, and none that is a day older than the newest of all. So a view that
// begins behind low water, and reads the carried-over keys there, has the same keys.

func keyEnqueued(key string) []byte { return table.AppendHash([]byte{tableEnqueued, 0}, key) }

func keyEnqueuedAge(e *wire.Enqueued) []byte {
	return table.AppendHash(binary.BigEndian.AppendUint64([]byte{tableEnqueued, 1}, micros(e.At)), e.Key)
}

func micros(at float64) uint64 { return uint64(max(0, at) * 1e6) }

func enqueuedOf(raw []byte) (*wire.Enqueued, error) {
	e := &wire.Enqueued{}
	if err := json.Unmarshal(raw, e); err != nil {
		return nil, fmt.Errorf("tracker: a key of an enqueued job is damaged: %w", err)
	}
	return e, nil
}

// foldEnqueued takes in that a job was enqueued under a key.
func foldEnqueued(tx *view.Tx, e *wire.Enqueued) error {
	if e == nil || e.Key == "" {
		return nil
	}
	raw, ok, err := tx.Get(keyEnqueued(e.Key))
	if err != nil {
		return err
	}
	if ok {
		old, err := enqueuedOf(raw)
		if err != nil || old.At >= e.At {
			return err
		}
		if err := tx.Delete(keyEnqueuedAge(old)); err != nil {
			return err
		}
	}
	value, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("tracker: enqueued: %w", err)
	}
	if err := cmp.Or(tx.Set(keyEnqueued(e.Key), value), tx.Set(keyEnqueuedAge(e), value)); err != nil {
		return err
	}
	return forgetEnqueued(tx)
}

// forgetEnqueued forgets the keys that are a day older than the newest.
func forgetEnqueued(tx *view.Tx) error {
	newest := uint64(0)
	err := tx.Scan([]byte{tableEnqueued, 1}, []byte{tableEnqueued, 2}, true, func(k, _ []byte) bool {
		newest = binary.BigEndian.Uint64(k[2:])
		return false
	})
	day := uint64(wire.EnqueuedFor.Microseconds())
	if err != nil || newest < day {
		return err
	}
	var old []*wire.Enqueued
	below := binary.BigEndian.AppendUint64([]byte{tableEnqueued, 1}, newest-day)
	err = table.Scan(tx, []byte{tableEnqueued, 1}, below, false, func(_, value []byte) (bool, error) {
		e, err := enqueuedOf(value)
		old = append(old, e)
		return true, err
	})
	if err != nil {
		return err
	}
	for _, e := range old {
		err = cmp.Or(err, tx.Delete(keyEnqueuedAge(e)), tx.Delete(keyEnqueued(e.Key)))
	}
	return err
}

// EnqueuedKeys reads the jobs that were enqueued under keys.
type EnqueuedKeys struct{ store *view.Store }

// Enqueued returns the job that was enqueued under a key in the day before a time, nil for none.
func (k EnqueuedKeys) Enqueued(key string, now time.Time) (*wire.Enqueued, error) {
	raw, ok, err := k.store.Get(keyEnqueued(key))
	if err != nil || !ok {
		return nil, err
	}
	e, err := enqueuedOf(raw)
	if err != nil || e.At < wire.Seconds(now.Add(-wire.EnqueuedFor)) {
		return nil, err
	}
	return e, nil
}

// EachEnqueued calls fn for all known keys, the oldest first, until fn returns false.
func (k EnqueuedKeys) EachEnqueued(fn func(wire.Enqueued) bool) error {
	return table.Scan(k.store, []byte{tableEnqueued, 1}, []byte{tableEnqueued, 2}, false, func(_, value []byte) (bool, error) {
		e, err := enqueuedOf(value)
		if err != nil {
			return false, err
		}
		return fn(*e), nil
	})
}
