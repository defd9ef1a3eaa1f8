package tracker

import (
	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// UniqueKeys reads the keys of unique jobs.
type UniqueKeys struct{ r view.Reader }

// Holds returns the holds of a key, by its hash.
func (u UniqueKeys) Holds(hash string) (all []*KeyHold, err error) {
	return all, u.scan(keyHolds(hash), func(h *KeyHold) bool {
		all = append(all, h)
		return true
	})
}

// Each calls fn for each hold, those of a key one after the other, until fn returns false.
func (u UniqueKeys) Each(fn func(*KeyHold) bool) error { return u.scan([]byte{tableUnique}, fn) }

// Periods calls fn for each key that is taken for a time, the first to end first, until fn returns
// false.
func (u UniqueKeys) Periods(fn func(*KeyHold) bool) error {
	return table.Scan(u.r, []byte{tablePeriodEnd}, table.After([]byte{tablePeriodEnd}), false, func(_, key []byte) (bool, error) {
		raw, held, err := u.r.Get(keyHold(wire.UniqueID(key), holdPeriod, entryID{}))
		if err != nil || !held {
			return true, err
		}
		h, err := decodeHold(raw)
		if err != nil {
			return false, err
		}
		return fn(h), nil
	})
}

func (u UniqueKeys) scan(prefix []byte, fn func(*KeyHold) bool) error {
	return table.Scan(u.r, prefix, table.After(prefix), false, func(_, raw []byte) (bool, error) {
		h, err := decodeHold(raw)
		if err != nil {
			return false, err
		}
		return fn(h), nil
	})
}

// Undecided calls fn for the offsets in jobs.gated of the undecided entries from one on, until fn
// returns false.
func (u UniqueKeys) Undecided(from int64, fn func(offset int64) bool) error {
	return u.r.Scan(keyUndecided(from), table.After([]byte{tableUndecided}), false, func(key, _ []byte) bool { return fn(table.Int(key[1:])) })
}
