package tracker

import (
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// recordOverhead is about what a broker stores beside a record's body, in bytes.
const recordOverhead = 128

func (t *Entries) noteWritten(r *wire.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.written[r.Stream] += int64(len(r.Body)) + recordOverhead
}

func (t *Entries) noteLowWater() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.written)
}

// Written is about how many bytes of a stream were folded since low water moved last, as far as this process knows.
func (t *Entries) Written(stream string) int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.written[stream]
}

// LowWaterAt is when low water moved last; before it ever did, when the first leader was seen.
func (t *Entries) LowWaterAt() time.Time {
	t.mu.RLock()
	defer t.mu.RUnlock()
	at := t.shown.LowWaterAt
	if at == 0 {
		at = t.shown.BegunAt
	}
	return time.UnixMicro(int64(at * 1e6))
}

// Kept lists up to limit entries that the view keeps, whatever their state, from one offset of a stream up to another, both included.
func (t *Entries) Kept(stream string, from, to int64, limit int) ([]*Stored, error) {
	c := codes[stream]
	var found []*Stored
	var fault error
	err := t.store.Scan(keyEntry(place{c, from}), keyEntry(place{c, to + 1}), false, func(key, value []byte) bool {
		s, err := decodeStored(placeOf(key[1:]), append([]byte(nil), value...))
		if err != nil {
			fault = err
			return false
		}
		found = append(found, s)
		return len(found) < limit
	})
	if err != nil {
		return nil, err
	}
	return found, fault
}
