package tracker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// maxEnded is how many operations are remembered that have ended.
const maxEnded = 100

// operations are kept in memory, without the jids that they name, and written with the batch that changed them. Done is counted here: it
// is how many records of the journal say that they are part of the operation, so that it is right whoever counted, and however often the
// leader died.
type operations struct {
	mu    sync.RWMutex
	shown map[string]wire.Operation // as they stood when the newest batch had been written

	// The fold's own.
	all   map[string]*wire.Operation
	dirty map[string]bool
}

func keyOperation(id string) []byte { return append([]byte{tableOperation, 0}, id...) }

func keyOperationJIDs(id string) []byte { return append([]byte{tableOperation, 1}, id...) }

func loadOperations(r view.Reader) (*operations, error) {
	ops := &operations{shown: map[string]wire.Operation{}, all: map[string]*wire.Operation{}, dirty: map[string]bool{}}
	var fault error
	err := r.Scan([]byte{tableOperation, 0}, []byte{tableOperation, 1}, false, func(_, value []byte) bool {
		op := &wire.Operation{}
		if fault = json.Unmarshal(value, op); fault != nil {
			return false
		}
		ops.all[op.ID], ops.shown[op.ID] = op, *op
		return true
	})
	if err != nil {
		return nil, err
	}
	if fault != nil {
		return nil, fmt.Errorf("tracker: operation is damaged: %w", fault)
	}
	return ops, nil
}

func (o *operations) save(tx *view.Tx) error {
	if len(o.dirty) == 0 {
		return nil
	}
	saved := map[string]wire.Operation{}
	for id := range o.dirty {
		op := o.all[id]
		if op == nil {
			if err := tx.Delete(keyOperation(id)); err != nil {
				return err
			}
			continue
		}
		value, err := json.Marshal(op)
		if err != nil {
			return fmt.Errorf("tracker: save operation: %w", err)
		}
		if err := tx.Set(keyOperation(id), value); err != nil {
			return err
		}
		saved[id] = *op
	}
	changed := o.dirty
	o.dirty = map[string]bool{}
	tx.AfterCommit(func() { o.show(changed, saved) })
	return nil
}

func (o *operations) show(changed map[string]bool, saved map[string]wire.Operation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id := range changed {
		delete(o.shown, id)
	}
	maps.Copy(o.shown, saved)
}

// change has fn change an operation that is known.
func (o *operations) change(id string, fn func(*wire.Operation)) {
	if op := o.all[id]; id != "" && op != nil {
		fn(op)
		o.dirty[id] = true
	}
}

// part counts a record of the journal that is part of an operation.
func (t *Entries) part(id string, by int64) {
	if id != "" {
		t.operations.change(id, func(op *wire.Operation) { op.Done += by })
	}
}

// operation takes in how an operation begins, goes on or ends, or how one stands that low water would forget. at is where the journal says so.
func (t *Entries) operation(tx *view.Tx, op *wire.Operation, at int64, carried bool) error {
	if op == nil || op.ID == "" {
		return nil
	}
	known := t.operations.all[op.ID]
	switch {
	case known == nil && op.Action == "", known != nil && carried:
		return nil
	case known != nil && (known.State != wire.OperationRunning || op.Cursor < known.Cursor): // the broker had refused it, and took it later
		return nil
	case known == nil:
		begun := *op
		if !carried {
			begun.FirstRecord = at
		}
		if err := t.beginOperation(tx, begun); err != nil {
			return err
		}
	default:
		t.operations.change(op.ID, func(k *wire.Operation) {
			k.State, k.EndedAt, k.Failed, k.LastError, k.Cursor, k.Skips = op.State, op.EndedAt, op.Failed, op.LastError, op.Cursor, op.Skips
			if op.State != wire.OperationRunning {
				k.LastRecord = at
			}
		})
	}
	if op.State == wire.OperationRunning {
		return nil
	}
	return t.endOperation(tx, op.ID)
}

func (t *Entries) beginOperation(tx *view.Tx, op wire.Operation) error {
	if len(op.JIDs) > 0 {
		jids, err := json.Marshal(op.JIDs)
		if err != nil {
			return fmt.Errorf("tracker: operation: %w", err)
		}
		if err := tx.Set(keyOperationJIDs(op.ID), jids); err != nil {
			return err
		}
		op.JIDs = nil
	}
	t.operations.all[op.ID] = &op
	t.operations.dirty[op.ID] = true
	return nil
}

// endOperation forgets what is needed only while an operation runs, and the operation that ended first when there are too many.
func (t *Entries) endOperation(tx *view.Tx, id string) error {
	if err := tx.Delete(keyOperationJIDs(id)); err != nil {
		return err
	}
	var ended []*wire.Operation
	for _, op := range t.operations.all {
		if op.State != wire.OperationRunning {
			ended = append(ended, op)
		}
	}
	slices.SortFunc(ended, func(a, b *wire.Operation) int {
		return cmp.Or(cmp.Compare(a.EndedAt, b.EndedAt), cmp.Compare(a.ID, b.ID))
	})
	for _, op := range ended[:max(0, len(ended)-maxEnded)] {
		delete(t.operations.all, op.ID)
		t.operations.dirty[op.ID] = true
	}
	return nil
}

// interruptOperations ends the operations on a stream that was made anew.
func (t *Entries) interruptOperations(tx *view.Tx, stream string, journal int64, at float64) error {
	return t.stopOperations(tx, journal, func(op *wire.Operation) bool {
		op.State, op.EndedAt = wire.OperationInterrupted, at
		return op.Stream == stream
	})
}

// cancelOperations ends what would be done to entries of which a leader has just found that nobody knows any more what was done to them. An
// undo looks at each of them by itself.
func (t *Entries) cancelOperations(tx *view.Tx, held map[string]int64, journal int64, at float64) error {
	return t.stopOperations(tx, journal, func(op *wire.Operation) bool {
		op.State, op.EndedAt, op.LastError = wire.OperationCancelled, at, "the journal has a gap: what this was about is held since"
		return held[op.Stream] == wire.Everything && op.Action != wire.CommandUndo
	})
}

// stopOperations ends those that run and that stop ends; it changes a copy.
func (t *Entries) stopOperations(tx *view.Tx, journal int64, stop func(*wire.Operation) bool) error {
	for _, id := range slices.Sorted(maps.Keys(t.operations.all)) {
		op := *t.operations.all[id]
		if op.State == wire.OperationRunning && stop(&op) {
			if err := t.operation(tx, &op, journal, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// forgetOperations forgets them all: how far they are stood in a journal that is gone, and each view knew it as far as it had read.
func (t *Entries) forgetOperations(tx *view.Tx) error {
	for id := range t.operations.all {
		t.operations.dirty[id] = true
	}
	clear(t.operations.all)
	return tx.DeleteRange([]byte{tableOperation}, after([]byte{tableOperation}))
}

// Operations lists the operations that are known, the newest first, without the jids that they name.
func (t *Entries) Operations() []wire.Operation {
	t.operations.mu.RLock()
	defer t.operations.mu.RUnlock()
	undoneBy := t.operations.undone()
	all := make([]wire.Operation, 0, len(t.operations.shown))
	for _, op := range t.operations.shown {
		op.UndoneBy = undoneBy[op.ID]
		all = append(all, op)
	}
	slices.SortFunc(all, func(a, b wire.Operation) int {
		return cmp.Or(cmp.Compare(b.StartedAt, a.StartedAt), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// Operation gives one operation; ok is false where none with the id is known.
func (t *Entries) Operation(id string) (op wire.Operation, ok bool) {
	t.operations.mu.RLock()
	defer t.operations.mu.RUnlock()
	if op, ok = t.operations.shown[id]; ok {
		op.UndoneBy = t.operations.undone()[id]
	}
	return op, ok
}

// undone tells by which operation each was undone that was. It is known as long as the other, since it ended later.
func (o *operations) undone() map[string]string {
	by := map[string]string{}
	for _, op := range o.shown {
		if newest, known := o.shown[by[op.Undoes]]; op.Undoes != "" && (!known || newest.FirstRecord < op.FirstRecord) {
			by[op.Undoes] = op.ID
		}
	}
	return by
}

// OperationJIDs gives the jids that a running operation names.
func (t *Entries) OperationJIDs(id string) (jids []string, err error) {
	raw, ok, err := t.store.Get(keyOperationJIDs(id))
	if err != nil || !ok {
		return nil, err
	}
	if err := json.Unmarshal(raw, &jids); err != nil {
		return nil, fmt.Errorf("tracker: the jids of operation %s are damaged: %w", id, err)
	}
	return jids, nil
}
