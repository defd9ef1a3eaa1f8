package tracker

import (
	"encoding/binary"
	"fmt"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Limits are the definitions of the limits.
type Limits struct {
	store   view.Reader
	defined definitionsOf[wire.DefinedLimit]
}

// LimitsVersion returns a number that changes when a definition does.
func (l *Limits) LimitsVersion() int64 { return l.defined.version.Load() }

// Limit returns a limit, nil if there is none.
func (l *Limits) Limit(name string) *wire.DefinedLimit { return l.defined.get(name) }

// Limits returns all limits, by name.
func (l *Limits) Limits() []*wire.DefinedLimit { return l.defined.list() }

// Rates returns the rates that fires have used, by their ids, with when each is free again, in
// microseconds since 1970.
func (l *Limits) Rates() (map[string]int64, error) {
	all := map[string]int64{}
	err := table.Scan(l.store, []byte{tableRate}, table.After([]byte{tableRate}), false, func(key, raw []byte) (bool, error) {
		free, size := binary.Varint(raw)
		if size <= 0 {
			return false, fmt.Errorf("tracker: rate is damaged")
		}
		all[string(key[1:])] = free
		return true, nil
	})
	return all, err
}

// limits writes the limits, and the rates in use.
type limits struct {
	defined definedTable[wire.DefinedLimit]
}

func newLimits(l *Limits) *limits {
	return &limits{definedTable[wire.DefinedLimit]{kept: &l.defined, prefix: tableLimit, word: "limit"}}
}

func keyRate(id string) []byte { return append([]byte{tableRate}, id...) }

func (l *limits) load(r view.Reader) error {
	_, err := l.defined.load(r)
	return err
}

// define takes in layers that were set or removed.
func (l *limits) define(tx *view.Tx, j *wire.JournalRecord) error {
	for _, d := range j.Defined {
		if d.Kind != wire.KindLimit {
			continue
		}
		changed := &wire.DefinedLimit{Name: d.Name}
		if old := l.defined.get(tx, d.Name); old != nil {
			changed.Layers = old.Layers
		}
		if changed.Layers = withLayer(changed.Layers, &d, j); len(changed.Layers) == 0 {
			changed = nil
		}
		if err := l.defined.set(tx, d.Name, changed); err != nil {
			return err
		}
	}
	return nil
}

// use takes in the rates that a fire has used.
func (l *limits) use(tx *view.Tx, header string) error {
	for _, u := range wire.ParseRates(header) {
		if err := tx.Set(keyRate(u.ID), binary.AppendVarint(nil, u.Free)); err != nil {
			return err
		}
	}
	return nil
}

// replace takes in all limits, written again at low water, and the rates in use. Rates that are
// free again are forgotten: nothing has to be known of them.
func (l *limits) replace(tx *view.Tx, piece *wire.LimitPiece) error {
	if piece == nil {
		return nil
	}
	all := map[string]*wire.DefinedLimit{}
	for i := range piece.Limits {
		all[piece.Limits[i].Name] = &piece.Limits[i]
	}
	if err := l.defined.replace(tx, all, func(string) bool { return !piece.More }); err != nil {
		return err
	}
	if !piece.More {
		if err := table.Clear(tx, tableRate); err != nil {
			return err
		}
	}
	for id, free := range piece.Rates {
		if err := tx.Set(keyRate(id), binary.AppendVarint(nil, free)); err != nil {
			return err
		}
	}
	return nil
}
