package scheduler

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/wire"
)

// operate begins an operation on what a filter, or some jids, choose.
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

// allowChanges notes that what an operation may change may fire at its new time.
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

// allowDeletes notes what an operation may delete or kill: once the journal is lost, nobody can tell any more that it did.
func (w *world) allowDeletes(op *wire.Operation) {
	if op.Action != wire.CommandDelete && op.Action != wire.CommandKill {
		return
	}
	for p, e := range w.appended {
		chosen := slices.Contains(op.JIDs, e.jid)
		if op.Filter != nil { // by its queue too, but that may have been changed
			chosen = true
		}
		if p.stream == op.Stream && chosen {
			w.asked[p] = true
		}
	}
}

// cancelOne cancels an operation.
func (w *world) cancelOne(t *rapid.T) {
	s := w.leader()
	if s == nil || s.core.phase != phaseLeading || len(s.core.operations) == 0 || rapid.IntRange(0, 2).Draw(t, "rarely") > 0 {
		return
	}
	for _, op := range s.entries.Operations() {
		cmd := wire.Command{Command: wire.CommandCancel, Bulk: &wire.Operation{ID: op.ID}}
		require.NoError(t, s.core.command(w.now, cmd, func(wire.Reply) {}))
		return
	}
}

// checkOperations makes sure that everything that was accepted has ended.
func (w *world) checkOperations(s *modelSidecar) {
	if w.journalLost {
		return // they stood there
	}
	for id := range w.operations {
		op, known := s.entries.Operation(id)
		require.True(w.t, known, "operation %s was accepted, and nobody knows it", id)
		require.NotEqual(w.t, wire.OperationRunning, op.State, "operation %s does not end: %+v", id, op)
	}
}

// allowHeld notes that what is held may have been done before: who asks for it all the same has decided that.
func (w *world) allowHeld(s *modelSidecar, stream string) {
	for p, e := range w.appended {
		if p.stream != stream {
			continue
		}
		for _, f := range w.found(s, stream, e.jid) {
			if s.entries.IsHeld(f.Stream, f.Offset) {
				w.broker.unsafe[p] = "an operation was asked for while it was held"
			}
		}
	}
}
