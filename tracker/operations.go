package tracker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// BulkOperations are the bulk operations, as of the newest batch that was written.
type BulkOperations struct {
	store *view.Store
	mu    sync.RWMutex
	shown map[string]wire.Operation
}

// Operations returns the operations that are known, the newest first, without the jids that they
// name.
func (o *BulkOperations) Operations() []wire.Operation {
	o.mu.RLock()
	defer o.mu.RUnlock()
	undoneBy := o.undone()
	all := make([]wire.Operation, 0, len(o.shown))
	for _, op := range o.shown {
		op.UndoneBy = undoneBy[op.ID]
		all = append(all, op)
	}
	slices.SortFunc(all, func(a, b wire.Operation) int {
		return cmp.Or(cmp.Compare(b.StartedAt, a.StartedAt), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// Operation returns one operation. ok is false if none with the id is known.
func (o *BulkOperations) Operation(id string) (op wire.Operation, ok bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	if op, ok = o.shown[id]; ok {
		op.UndoneBy = o.undone()[id]
	}
	return op, ok
}

// undone returns by which operation each was undone that was. An undo is known as long as what it
// undoes, since it ended later.
func (o *BulkOperations) undone() map[string]string {
	by := map[string]string{}
	for _, op := range o.shown {
		if newest, known := o.shown[by[op.Undoes]]; op.Undoes != "" && (!known || newest.FirstRecord < op.FirstRecord) {
			by[op.Undoes] = op.ID
		}
	}
	return by
}

// OperationJIDs returns the jids that a running operation names.
func (o *BulkOperations) OperationJIDs(id string) (jids []string, err error) {
	raw, ok, err := o.store.Get(keyOperationJIDs(id))
	if err != nil || !ok {
		return nil, err
	}
	if err := json.Unmarshal(raw, &jids); err != nil {
		return nil, fmt.Errorf("tracker: the jids of operation %s are damaged: %w", id, err)
	}
	return jids, nil
}

func (o *BulkOperations) show(changed map[string]bool, saved map[string]wire.Operation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id := range changed {
		delete(o.shown, id)
	}
	maps.Copy(o.shown, saved)
}

// maxEnded is how many operations are remembered that have ended.
const maxEnded = 100

// operations folds the bulk operations. They are in memory, without the jids that they name, and
// written with the batch that changed them. Done is counted here: it is how many records of the
// journal say that they are part of the operation. So it is right however often the leader died.
type operations struct {
	*BulkOperations
	all     map[string]*wire.Operation
	changed map[string]bool
}

func keyOperation(id string) []byte { return append([]byte{tableOperation, 0}, id...) }

func keyOperationJIDs(id string) []byte { return append([]byte{tableOperation, 1}, id...) }

func (o *operations) load(r view.Reader) error {
	all, shown := map[string]*wire.Operation{}, map[string]wire.Operation{}
	err := table.Scan(r, []byte{tableOperation, 0}, []byte{tableOperation, 1}, false, func(_, value []byte) (bool, error) {
		op := &wire.Operation{}
		if err := json.Unmarshal(value, op); err != nil {
			return false, fmt.Errorf("tracker: operation is damaged: %w", err)
		}
		all[op.ID], shown[op.ID] = op, *op
		return true, nil
	})
	if err != nil {
		return err
	}
	o.all, o.changed = all, map[string]bool{}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.shown = shown
	return nil
}

func (o *operations) save(tx *view.Tx) error {
	if len(o.changed) == 0 {
		return nil
	}
	saved := map[string]wire.Operation{}
	for id := range o.changed {
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
	changed := o.changed
	o.changed = map[string]bool{}
	tx.AfterCommit(func() { o.show(changed, saved) })
	return nil
}

// get returns an operation as the fold has it, nil if it is not known.
func (o *operations) get(id string) *wire.Operation { return o.all[id] }

// change calls fn to change an operation, if it is known.
func (o *operations) change(id string, fn func(*wire.Operation)) {
	if op := o.all[id]; id != "" && op != nil {
		fn(op)
		o.changed[id] = true
	}
}

// count counts records of the journal that are part of an operation.
func (o *operations) count(id string, by int64) {
	if id != "" {
		o.change(id, func(op *wire.Operation) { op.Done += by })
	}
}

// fold takes in how an operation begins, proceeds or ends. at is the offset of the record. carried
// says that the record repeats one that low water would forget.
func (o *operations) fold(tx *view.Tx, op *wire.Operation, at int64, carried bool) error {
	if op == nil || op.ID == "" {
		return nil
	}
	known := o.all[op.ID]
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
		if err := o.begin(tx, begun); err != nil {
			return err
		}
	default:
		o.change(op.ID, func(k *wire.Operation) {
			k.State, k.EndedAt, k.Failed, k.LastError, k.Cursor, k.Skips = op.State, op.EndedAt, op.Failed, op.LastError, op.Cursor, op.Skips
			if op.State != wire.OperationRunning {
				k.LastRecord = at
			}
		})
	}
	if op.State == wire.OperationRunning {
		return nil
	}
	return o.end(tx, op.ID)
}

func (o *operations) begin(tx *view.Tx, op wire.Operation) error {
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
	o.all[op.ID] = &op
	o.changed[op.ID] = true
	return nil
}

// end forgets what is needed only while an operation runs, and the operations that ended first when
// there are too many.
func (o *operations) end(tx *view.Tx, id string) error {
	if err := tx.Delete(keyOperationJIDs(id)); err != nil {
		return err
	}
	var ended []*wire.Operation
	for _, op := range o.all {
		if op.State != wire.OperationRunning {
			ended = append(ended, op)
		}
	}
	slices.SortFunc(ended, func(a, b *wire.Operation) int {
		return cmp.Or(cmp.Compare(a.EndedAt, b.EndedAt), cmp.Compare(a.ID, b.ID))
	})
	for _, op := range ended[:max(0, len(ended)-maxEnded)] {
		delete(o.all, op.ID)
		o.changed[op.ID] = true
	}
	return nil
}

// interrupt ends the operations on a stream that was created again.
func (o *operations) interrupt(tx *view.Tx, stream string, journal int64, at float64) error {
	return o.stop(tx, journal, func(op *wire.Operation) bool {
		op.State, op.EndedAt = wire.OperationInterrupted, at
		return op.Stream == stream
	})
}

// cancel ends the operations on entries that a leader has just held, because it is no longer known
// what was done to them. An undo looks at each entry by itself, so it continues.
func (o *operations) cancel(tx *view.Tx, held map[string]int64, journal int64, at float64) error {
	return o.stop(tx, journal, func(op *wire.Operation) bool {
		op.State, op.EndedAt, op.LastError = wire.OperationCancelled, at, "the journal has a gap: what this was about is held since"
		return held[op.Stream] == wire.Everything && op.Action != wire.CommandUndo
	})
}

// stop ends the running operations that end ends. end changes a copy.
func (o *operations) stop(tx *view.Tx, journal int64, end func(*wire.Operation) bool) error {
	for _, id := range slices.Sorted(maps.Keys(o.all)) {
		op := *o.all[id]
		if op.State == wire.OperationRunning && end(&op) {
			if err := o.fold(tx, &op, journal, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// forget forgets all operations. How far they are was in a journal that is gone, and each view knew
// it as far as it had read.
func (o *operations) forget(tx *view.Tx) error {
	for id := range o.all {
		o.changed[id] = true
	}
	clear(o.all)
	return table.Clear(tx, tableOperation)
}
