package scheduler

import (
	"cmp"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// An undo of an operation is an operation itself. What it undoes is in the journal, between the
// records that the other operation began with and ended with. It is read in the background, a chunk
// at a time, so an undo is bounded only by what the journal keeps. Its cursor is an offset of the
// journal.
//
// Before it undoes anything, an undo surveys the journal once for what was undone already. An entry
// that came back, and may have fired since, must not come back again. A leader that continues an
// undo must know what the leader before it did behind the cursor.

// undoing is how far an undo is.
type undoing struct {
	since  int64          // the newest number when it began in this epoch
	before []*replacement // what was under way then: it is journaled before the journal is read

	reading *reading
	again   time.Time // not before
	survey  *survey
	known   bool // the survey has ended
	chunk   *chunk
	effects []effect // what is left to do of the chunks that were read
	skips   []skip   // what the next record of the progress counts
	passed  int64    // how many were skipped in this epoch
	over    int64    // the newest number when nothing was left to do, 0 before
}

// skip is an entry that is left as it is.
type skip struct {
	at     int64 // of the record that says what was done to it
	reason string
}

const (
	readAgain = time.Second // after the journal could not be read
	maxSkips  = 4096        // that are not journaled yet
)

// skipped returns how many entries were skipped in this epoch.
func (u *undoing) skipped() int64 {
	if u == nil {
		return 0
	}
	return u.passed
}

// undoOperation begins to undo an operation.
func (ops *operations) undoOperation(now time.Time, r request) error {
	cmd := &r.cmd
	undone, known := ops.entries.Operation(cmd.Bulk.Undoes)
	if reply := ops.isUndoable(&undone, known, cmd.Bulk.Undoes); reply != nil {
		return r.reply(*reply)
	}
	op := wire.Operation{ID: cmd.ID, Action: wire.CommandUndo, Stream: undone.Stream, Undoes: undone.ID, From: undone.FirstRecord, Through: undone.LastRecord,
		Rate: cmd.Bulk.Rate, Reason: cmp.Or(cmd.Reason, cmd.Bulk.Reason), Actor: cmd.Actor, State: wire.OperationRunning, StartedAt: wire.Seconds(now),
		Total: undone.Done, Cursor: undone.FirstRecord}
	if cancelled, known := ops.entries.Operation(undone.UndoneBy); known {
		op.Cursor, op.Total = cancelled.Cursor, max(0, cancelled.Total-cancelled.Done-cancelled.Failed-cancelled.Skipped())
	}
	o := newOperation(op, now)
	ops.beginUndoing(o)
	o.asked = r
	ops.all[op.ID] = o
	return ops.beginOperation(now, o)
}

// isUndoable returns a reply that says why an operation cannot be undone, or nil.
func (ops *operations) isUndoable(op *wire.Operation, known bool, id string) *wire.Reply {
	by := ops.undoOf(id)
	switch {
	case ops.all[id] != nil || op.State == wire.OperationRunning:
		return new(conflict("it is running: cancel it first, then what it did can be undone"))
	case !known:
		return new(notFound("no operation has this id: those that run are known, and the newest 100 that have ended"))
	case op.Action == wire.CommandUndo:
		return new(conflict("an undo cannot be undone: do again what it took back"))
	case op.Action != wire.CommandDelete && op.Action != wire.CommandKill && op.Action != wire.CommandChange:
		return new(conflict("what was delivered cannot be undone: its action was " + op.Action))
	case op.State == wire.OperationInterrupted:
		return new(conflict("its stream was created again since: what it did is gone with the old one"))
	case by != nil:
		return new(conflict("operation " + by.ID + " is undoing it"))
	case op.UndoneBy != "" && !ops.wasCancelled(op.UndoneBy):
		return new(conflict("operation " + op.UndoneBy + " has undone it already"))
	case op.FirstRecord == 0 || op.LastRecord == 0:
		return new(conflict("its place in the journal is not known any more"))
	}
	return nil
}

func (ops *operations) wasCancelled(id string) bool {
	op, known := ops.entries.Operation(id)
	return known && op.State == wire.OperationCancelled
}

// undoOf returns the operation that is undoing another, or nil.
func (ops *operations) undoOf(id string) *operation {
	for _, o := range ops.all {
		if o.undo != nil && o.Undoes == id {
			return o
		}
	}
	return nil
}

// beginUndoing begins or continues an undo. From here on nothing else undoes what it is about.
func (ops *operations) beginUndoing(o *operation) {
	if o.Action != wire.CommandUndo {
		return
	}
	o.undo = &undoing{since: ops.ledger.Seq()}
	for _, r := range ops.changes.replacing {
		o.undo.before = append(o.undo.before, r)
	}
}

// undoMore undoes what comes next. over reports that nothing is left, more that there is more to do
// now.
func (ops *operations) undoMore(now time.Time, o *operation, left int) (over, more bool, err error) {
	u := o.undo
	if known, err := ops.surveyed(now, o); err != nil || !known {
		return false, false, err
	}
	ops.readMore(now, o)
	for looked := 0; len(u.effects) > 0; looked++ {
		if left == 0 || looked >= ops.setup.pace.look {
			return false, o.Rate <= 0 || left > 0, nil
		}
		if len(o.inFlight) >= operationFlight || len(u.skips) >= maxSkips && !o.countSkips(o.done()) {
			return false, false, nil
		}
		issued := o.issued
		wait, err := ops.undoEffect(o, u.effects[0])
		if err != nil || wait {
			return false, false, err
		}
		o.next, u.effects = u.effects[0].at, u.effects[1:]
		left -= int(o.issued - issued)
	}
	// A chunk that is being read belongs to its reader.
	if u.reading == nil && u.chunk != nil && u.chunk.end {
		o.next = o.Through
		return true, false, nil
	}
	return false, false, nil
}

// surveyed reports whether it is known what was undone already.
func (ops *operations) surveyed(now time.Time, o *operation) (bool, error) {
	u := o.undo
	switch {
	case u.known:
		return true, nil
	case u.reading == nil && u.mayRead(now) && ops.allJournaled(u):
		to, err := ops.entries.Position(wire.Journal)
		if err != nil {
			return false, err
		}
		u.survey = &survey{recordFilter: recordFilter{ops.entries.Trusts, -1}, id: o.ID, stream: o.Stream, cursor: o.next, to: to, back: offsets{}, mine: offsets{}, begun: -1}
		u.reading = ops.setup.readLater(o.From, u.survey.take)
	case u.reading != nil && u.reading.ended():
		u.known = u.read(now)
	}
	return u.known, nil
}

// read reports whether a reading succeeded.
func (u *undoing) read(now time.Time) bool {
	err := u.reading.err
	if u.reading = nil; err != nil {
		u.again = now.Add(readAgain)
	}
	return err == nil
}

// mayRead reports whether it is time to read. A clock that was set back does not delay that.
func (u *undoing) mayRead(now time.Time) bool {
	return !now.Before(u.again) || u.again.Sub(now) > readAgain
}

// allJournaled reports whether the view has read everything that was under way when an undo began:
// entries on their way, and burials, whose dead jobs go when a kill is undone.
func (ops *operations) allJournaled(u *undoing) bool {
	u.before = slices.DeleteFunc(u.before, func(r *replacement) bool {
		if at := r.sent.Entry; ops.changes.replacing[at] == r {
			return false
		}
		u.since = ops.ledger.Seq()
		return true
	})
	_, folded := ops.entries.Progress()
	buried := len(ops.routing.burials) == 0 || ops.routing.burials[0] > u.since || ops.unseenBurial() > u.since
	return len(u.before) == 0 && folded >= u.since && buried
}

// unseenBurial returns the number of the first burial that the view has not read in dead_jobs.
func (ops *operations) unseenBurial() int64 {
	seen := ops.entries.Probed().Buried
	for _, n := range ops.routing.burials {
		if n > seen {
			return n
		}
	}
	return maxOffset
}

// readMore takes in a chunk that was read, and has the next one read when few effects are left.
func (ops *operations) readMore(now time.Time, o *operation) {
	u := o.undo
	if u.reading != nil && u.reading.ended() {
		u.read(now)
		u.effects = append(u.effects, u.chunk.effects...) // valid even if incomplete
		u.chunk.effects = nil
	}
	if u.reading != nil || len(u.effects) > ops.setup.pace.read/4 || u.chunk != nil && u.chunk.end || !u.mayRead(now) {
		return
	}
	next := &chunk{recordFilter: recordFilter{ops.entries.Trusts, u.survey.begun}, id: o.Undoes, next: o.next, through: o.Through, most: ops.setup.pace.read}
	if u.chunk != nil {
		next.recordFilter, next.next = u.chunk.recordFilter, u.chunk.next
	}
	u.chunk = next
	u.reading = ops.setup.readLater(next.next+1, next.take)
}

// undoEffect undoes one effect. wait reports that the entry is busy.
func (ops *operations) undoEffect(o *operation, d effect) (wait bool, err error) {
	u, j := o.undo, &d.record
	switch {
	case u.survey.mine.has(d.at):
		return false, nil
	case d.at < u.survey.recreated:
		o.skip(d.at, "its stream was created again since")
		return false, nil
	case j.Type != wire.TypeChanged && u.survey.back.has(j.Offset):
		o.skip(d.at, "it was undone already")
		return false, nil
	}
	o.inFlight[d.at] = true
	o.issued++
	cmd := wire.Command{Command: wire.CommandUndo, Stream: j.Stream, Reason: o.Reason, Actor: o.Actor, Operation: o.ID}
	answer := func(r wire.Reply) {
		delete(o.inFlight, d.at)
		switch {
		case r.Status < 300:
		case r.Reason == busyNow.Reason:
			wait = true
			o.issued--
		case r.Status == wire.StatusConflict || r.Status == wire.StatusNotFound:
			o.issued--
			o.skip(d.at, r.Reason)
		default:
			o.fail(r.Reason)
		}
	}
	err = ops.undos.undoRecord(request{cmd, answer}, j, d.at)
	if !wait && err == nil && j.Type != wire.TypeChanged {
		u.survey.back.add(j.Offset)
	}
	return wait, err
}

// skip notes that an entry is left as it is.
func (o *operation) skip(at int64, reason string) {
	o.undo.skips = append(o.undo.skips, skip{at, reason})
	o.undo.passed++
}

// maxReasons is how many reasons are counted apart.
const maxReasons = 10

// countSkips counts what was skipped up to a cursor, and reports whether that was anything.
func (o *operation) countSkips(cursor int64) (any bool) {
	if o.undo == nil {
		return false
	}
	n := 0
	for n < len(o.undo.skips) && o.undo.skips[n].at <= cursor {
		o.addSkip(o.undo.skips[n].reason, 1)
		n++
	}
	o.undo.skips = slices.Delete(o.undo.skips, 0, n)
	return n > 0
}

// addSkip counts entries that were skipped for a reason.
func (o *operation) addSkip(reason string, n int64) {
	i := slices.IndexFunc(o.Skips, func(s wire.Skip) bool { return s.Reason == reason })
	if i < 0 && len(o.Skips) >= maxReasons {
		i = len(o.Skips) - 1
		o.Skips[i].Reason = "of other reasons"
	}
	if i < 0 {
		i = len(o.Skips)
		o.Skips = append(o.Skips, wire.Skip{Reason: reason})
	}
	o.Skips[i].Count += n
}

// countForgotten counts, as skipped, the effects that the journal has forgotten. It reports false
// until everything else is known to be done.
func (ops *operations) countForgotten(o *operation) bool {
	if o.undo == nil {
		return true
	}
	if o.undo.over == 0 {
		o.undo.over = ops.ledger.Seq()
	}
	if _, folded := ops.entries.Progress(); folded < o.undo.over {
		return false
	}
	op, _ := ops.entries.Operation(o.ID)
	o.countSkips(o.next)
	if n := o.Total - op.Done - o.Failed - o.Skipped(); n > 0 {
		o.addSkip("the journal has forgotten the record that says how the entry was", n)
	}
	return true
}
