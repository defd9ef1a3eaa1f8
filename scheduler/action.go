package scheduler

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// actions does what commands and operations ask for to single entries.
type actions struct {
	base
	dispatcher *dispatcher
	changes    *changes
}

// act carries out a command about an entry that is there.
func (a *actions) act(now time.Time, cmd wire.Command, s *tracker.Stored, e *wire.Entry, answer func(wire.Reply)) error {
	o := order{actor: cmd.Actor, command: cmd.ID, operation: cmd.Operation, key: tracker.DueKey{At: s.At, Stream: s.Stream, Offset: s.Offset},
		refused: func() { answer(refusedBy(s.Queue)) }, folded: func() error { return carriedOut(answer) }}
	switch cmd.Command {
	case wire.CommandTrigger:
		o.op = wire.OpTriggered
		return a.dispatcher.fire(now, s, e, o)
	case wire.CommandRetry:
		o.op = wire.OpRetried
		return a.dispatcher.fire(now, s, e, o)
	case wire.CommandKill:
		return a.kill(now, cmd, s, e, o, answer)
	case wire.CommandDelete:
		r := wire.JournalRecord{Type: wire.TypeDeleted, Stream: s.Stream, Offset: s.Offset, JID: wire.JIDTag(s.JID), Entry: json.RawMessage(e.Raw)}
		return a.note(now, cmd, r, ledger.ID(s.Stream, s.Offset), answer)
	case wire.CommandChange:
		return a.changes.change(cmd, s, e, answer)
	}
	answer(wire.Reply{Status: wire.StatusBad, Error: "bad_request", Reason: "command is not known"})
	return nil
}

// carriedOut answers that a command was carried out.
func carriedOut(answer func(wire.Reply)) error {
	answer(wire.Reply{Status: wire.StatusDone})
	return nil
}

func refusedBy(queue string) wire.Reply {
	return wire.Reply{Status: wire.StatusUnavailable, Error: "service_unavailable",
		Reason: fmt.Sprintf("queue %q refused the job, or did not answer (it may be full, or down): the job is pending; if the queue did not answer, it may have the job all the same", queue)}
}

// kill buries an entry; once the burial is confirmed the journal gets the entry's bytes, so that it can be undone, and only then is nothing
// open about it any more.
func (a *actions) kill(now time.Time, cmd wire.Command, s *tracker.Stored, e *wire.Entry, o order, answer func(wire.Reply)) error {
	o.op = wire.OpBuried
	o.refused = func() { answer(refusedBy(wire.DeadJobs)) }
	o.folded = nil
	o.confirmed = func(burial *ledger.Publish) {
		at := ledger.ID(s.Stream, s.Offset)
		r := killed(at, wire.JIDTag(s.JID), e)
		r.DiedAt = wire.Seconds(now)
		a.ledger.NextStep(func() error {
			it := a.noteItem(now, cmd, r, at)
			it.Confirmed, it.Folded = func() { a.ledger.Close(burial) }, func() error { return carriedOut(answer) }
			return a.ledger.Send(it)
		})
	}
	class, message := e.ErrorClass, e.ErrorMessage
	if class == "" {
		class, message = "killed", cmp.Or(cmd.Reason, "killed by "+cmp.Or(cmd.Actor, "an operator"))
	}
	return a.dispatcher.bury(now, s, e, o, class, message)
}

// killed is the record that tells of a kill.
func killed(at spot, tag string, e *wire.Entry) wire.JournalRecord {
	return wire.JournalRecord{Type: wire.TypeKilled, Stream: at.Stream, Offset: at.Offset, JID: tag, Entry: json.RawMessage(e.Raw)}
}

// note journals what a command did, and answers once that is read back.
func (a *actions) note(now time.Time, cmd wire.Command, r wire.JournalRecord, about spot, answer func(wire.Reply)) error {
	it := a.noteItem(now, cmd, r, about)
	it.Folded = func() error { return carriedOut(answer) }
	return a.ledger.Send(it)
}

func (a *actions) noteItem(now time.Time, cmd wire.Command, r wire.JournalRecord, about spot) *ledger.Publish {
	r.Actor, r.Command, r.InOperation, r.Reason = cmd.Actor, cmd.ID, cmd.Operation, cmp.Or(r.Reason, cmd.Reason)
	return a.ledger.NewRecord(now, r, about)
}

func (a *actions) dismiss(now time.Time, cmd wire.Command, answer func(wire.Reply)) error {
	_, ok, err := a.entries.Rejected(cmd.Stream, *cmd.Offset)
	if err != nil {
		return err
	}
	if !ok {
		answer(wire.Reply{Status: wire.StatusNotFound, Error: "not_found", Reason: "no such rejected record is kept"})
		return nil
	}
	return a.note(now, cmd, wire.JournalRecord{Type: wire.TypeDismissed, Stream: cmd.Stream, Offset: *cmd.Offset}, spot{}, answer)
}
