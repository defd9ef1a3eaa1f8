package tracker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// definitionsOf are the definitions of one kind, by name. None is ever changed, only replaced.
type definitionsOf[T any] struct {
	mu      sync.RWMutex
	all     map[string]*T
	version atomic.Int64
	shown   func(all map[string]*T) // is called with the lock held, when something has changed; may be nil
}

// get returns a definition, nil if there is none.
func (d *definitionsOf[T]) get(name string) *T {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.all[name]
}

// list returns all definitions, by name.
func (d *definitionsOf[T]) list() []*T {
	d.mu.RLock()
	defer d.mu.RUnlock()
	all := make([]*T, 0, len(d.all))
	for _, name := range slices.Sorted(maps.Keys(d.all)) {
		all = append(all, d.all[name])
	}
	return all
}

// update applies changes; nil removes a definition.
func (d *definitionsOf[T]) update(changed map[string]*T) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, one := range changed {
		if d.all[name] = one; one == nil {
			delete(d.all, name)
		}
	}
	d.announce()
}

func (d *definitionsOf[T]) replaceAll(all map[string]*T) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = all
	d.announce()
}

func (d *definitionsOf[T]) announce() {
	d.version.Add(1)
	if d.shown != nil {
		d.shown(d.all)
	}
}

// definedTable writes the definitions of one kind. The journal alone says what they are.
type definedTable[T any] struct {
	kept    *definitionsOf[T]
	prefix  byte
	word    string // for messages
	batch   table.Batch
	changed map[string]*T // in this batch; nil: removed
}

func (t *definedTable[T]) key(name string) []byte { return append([]byte{t.prefix}, name...) }

// load reads the definitions. A row without a name is none. It reports whether there was any row.
func (t *definedTable[T]) load(r view.Reader) (some bool, err error) {
	all := map[string]*T{}
	err = table.Scan(r, []byte{t.prefix}, table.After([]byte{t.prefix}), false, func(key, raw []byte) (bool, error) {
		if some = true; len(key) == 1 {
			return true, nil
		}
		one := new(T)
		if err := json.Unmarshal(raw, one); err != nil {
			return false, fmt.Errorf("tracker: %s is damaged: %w", t.word, err)
		}
		all[string(key[1:])] = one
		return true, nil
	})
	if err != nil {
		return some, err
	}
	t.batch, t.changed = table.Batch{}, nil
	t.kept.replaceAll(all)
	return some, nil
}

// get returns a definition as this batch has it, nil if there is none.
func (t *definedTable[T]) get(tx *view.Tx, name string) *T {
	t.begin(tx)
	if one, changed := t.changed[name]; changed {
		return one
	}
	return t.kept.get(name)
}

// names returns the names of all definitions, as this batch has them.
func (t *definedTable[T]) names(tx *view.Tx) map[string]bool {
	t.begin(tx)
	all := map[string]bool{}
	t.kept.mu.RLock()
	for name := range t.kept.all {
		all[name] = true
	}
	t.kept.mu.RUnlock()
	for name, one := range t.changed {
		if all[name] = true; one == nil {
			delete(all, name)
		}
	}
	return all
}

// begin reports whether a batch begins.
func (t *definedTable[T]) begin(tx *view.Tx) bool {
	if !t.batch.Begins(tx) {
		return false
	}
	changed := map[string]*T{}
	t.changed = changed
	tx.AfterCommit(func() {
		if t.batch = (table.Batch{}); len(changed) > 0 {
			t.kept.update(changed)
		}
	})
	return true
}

// withLayer returns layers after one was set or removed.
func withLayer(layers map[string]wire.DefinedLayer, d *wire.Defined, j *wire.JournalRecord) map[string]wire.DefinedLayer {
	all := map[string]wire.DefinedLayer{}
	maps.Copy(all, layers)
	if delete(all, d.Layer); len(d.Value) > 0 {
		all[d.Layer] = wire.DefinedLayer{Source: d.Source, Value: d.Value, At: j.At, Actor: j.Actor}
	}
	return all
}

// set sets a definition; nil removes it.
func (t *definedTable[T]) set(tx *view.Tx, name string, one *T) error {
	t.begin(tx)
	if t.changed[name] = one; one == nil {
		return tx.Delete(t.key(name))
	}
	raw, err := json.Marshal(one)
	if err != nil {
		return fmt.Errorf("tracker: save %s: %w", t.word, err)
	}
	return tx.Set(t.key(name), raw)
}

// replace sets definitions that were written again at low water. Of the others it removes those
// for which gone holds.
func (t *definedTable[T]) replace(tx *view.Tx, all map[string]*T, gone func(name string) bool) (err error) {
	for name := range t.names(tx) {
		if all[name] == nil && gone(name) {
			err = cmp.Or(err, t.set(tx, name, nil))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		err = cmp.Or(err, t.set(tx, name, all[name]))
	}
	return err
}
