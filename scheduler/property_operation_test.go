package scheduler

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

// TestOperationsAreUndoneOnce drives leaders through all events of the model while operations are
// undone, except the loss of streams: that takes the operations with it.
func TestOperationsAreUndoneOnce(t *testing.T) {
	tries(t, 100, 40)
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		defer w.close()
		all := w.actions()
		few := map[string]func(*rapid.T){"undoOperation2": w.undoOperation, "regretAll": w.regretAll, "regretAll2": w.regretAll, "regretAll3": w.regretAll}
		for _, name := range []string{"append", "append2", "read", "elect", "lead", "lead2", "run", "command", "change", "undo", "regret", "operate", "cancel", "undoOperation",
			"time", "disconnect", "killSidecar", "forget", "refuseRecords", "killBroker", "carry", "retention"} {
			few[name] = all[name]
		}
		t.Repeat(few)
		w.quiesce()
		w.check()
	})
}

// operate begins an operation on what a filter, or some jids, select.
func (w *world) operate(t *rapid.T) {
	s := w.leader()
	if s == nil || s.core.phase != phaseLeading {
		return
	}
	op := &wire.Operation{Stream: rapid.SampledFrom(wire.EntryStreams).Draw(t, "stream")}
	op.Action = rapid.SampledFrom([]string{wire.CommandDelete, wire.CommandTrigger, wire.CommandRetry, wire.CommandKill, wire.CommandChange}).Draw(t, "action")
	if op.Action == wire.CommandChange {
		at := wire.Seconds(w.now.Truncate(1e9)) + float64(rapid.IntRange(-1, 6).Draw(t, "at"))
		op.At = &at
	}
	op.Filter = &wire.Filter{}
	switch rapid.IntRange(0, 2).Draw(t, "chosen by") {
	case 0:
		op.Filter.Queue = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "queue")
	case 1:
		op.Filter = nil
		for _, p := range w.places() {
			if p.stream == op.Stream && len(op.JIDs) < 3 {
				op.JIDs = append(op.JIDs, w.appended[p].jid)
			}
		}
	}
	if op.Filter != nil && rapid.Bool().Draw(t, "expects") {
		n := s.entries.Total(op.Stream)
		op.Expected = &n
	}
	w.commands++
	cmd := wire.Command{ID: fmt.Sprintf("c%d", w.commands), Command: wire.CommandOperate, Bulk: op}
	body, err := json.Marshal(cmd)
	require.NoError(t, err)
	if cmd, err = wire.ParseCommand(body); err != nil {
		return // not for this stream
	}
	w.allowChanges(cmd.Bulk)
	w.allowDeletes(cmd.Bulk)
	w.allowHeld(s, op.Stream)
	require.NoError(t, s.core.command(w.now, cmd, func(r wire.Reply) {
		if r.Status == wire.StatusAccepted {
			w.operations[cmd.ID] = true
		}
	}))
}

// allowChanges notes that an entry that an operation may change may fire at its new time.
func (w *world) allowChanges(op *wire.Operation) {
	if op.At == nil {
		return
	}
	for p, e := range w.appended {
		if p.stream == op.Stream && !e.dead {
			e.ask(time.UnixMicro(int64(*op.At * 1e6)))
		}
	}
}

// allowDeletes notes what an operation may delete or kill. After a loss of the journal it is
// unknown whether it did.
func (w *world) allowDeletes(op *wire.Operation) {
	if op.Action != wire.CommandDelete && op.Action != wire.CommandKill {
		return
	}
	for p, e := range w.appended {
		chosen := slices.Contains(op.JIDs, e.jid)
		if op.Filter != nil { // by its queue too, but that may have been changed
			chosen = true
		}
		if chosen && standsIn(p, op.Stream) {
			w.asked[p] = true
		}
	}
}

// standsIn reports whether an entry, or a copy of it that found no queue, may stand in a stream.
func standsIn(p place, stream string) bool { return p.stream == stream || stream == wire.Gated }

// cancelOne cancels an operation.
func (w *world) cancelOne(t *rapid.T) {
	s := w.leader()
	if s == nil || s.core.phase != phaseLeading || len(s.core.operations.all) == 0 || rapid.IntRange(0, 2).Draw(t, "rarely") > 0 {
		return
	}
	for _, op := range s.entries.Operations() {
		cmd := wire.Command{Command: wire.CommandCancel, Bulk: &wire.Operation{ID: op.ID}}
		require.NoError(t, s.core.command(w.now, cmd, func(wire.Reply) {}))
		return
	}
}

// checkOperations requires that every operation that was accepted has ended.
func (w *world) checkOperations(s *modelSidecar) {
	if w.journalLost {
		return // they stood there
	}
	w.checkKillsAreJournaled()
	for id := range w.operations {
		op, known := s.entries.Operation(id)
		require.True(w.t, known, "operation %s was accepted, and no view knows it", id)
		require.NotEqual(w.t, wire.OperationRunning, op.State, "operation %s does not end: %+v", id, op)
		w.checkUndone(&op)
	}
}

// checkKillsAreJournaled requires that the journal has the result of each burial that was
// requested: only that can be undone.
func (w *world) checkKillsAreJournaled() {
	missing, leads := map[wire.Through]ledger.EntryID{}, int64(-1)
	for _, r := range w.broker.streams[wire.Journal].records {
		if r.UserID != millrace {
			continue
		}
		if d, ok := wire.DispatchOf(r.Headers); ok {
			lost := w.lostEntry(&d) || w.lostKills[ledger.ID(d.Stream, d.Offset)]
			if leads = max(leads, d.Epoch); d.Epoch == leads && d.Op == wire.OpBuried && !lost {
				missing[wire.Through{Epoch: d.Epoch, Through: d.Seq}] = ledger.ID(d.Stream, d.Offset)
			}
			continue
		}
		j, err := wire.ParseJournal(r.Body)
		if err != nil || j.Type != wire.TypeOpened && j.Epoch < leads {
			continue
		}
		switch j.Type {
		case wire.TypeOpened:
			leads = r.Offset
		case wire.TypeReturned:
			delete(missing, wire.Through{Epoch: j.Epoch, Through: j.Seq})
		case wire.TypeUnburied, wire.TypeDelivered:
			delete(missing, wire.Through{Epoch: j.FiredEpoch, Through: j.Seq})
		case wire.TypeKilled, wire.TypeRecreated:
			maps.DeleteFunc(missing, func(_ wire.Through, at ledger.EntryID) bool {
				return at.Stream == j.Stream && (at.Offset == j.Offset || j.Type == wire.TypeRecreated)
			})
		}
	}
	require.Empty(w.t, missing, "these kills cannot be undone")
}

// lostEntry reports whether an entry that something was done to was lost with the end of its
// stream: there is nothing to undo.
func (w *world) lostEntry(d *wire.Dispatch) bool {
	stream := w.broker.streams[d.Stream]
	if r := stream.get(d.Offset); r != nil {
		e, err := wire.ParseEntry(d.Stream, d.Offset, r.Body)
		return err != nil || wire.JIDTag(e.JID) != d.JIDTag
	}
	return int(d.Offset) >= stream.end()
}

// allowHeld notes that a held entry may have been done before. A client that acts on it has decided
// that.
func (w *world) allowHeld(s *modelSidecar, stream string) {
	for p, e := range w.appended {
		if !standsIn(p, stream) {
			continue
		}
		for _, f := range w.found(s, stream, e.jid) {
			if s.entries.IsHeld(f.Stream, f.Offset) {
				w.broker.unsafe[p] = "an operation was asked for while it was held"
			}
		}
	}
}

// undoOperation undoes what an operation did, also if it was acted upon since.
func (w *world) undoOperation(t *rapid.T) {
	s := w.leader()
	if s == nil || s.core.phase != phaseLeading {
		return
	}
	var all []wire.Operation
	for _, op := range s.entries.Operations() {
		if op.State != wire.OperationRunning && op.Done > 0 && slices.Contains([]string{wire.CommandDelete, wire.CommandKill, wire.CommandChange}, op.Action) {
			all = append(all, op)
		}
	}
	if len(all) == 0 {
		return
	}
	op := rapid.SampledFrom(all).Draw(t, "operation")
	undo := &wire.Operation{Action: wire.CommandUndo, Undoes: op.ID}
	if rapid.Bool().Draw(t, "slowly") {
		undo.Rate = 1
	}
	w.commands++
	cmd := wire.Command{ID: fmt.Sprintf("c%d", w.commands), Command: wire.CommandOperate, Bulk: undo}
	w.allowUndone(&op, cmd.ID)
	require.NoError(t, s.core.command(w.now, cmd, func(r wire.Reply) {
		if r.Status == wire.StatusAccepted {
			w.operations[cmd.ID] = true
		}
	}))
}

// regretAll has an operation act on everything, and undoes it. Meanwhile commands undo some of it.
func (w *world) regretAll(t *rapid.T) {
	if w.leader() == nil {
		w.elect(t)
		for range 8 {
			w.round()
		}
	}
	w.append(t)
	require.NoError(t, w.pick(t).readAll())
	for range 3 {
		w.operate(t)
	}
	for range rapid.IntRange(4, 30).Draw(t, "rounds") {
		w.round()
	}
	for range rapid.IntRange(0, 2).Draw(t, "by hand") {
		w.undo(t)
		for range 4 {
			w.round()
		}
	}
	w.undoOperation(t)
}

// allowUndone notes when an entry may fire after the operation on it is undone.
func (w *world) allowUndone(op *wire.Operation, undo string) {
	for _, r := range w.broker.streams[wire.Journal].records {
		j, err := wire.ParseJournal(r.Body)
		if err != nil || j.InOperation != op.ID || len(j.Entry) == 0 {
			continue
		}
		was, err := wire.ParseEntry(j.Stream, j.Offset, j.Entry)
		require.NoError(w.t, err)
		p := w.broker.place(j.Stream, j.Offset)
		w.mayComeBack(p)
		w.undoing[p] = undo
		if e := w.appended[p]; e != nil {
			e.ask(was.At)
		}
	}
}

// checkUndone requires that every entry of an operation that was undone is accounted for.
func (w *world) checkUndone(op *wire.Operation) {
	if op.Action == wire.CommandUndo && op.State == wire.OperationDone {
		require.Equal(w.t, op.Total, op.Done+op.Skipped()+op.Failed, "an undo does not account for all: %+v", op)
	}
}
