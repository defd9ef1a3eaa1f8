package tracker

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

func (h *history) operation(op wire.Operation) {
	h.record(wire.JournalRecord{Type: wire.TypeOperation, Operation: &op})
}

// The journal defines an operation: its request, its actions and its cursor. A new process has the
// same state.
func TestProgressOfOperations(t *testing.T) {
	h := newHistory()
	a, b := h.entry(sched, "a", 1), h.entry(sched, "b", 1)
	h.open()
	h.operation(wire.Operation{ID: "op", Action: wire.CommandDelete, Stream: sched, JIDs: []string{"a", "b", "c"}, State: wire.OperationRunning, StartedAt: 5, Total: 3})
	h.operation(wire.Operation{ID: "older", Action: wire.CommandKill, Stream: sched, Filter: &wire.Filter{Queue: "q"}, State: wire.OperationRunning, StartedAt: 4})
	h.record(wire.JournalRecord{Type: wire.TypeDeleted, Stream: sched, Offset: a, JID: "a", InOperation: "op"})
	h.dispatch(wire.OpTriggered, sched, b, "b", func(d *wire.Dispatch) { d.Operation = "op" })
	h.operation(wire.Operation{ID: "op", State: wire.OperationRunning, Failed: 1, LastError: "gone", Cursor: 2})
	h.operation(wire.Operation{ID: "never began", State: wire.OperationRunning, Cursor: 7})
	h.operation(wire.Operation{})

	o := newOne(t).inOrder(h)
	for range 2 {
		op, known := o.Operation("op")
		require.True(t, known)
		require.Equal(t, wire.Operation{ID: "op", Action: wire.CommandDelete, Stream: sched, State: wire.OperationRunning, StartedAt: 5,
			Total: 3, Done: 2, Failed: 1, LastError: "gone", Cursor: 2, FirstRecord: 1}, op)
		jids, err := o.OperationJIDs("op")
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b", "c"}, jids)
		var ids []string
		for _, op := range o.Operations() {
			ids = append(ids, op.ID)
		}
		require.Equal(t, []string{"op", "older"}, ids, "the newest comes first")
		_, known = o.Operation("never began")
		require.False(t, known)
		o.restart()
	}
	h.operation(wire.Operation{ID: "op", State: wire.OperationDone, EndedAt: 9, Cursor: 3})
	o = newOne(t).inOrder(h)
	op, _ := o.Operation("op")
	require.Equal(t, []any{wire.OperationDone, 9.0, int64(8)}, []any{op.State, op.EndedAt, op.LastRecord})
	jids, err := o.OperationJIDs("op")
	require.NoError(t, err)
	require.Empty(t, jids, "an operation that has ended keeps no jids")
}

// A record that the broker refused first is behind records that were written later.
func TestOperationRecordsOutOfOrder(t *testing.T) {
	h := newHistory()
	h.open()
	h.operation(wire.Operation{ID: "op", Action: wire.CommandDelete, Stream: sched, Filter: &wire.Filter{}, State: wire.OperationRunning, Cursor: -1})
	cursor := func() any {
		op, _ := newOne(t).inOrder(h).Operation("op")
		return []any{op.State, op.Cursor}
	}
	h.operation(wire.Operation{ID: "op", State: wire.OperationRunning, Cursor: 8})
	h.operation(wire.Operation{ID: "op", State: wire.OperationRunning, Cursor: 7})
	require.Equal(t, []any{wire.OperationRunning, int64(8)}, cursor())
	h.operation(wire.Operation{ID: "op", State: wire.OperationDone, Cursor: 9})
	h.operation(wire.Operation{ID: "op", State: wire.OperationRunning, Cursor: 8})
	require.Equal(t, []any{wire.OperationDone, int64(9)}, cursor())
}

// An operation that is carried over is complete for a view that did not know it. It changes nothing
// in a view that has newer records.
func TestCarriedOverOperationsAreComplete(t *testing.T) {
	h := newHistory()
	h.open()
	state := wire.Operation{ID: "op", Action: wire.CommandDelete, Stream: sched, JIDs: []string{"a"}, State: wire.OperationRunning, Done: 4, Cursor: 4}
	h.record(wire.JournalRecord{Type: wire.TypeState, Operation: &state})
	h.operation(wire.Operation{ID: "op", State: wire.OperationRunning, Cursor: 6})
	h.record(wire.JournalRecord{Type: wire.TypeState, Operation: &state})
	o := newOne(t).inOrder(h)
	op, known := o.Operation("op")
	require.True(t, known)
	require.Equal(t, []int64{4, 6}, []int64{op.Done, op.Cursor})
	jids, err := o.OperationJIDs("op")
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, jids)
}

// An operation that was undone names the last operation that undid it.
func TestUndoneOperationsAreLinked(t *testing.T) {
	h := newHistory()
	h.open()
	h.operation(wire.Operation{ID: "op", Action: wire.CommandDelete, Stream: sched, Filter: &wire.Filter{}, State: wire.OperationRunning})
	h.operation(wire.Operation{ID: "op", State: wire.OperationDone})
	for _, id := range []string{"first", "second"} {
		h.operation(wire.Operation{ID: id, Action: wire.CommandUndo, Stream: sched, Undoes: "op", State: wire.OperationRunning})
		h.operation(wire.Operation{ID: id, State: wire.OperationCancelled, Skips: []wire.Skip{{Reason: "r", Count: 2}}})
	}
	o := newOne(t).inOrder(h)
	for range 2 {
		op, _ := o.Operation("op")
		require.Equal(t, "second", op.UndoneBy)
		for _, op := range o.Operations() {
			require.Equal(t, op.ID == "op", op.UndoneBy != "")
			require.Equal(t, op.ID != "op", op.Skipped() == 2)
		}
		o.restart()
	}
}

// Only the newest operations that have ended are remembered, and all that run.
func TestEndedOperationsAreBounded(t *testing.T) {
	h := newHistory()
	h.open()
	running := wire.Operation{ID: "runs", Action: wire.CommandDelete, Stream: sched, Filter: &wire.Filter{}, State: wire.OperationRunning}
	h.operation(running)
	for i := range maxEnded + 5 {
		op := running
		op.ID, op.StartedAt = fmt.Sprintf("op-%03d", i), float64(i+1)
		h.operation(op)
		h.operation(wire.Operation{ID: op.ID, State: wire.OperationDone, EndedAt: float64(i + 1)})
	}
	o := newOne(t).inOrder(h)
	for range 2 {
		require.Len(t, o.Operations(), maxEnded+1)
		_, known := o.Operation("op-004")
		require.False(t, known)
		_, known = o.Operation("op-005")
		require.True(t, known)
		_, known = o.Operation("runs")
		require.True(t, known)
		o.restart()
	}
}

// An operation on a stream that was created again is interrupted, because the stream has other
// entries. Operations on other streams continue. A lost journal forgets all operations.
func TestOperationsOfRecreatedStreams(t *testing.T) {
	h := newHistory()
	h.open()
	for _, stream := range []string{sched, retry} {
		h.operation(wire.Operation{ID: stream, Action: wire.CommandDelete, Stream: stream, JIDs: []string{"a"}, State: wire.OperationRunning})
	}
	h.record(wire.JournalRecord{Type: wire.TypeRecreated, Stream: sched, At: 8})
	o := newOne(t).inOrder(h)
	op, _ := o.Operation(sched)
	require.Equal(t, []any{wire.OperationInterrupted, 8.0}, []any{op.State, op.EndedAt})
	op, _ = o.Operation(retry)
	require.Equal(t, wire.OperationRunning, op.State)

	require.NoError(t, o.store.Update(func(tx *view.Tx) error {
		if _, err := o.Forget(tx, wire.Journal); err != nil {
			return err
		}
		return o.Commit(tx)
	}))
	for range 2 {
		require.Empty(t, o.Operations())
		jids, err := o.OperationJIDs(retry)
		require.NoError(t, err)
		require.Empty(t, jids)
		o.restart()
	}
}

// An operation is cancelled when a leader finds a gap in the journal, because it must not act on
// entries that are held since. An operation that begins after that continues under the next leader,
// and so does an undo.
func TestOperationsEndAtGap(t *testing.T) {
	h := newHistory()
	h.open()
	begin := func(id, action string) {
		h.operation(wire.Operation{ID: id, Action: action, Stream: sched, Filter: &wire.Filter{}, State: wire.OperationRunning})
	}
	begin("before", wire.CommandTrigger)
	begin("undo", wire.CommandUndo)
	h.open(func(r *wire.JournalRecord) { r.Held, r.At = map[string]int64{sched: wire.Everything}, 8 })
	h.record(wire.JournalRecord{Type: wire.TypeReleased, Held: map[string]int64{sched: 5}})
	begin("since", wire.CommandTrigger)
	h.open(func(r *wire.JournalRecord) { r.Held = map[string]int64{sched: 5} })
	o := newOne(t).inOrder(h)
	for range 2 {
		op, _ := o.Operation("before")
		require.Equal(t, []any{wire.OperationCancelled, 8.0}, []any{op.State, op.EndedAt})
		require.Contains(t, op.LastError, "gap")
		for _, id := range []string{"undo", "since"} {
			op, _ = o.Operation(id)
			require.Equal(t, wire.OperationRunning, op.State, id)
		}
		o.restart()
	}
}

// A damaged operation causes an error, and does not count as missing.
func TestDamagedOperationIsReported(t *testing.T) {
	h := newHistory()
	h.open()
	h.operation(wire.Operation{ID: "op", Action: wire.CommandDelete, Stream: sched, JIDs: []string{"a"}, State: wire.OperationRunning})
	o := newOne(t).inOrder(h)
	require.Equal(t, 2, o.scribble(tableOperation))
	_, err := o.OperationJIDs("op")
	require.ErrorContains(t, err, "damaged")
	_, err = NewEntries(o.store, millrace)
	require.ErrorContains(t, err, "damaged")
}
