package scheduler

import (
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// undos undoes what was done to single entries.
type undos struct {
	base
	changes    *changes
	operations *operations
	uniques    *uniques
}

// command undoes what was done last, when that is known.
func (u *undos) command(_ time.Time, r request) error {
	return u.ledger.AfterFold(u.ledger.Seq(), func() error { return u.undo(r) })
}

// undo undoes the last delete, kill or change of an entry. The journal has the old bytes. They are
// published as an entry that replaces the old one; if it is past due, it fires.
func (u *undos) undo(r request) error {
	cmd := &r.cmd
	h, err := u.entries.LastOutcome(cmd.Stream, cmd.JID)
	if err != nil {
		return err
	}
	if h == nil || cmd.Offset != nil && *cmd.Offset != h.Offset {
		return r.reply(about(h, notFound("nothing is known that could be undone: the newest 100,000 things that happened to entries are")))
	}
	if !wire.Undoable(h.What) {
		return r.reply(about(h, conflict(fmt.Sprintf("what happened to it last cannot be undone: it was %s", h.What))))
	}
	body, err := u.setup.fetch(wire.Journal, h.Record)
	if err != nil {
		return r.reply(unavailable("the journal cannot be read now: " + err.Error()))
	}
	j, err := wire.ParseJournal(body)
	if err != nil || j.Type != h.What || j.Stream != cmd.Stream || j.Offset != h.Offset || j.JID != wire.JIDTag(cmd.JID) {
		return r.reply(about(h, notFound("the journal has forgotten the record that says how the entry was")))
	}
	if by := u.operations.undoOf(j.InOperation); by != nil {
		return r.reply(conflict("operation " + by.ID + " takes back all that was done with it: cancel that, or wait"))
	}
	return u.undoRecord(r, &j, h.Record)
}

// undoRecord undoes what a record of the journal says was done. It is the last record about its
// entry.
func (u *undos) undoRecord(r request, j *wire.JournalRecord, at int64) error {
	if u.entries.IsHeld(j.Stream, j.Offset) {
		return r.reply(conflict("what stood there is held since the journal lost records: it may have been delivered already; release what is held first"))
	}
	e, reply := u.entryBefore(j)
	if reply != nil {
		return r.reply(*reply)
	}
	a := wire.Announcement{What: wire.TypeUndone, Stream: j.Stream, Replaces: j.Offset, JIDTag: j.JID, Undoes: at,
		Command: r.cmd.ID, Actor: r.cmd.Actor, Operation: r.cmd.Operation}
	old := &tracker.Stored{JID: e.JID, Provenance: wire.Provenance{Sender: j.Sender}}
	var err error
	switch j.Type {
	case wire.TypeChanged:
		old, reply, err = u.undoesChange(j, e, &a)
	case wire.TypeKilled:
		if reply, err = u.undoesSettled(j); reply == nil && err == nil {
			reply, err = u.undoesKill(j, e, old, &a)
		}
	default:
		reply, err = u.undoesSettled(j)
	}
	if err != nil {
		return err
	}
	unique := wire.UniqueID("")
	if reply == nil && j.Type != wire.TypeChanged && j.Stream != wire.DeadJobs && j.Stream != wire.ScheduledJobs {
		unique = wire.UniqueIDOf(&e.Job)
		wait := false
		if reply, wait, err = u.uniques.refusal(unique, e.JID); err != nil {
			return err
		}
		if wait {
			u.ledger.NextStep(func() error { return u.undoRecord(r, j, at) })
			return nil
		}
		old.Unique, old.Stream, old.At = unique, j.Stream, later(e.Job.GateAt, u.ledger.Now())
	}
	record, fault := wire.WithEntryJID(e.Raw, e)
	switch {
	case reply != nil:
	case u.ledger.Busy(ledger.ID(a.Stream, a.Replaces)) != nil, a.Dead != nil && u.ledger.Busy(ledger.ID(wire.DeadJobs, *a.Dead)) != nil:
		reply = &busyNow
	case fault != nil:
		reply = new(conflict(fault.Error()))
	}
	if reply != nil {
		return r.reply(*reply)
	}
	return u.changes.replace(a, old, record, &replacement{reason: r.cmd.Reason, unique: unique, answer: r.answer})
}

var busyNow = conflict("something is being done to this entry right now: look again")

// entryBefore returns an entry as it was before a record of the journal. If it is large, only its
// stream has it.
func (u *undos) entryBefore(j *wire.JournalRecord) (*wire.Entry, *wire.Reply) {
	raw, ok := j.Entry, true
	if len(raw) == 0 {
		raw, ok = u.entryAt(j.Stream, j.Offset, j.JID)
	}
	if !ok {
		return nil, new(unavailable("the entry's stream cannot be read now"))
	}
	e, err := wire.ParseEntry(j.Stream, j.Offset, raw)
	if err != nil || wire.JIDTag(e.JID) != j.JID {
		return nil, new(notFound("the entry's record is gone"))
	}
	return &e, nil
}

// undoesSettled checks that nothing stands where an entry was deleted or killed. In a stream that
// was declared again something may.
func (u *undos) undoesSettled(j *wire.JournalRecord) (*wire.Reply, error) {
	s, err := u.entries.Get(j.Stream, j.Offset)
	if err != nil {
		return nil, err
	}
	read, err := u.entries.Position(j.Stream)
	if err != nil {
		return nil, err
	}
	if s != nil || read < j.Offset {
		return new(conflict("its stream was created again since: it cannot be put back where it was")), nil
	}
	return nil, nil
}

// undoesChange finds the entry that a change made.
func (u *undos) undoesChange(j *wire.JournalRecord, e *wire.Entry, a *wire.Announcement) (now *tracker.Stored, reply *wire.Reply, err error) {
	found, err := u.entries.Find(j.Stream, e.JID)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range found {
		if j.By != nil && s.First == *j.By {
			a.Replaces = s.Offset
			return s, nil, nil
		}
	}
	return nil, new(conflict("what it was changed to is not pending any more")), nil
}

// undoesKill finds the dead job that a kill made. It goes when the entry comes back.
func (u *undos) undoesKill(j *wire.JournalRecord, e *wire.Entry, old *tracker.Stored, a *wire.Announcement) (*wire.Reply, error) {
	found, err := u.entries.Find(wire.DeadJobs, e.JID)
	if err != nil {
		return nil, err
	}
	var dead []*tracker.Stored
	for _, s := range found {
		if wire.Seconds(s.At) == j.DiedAt {
			dead = append(dead, s)
		}
	}
	switch len(dead) {
	case 1:
		a.Dead, old.Sender = &dead[0].Offset, dead[0].Sender
		return nil, nil
	case 0:
		return new(conflict("the dead job that it became is not there any more: it was retried, deleted or trimmed")), nil
	}
	return new(conflict(fmt.Sprintf("%d dead jobs with its jid died in the same moment: retry the one that is meant", len(dead)))), nil
}
