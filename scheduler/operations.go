package scheduler

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// An operation does one thing to many entries, a few in each step, between fires and single
// commands. It walks its stream by offset. An entry that is carried over meanwhile comes by again,
// and is recognised by its first offset. The journal knows how far an operation is. What was done
// after that is not done again: those entries are gone or changed.

const (
	maxOperations   = 16 // at once
	operationFlight = ledger.MaxOpen / 2
	operationEvery  = 20 * time.Millisecond // how often one is continued
)

var usualPace = pace{look: 512, batch: 64, records: 1000, read: 4096}

// operations does one thing to many entries.
type operations struct {
	base
	queues     *dueQueues
	routing    *routing
	dispatcher *dispatcher
	changes    *changes
	actions    *actions
	undos      *undos
	carry      *carrier
	all        map[string]*operation // by id
	more       bool                  // one can continue in the next step
}

// operation is an operation under way.
type operation struct {
	wire.Operation
	matcher   *tracker.Matcher
	changes   json.RawMessage
	next      int64          // where to continue: an offset, or an index of the jids
	inFlight  map[int64]bool // what is not answered yet, by offset or index
	issued    int64          // how many were acted upon in this epoch
	journaled int64          // how many were dealt with at the last record of the progress
	since     time.Time      // when it began in this epoch
	cancel    bool
	ending    bool
	ended     []request // to cancel it

	asked    request // to begin it
	counting bool    // it has not begun: what the filter matches is counted first

	undo *undoing // of an undo
}

func newOperation(op wire.Operation, now time.Time) *operation {
	o := &operation{Operation: op, matcher: tracker.NewMatcher(op.Filter), next: op.Cursor, inFlight: map[int64]bool{}, since: now}
	if op.At != nil {
		o.changes = []byte(`{"at":` + strconv.FormatFloat(*op.At, 'f', -1, 64) + `}`)
	}
	return o
}

// operate begins an operation. If the user expects a number of entries, they are counted first.
func (ops *operations) operate(now time.Time, r request) error {
	cmd := &r.cmd
	if _, known := ops.entries.Operation(cmd.ID); known || ops.all[cmd.ID] != nil {
		return r.reply(wire.Reply{Status: wire.StatusAccepted})
	}
	if len(ops.all) >= maxOperations {
		return r.reply(conflict(fmt.Sprintf("%d operations are running: wait until one has ended, or cancel one", maxOperations)))
	}
	if err := cmd.Bulk.Check(); err != nil {
		return r.reply(badRequest(err.Error()))
	}
	if cmd.Bulk.Action == wire.CommandUndo {
		return ops.undoOperation(now, r)
	}
	read, err := ops.entries.Position(cmd.Bulk.Stream)
	if err != nil {
		return err
	}
	op := *cmd.Bulk
	if op.AsOf == nil || *op.AsOf > read {
		op.AsOf = &read
	}
	op.ID, op.State, op.Reason, op.Actor = cmd.ID, wire.OperationRunning, cmp.Or(cmd.Reason, op.Reason), cmd.Actor
	op.StartedAt, op.Done, op.Failed, op.EndedAt, op.LastError, op.Total = wire.Seconds(now), 0, 0, 0, "", int64(len(op.JIDs))
	o := newOperation(op, now)
	o.Cursor, o.next = -1, -1
	if len(op.JIDs) > 0 {
		o.Cursor, o.next = 0, 0
	}
	o.asked, o.counting = r, op.Expected != nil
	ops.all[op.ID] = o
	if o.counting {
		return nil
	}
	return ops.beginOperation(now, o)
}

// beginOperation journals that an operation begins, and answers when that is read back.
func (ops *operations) beginOperation(now time.Time, o *operation) error {
	o.counting, o.since = false, now
	op := o.Operation
	accepted := func(wire.Reply) { o.asked.answer(wire.Reply{Status: wire.StatusAccepted}) }
	return ops.actions.note(now, request{o.asked.cmd, accepted}, wire.JournalRecord{Type: wire.TypeOperation, Operation: &op}, ledger.EntryID{})
}

// resume continues what earlier leaders began.
func (ops *operations) resume(now time.Time) error {
	for _, op := range ops.entries.Operations() {
		if op.State != wire.OperationRunning {
			continue
		}
		var err error
		if op.JIDs, err = ops.entries.OperationJIDs(op.ID); err != nil {
			return err
		}
		ops.all[op.ID] = newOperation(op, now)
		ops.beginUndoing(ops.all[op.ID])
	}
	return nil
}

// cancelOperation ends an operation. What it did stays done.
func (ops *operations) cancelOperation(_ time.Time, r request) error {
	o := ops.all[r.cmd.Bulk.ID]
	switch op, known := ops.entries.Operation(r.cmd.Bulk.ID); {
	case o != nil && !o.counting:
		o.cancel, o.ended = true, append(o.ended, r)
		return nil
	case known:
		return r.reply(conflict("the operation has ended: it is " + op.State))
	}
	return r.reply(notFound("no operation has this id"))
}

// step continues the operations.
func (ops *operations) step(now time.Time) error {
	ops.more = false
	if ops.carry.rests() {
		return nil
	}
	for _, known := range ops.entries.Operations() { // in a fixed order
		if o := ops.all[known.ID]; o != nil && !o.counting {
			again, err := ops.continueOperation(now, o)
			if err != nil {
				return err
			}
			ops.more = ops.more || again
		}
	}
	for _, o := range ops.all {
		if o.counting {
			ops.more = true
			if err := ops.countMore(now, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// wake returns when they are to be continued.
func (ops *operations) wake(now time.Time) time.Time {
	switch {
	case ops.more:
		return now
	case len(ops.all) > 0:
		return now.Add(operationEvery)
	}
	return now.Add(maxSleep)
}

// countMore counts some more entries that a filter matches, before the operation begins.
func (ops *operations) countMore(now time.Time, o *operation) error {
	found, err := ops.entries.Kept(o.Stream, o.next+1, maxOffset, ops.setup.pace.look)
	if err != nil {
		return err
	}
	for _, s := range found {
		o.next = s.Offset
		pending, err := ops.chosen(o, s)
		if err != nil {
			return err
		}
		if pending {
			o.Total++
		}
	}
	if len(found) > 0 {
		return nil
	}
	o.next = -1
	if o.Drifted(o.Total) {
		delete(ops.all, o.ID)
		o.asked.answer(wire.Reply{Status: wire.StatusDrifted, Error: "precondition_failed",
			Reason: fmt.Sprintf("%d match now, %d were expected: look again", o.Total, *o.Expected)})
		return nil
	}
	return ops.beginOperation(now, o)
}

// maxOffset is beyond the end of every stream.
const maxOffset = 1 << 62

// chosen reports whether an operation is about an entry.
func (ops *operations) chosen(o *operation, s *tracker.Stored) (bool, error) {
	if s.First > *o.AsOf || !o.matcher.Match(s) {
		return false, nil
	}
	return ops.entries.Pending(s)
}

// continueOperation acts upon some more entries. more reports that there is more to do now.
func (ops *operations) continueOperation(now time.Time, o *operation) (more bool, err error) {
	if o.ending {
		return false, nil
	}
	over := o.cancel
	if !over {
		if over, more, err = ops.actMore(now, o); err != nil {
			return false, err
		}
	}
	dealt := o.issued + o.undo.skipped()
	switch {
	case over && len(o.inFlight) == 0:
		if !o.cancel && !ops.countForgotten(o) {
			return false, nil
		}
		return false, ops.endOperation(now, o)
	case dealt-o.journaled >= ops.setup.pace.records:
		o.journaled = dealt
		return more, ops.ledger.Record(now, wire.JournalRecord{Type: wire.TypeOperation, Operation: o.progress()}, ledger.EntryID{})
	}
	return more, nil
}

// progress returns how far an operation is, for the journal.
func (o *operation) progress() *wire.Operation {
	cursor := o.done()
	o.countSkips(cursor)
	return &wire.Operation{ID: o.ID, State: o.State, Failed: o.Failed, LastError: o.LastError, Cursor: cursor, EndedAt: o.EndedAt, Skips: slices.Clone(o.Skips)}
}

// done returns the cursor: everything before it is known to be done.
func (o *operation) done() int64 {
	cursor := o.next
	for at := range o.inFlight {
		if len(o.JIDs) > 0 {
			cursor = min(cursor, at)
		} else {
			cursor = min(cursor, at-1)
		}
	}
	return cursor
}

func (ops *operations) endOperation(now time.Time, o *operation) error {
	o.ending, o.State, o.EndedAt = true, wire.OperationDone, wire.Seconds(now)
	if o.cancel {
		o.State = wire.OperationCancelled
	}
	end := ops.ledger.NewRecord(now, wire.JournalRecord{Type: wire.TypeOperation, Operation: o.progress()}, ledger.EntryID{})
	end.Folded = func() error {
		delete(ops.all, o.ID)
		for _, r := range o.ended {
			if err := r.done(); err != nil {
				return err
			}
		}
		return nil
	}
	return ops.ledger.Send(end)
}
