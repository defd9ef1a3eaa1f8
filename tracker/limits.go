package tracker

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Limits are the definitions of the limits.
type Limits struct {
	store   view.Reader
	mu      sync.RWMutex
	all     map[string]*wire.DefinedLimit // by name; none is ever changed, only replaced
	version atomic.Int64
}

// LimitsVersion returns a number that changes when a definition does.
func (l *Limits) LimitsVersion() int64 { return l.version.Load() }

// Limit returns a limit, nil if there is none.
func (l *Limits) Limit(name string) *wire.DefinedLimit {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.all[name]
}

// Limits returns all limits, by name.
func (l *Limits) Limits() []*wire.DefinedLimit {
	l.mu.RLock()
	all := slices.Collect(maps.Values(l.all))
	l.mu.RUnlock()
	slices.SortFunc(all, func(a, b *wire.DefinedLimit) int { return strings.Compare(a.Name, b.Name) })
	return all
}

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

// limits writes the limits. The journal alone says what they are.
type limits struct {
	*Limits
	batch   table.Batch
	changed map[string]*wire.DefinedLimit // in this batch; nil: removed
}

func keyLimit(name string) []byte { return append([]byte{tableLimit}, name...) }

func keyRate(id string) []byte { return append([]byte{tableRate}, id...) }

func (l *limits) load(r view.Reader) error {
	all := map[string]*wire.DefinedLimit{}
	err := table.Scan(r, []byte{tableLimit}, table.After([]byte{tableLimit}), false, func(_, raw []byte) (bool, error) {
		d := &wire.DefinedLimit{}
		if err := json.Unmarshal(raw, d); err != nil {
			return false, fmt.Errorf("tracker: limit is damaged: %w", err)
		}
		all[d.Name] = d
		return true, nil
	})
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all, l.batch, l.changed = all, table.Batch{}, nil
	l.version.Add(1)
	return nil
}

// get returns a limit as this batch has it, nil if there is none.
func (l *limits) get(tx *view.Tx, name string) *wire.DefinedLimit {
	l.begin(tx)
	if d, changed := l.changed[name]; changed {
		return d
	}
	return l.Limit(name)
}

func (l *limits) begin(tx *view.Tx) {
	if !l.batch.Begins(tx) {
		return
	}
	changed := map[string]*wire.DefinedLimit{}
	l.changed = changed
	tx.AfterCommit(func() {
		l.batch = table.Batch{}
		if len(changed) == 0 {
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		for name, d := range changed {
			if l.all[name] = d; d == nil {
				delete(l.all, name)
			}
		}
		l.version.Add(1)
	})
}

func (l *limits) set(tx *view.Tx, d *wire.DefinedLimit) error {
	l.begin(tx)
	if len(d.Layers) == 0 {
		l.changed[d.Name] = nil
		return tx.Delete(keyLimit(d.Name))
	}
	l.changed[d.Name] = d
	raw, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("tracker: save limit: %w", err)
	}
	return tx.Set(keyLimit(d.Name), raw)
}

// define takes in layers that were set or removed.
func (l *limits) define(tx *view.Tx, j *wire.JournalRecord) error {
	for _, d := range j.Defined {
		if d.Kind != wire.KindLimit {
			continue
		}
		changed := &wire.DefinedLimit{Name: d.Name, Layers: map[string]wire.DefinedLayer{}}
		if old := l.get(tx, d.Name); old != nil {
			maps.Copy(changed.Layers, old.Layers)
		}
		if delete(changed.Layers, d.Layer); len(d.Value) > 0 {
			changed.Layers[d.Layer] = wire.DefinedLayer{Source: d.Source, Value: d.Value, At: j.At, Actor: j.Actor}
		}
		if err := l.set(tx, changed); err != nil {
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
	l.begin(tx)
	known := map[string]bool{}
	for _, d := range l.Limits.Limits() {
		known[d.Name] = true
	}
	for name := range l.changed {
		known[name] = true
	}
	for i := range piece.Limits {
		delete(known, piece.Limits[i].Name)
		if err := l.set(tx, &piece.Limits[i]); err != nil {
			return err
		}
	}
	if piece.More {
		clear(known)
	} else if err := table.Clear(tx, tableRate); err != nil {
		return err
	}
	for name := range known {
		if err := l.set(tx, &wire.DefinedLimit{Name: name}); err != nil {
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
