package scheduler

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// command carries out a command, in the loop that fires, so that nothing comes between. answer is called once, as soon as it is known
// what became of it; if the epoch ends before, it is not called, and the caller does not know.
func (c *core) command(now time.Time, cmd wire.Command, answer func(wire.Reply)) error {
	c.counters.Commands++
	if cmd.ID != "" {
		if waiting, running := c.commands[cmd.ID]; running {
			c.commands[cmd.ID] = append(waiting, answer)
			return nil
		}
		c.commands[cmd.ID] = []func(wire.Reply){answer}
		answer = c.answerAll(cmd.ID)
	}
	return c.whenKnown(now, cmd, func(now time.Time) error { return c.carryOut(now, cmd, answer) })
}

// whenKnown has something done about an entry once it is known whether what the journal says happened to it last did happen: it may be refused
// yet, or have been taken back just now.
func (c *core) whenKnown(now time.Time, cmd wire.Command, fn func(now time.Time) error) error {
	if cmd.JID == "" {
		return fn(now)
	}
	h, err := c.entries.Happened(cmd.Stream, cmd.JID)
	if err != nil {
		return err
	}
	if h == nil {
		return fn(now)
	}
	if at := ledger.ID(cmd.Stream, h.Offset); c.ledger.Busy(at) == nil && !c.settling.isUnsettled(at) {
		return fn(now)
	}
	c.ledger.NextStep(func() error { return c.whenKnown(c.ledger.Now(), cmd, fn) })
	return nil
}

func (c *core) carryOut(now time.Time, cmd wire.Command, answer func(wire.Reply)) error {
	if cmd.ID != "" {
		if done, err := c.entries.CarriedOut(cmd.ID); err != nil || done {
			answer(wire.Reply{Status: wire.StatusDone, Repeated: true})
			return err
		}
	}
	switch cmd.Command {
	case wire.CommandPing:
		answer(wire.Reply{Status: wire.StatusDone})
		return nil
	case wire.CommandRelease:
		return c.beginRelease(now, cmd, answer)
	case wire.CommandDiscard:
		return c.beginDiscard(now, cmd, answer)
	case wire.CommandState:
		answer(c.pauses.list())
		return nil
	case wire.CommandEnqueue:
		return c.ledger.AfterFold(c.opened, func() error { return c.enqueue(c.ledger.Now(), cmd, answer) })
	case wire.CommandPause, wire.CommandResume:
		return c.pauses.carryOut(now, cmd, answer)
	case wire.CommandDismiss:
		return c.dismiss(now, cmd, answer)
	case wire.CommandNote:
		return c.note(now, cmd, wire.JournalRecord{Type: wire.TypeNoted, Noted: cmd.Noted}, spot{}, answer)
	case wire.CommandOperate:
		return c.operate(now, cmd, answer)
	case wire.CommandCancel:
		c.cancelOperation(cmd, answer)
		return nil
	case wire.CommandUndo:
		return c.ledger.AfterFold(c.ledger.Seq(), func() error { return c.undo(now, cmd, answer) })
	}
	s, e, reply, err := c.find(now, cmd)
	if err != nil {
		return err
	}
	if reply != nil {
		answer(*reply)
		return nil
	}
	if fires := cmd.Command == wire.CommandTrigger || cmd.Command == wire.CommandRetry; fires && !c.lanes.of(s.Queue).bound {
		return c.lanes.whenBound(now, s.Queue, func(fault error) error {
			if fault != nil {
				answer(wire.Reply{Status: wire.StatusUnavailable, Error: "service_unavailable",
					Reason: fmt.Sprintf("queue %q takes no job: %v: it is pending as before", s.Queue, fault)})
				return nil
			}
			return c.carryOut(c.ledger.Now(), cmd, answer)
		})
	}
	return c.act(now, cmd, s, e, answer)
}

// answerAll answers everybody who asked for the same command.
func (c *core) answerAll(id string) func(wire.Reply) {
	return func(r wire.Reply) {
		waiting := c.commands[id]
		delete(c.commands, id)
		for _, answer := range waiting {
			answer(r)
			r.Repeated = true
		}
	}
}

// find gets the entry that a command is about, or the reply that says why there is none.
func (c *core) find(now time.Time, cmd wire.Command) (*tracker.Stored, *wire.Entry, *wire.Reply, error) {
	found, err := c.candidates(cmd)
	if err == nil && len(found) > 1 {
		found, err = c.withoutRepeats(now, found)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	s, reply := pick(cmd, found)
	if s == nil && reply == nil {
		reply, err = c.gone(cmd)
	}
	if reply != nil || err != nil {
		return nil, nil, reply, err
	}
	if busy, err := c.isBusy(s); err != nil || busy {
		return nil, nil, &busyNow, err
	}
	s, e, err := c.load(ledger.ID(s.Stream, s.Offset))
	if err != nil && !errors.Is(err, errFetch) {
		return nil, nil, nil, err
	}
	if s == nil || e == nil {
		return nil, nil, &wire.Reply{Status: wire.StatusUnavailable, Error: "service_unavailable",
			Reason: "the entry's record cannot be read from its stream"}, nil
	}
	return s, e, nil, nil
}

// candidates are the pending entries that a command may be about.
func (c *core) candidates(cmd wire.Command) ([]*tracker.Stored, error) {
	if cmd.Offset == nil {
		return c.entries.Find(cmd.Stream, cmd.JID)
	}
	s, err := c.current(cmd.Stream, *cmd.Offset)
	if err != nil || s == nil || s.JID != cmd.JID {
		return nil, err
	}
	pending, err := c.entries.Pending(s)
	if err != nil || !pending {
		return nil, err
	}
	return []*tracker.Stored{s}, nil
}

// withoutRepeats journals which entries are the same publish as the first, repeated, and gives the others.
func (c *core) withoutRepeats(now time.Time, found []*tracker.Stored) (rest []*tracker.Stored, err error) {
	first := found[0]
	e, err := c.read(first)
	if err != nil && !errors.Is(err, errFetch) {
		return nil, err
	}
	if e != nil && c.ledger.Busy(ledger.ID(first.Stream, first.Offset)) == nil && first.Parked == "" {
		if err := c.dispatcher.dropRepeats(now, c.entries.Lookup, first, e); err != nil {
			return nil, err
		}
	}
	for _, s := range found {
		if it := c.ledger.Busy(ledger.ID(s.Stream, s.Offset)); it == nil || it.Dispatch || s == first {
			rest = append(rest, s)
		}
	}
	return rest, nil
}

// pick chooses the entry with the offset that the command names, or the only one.
func pick(cmd wire.Command, found []*tracker.Stored) (*tracker.Stored, *wire.Reply) {
	if cmd.Offset != nil || len(found) <= 1 { // of an offset there is one
		if len(found) == 1 {
			return found[0], nil
		}
		return nil, nil
	}
	offsets := make([]int64, len(found))
	for i, s := range found {
		offsets[i] = s.Offset
	}
	return nil, &wire.Reply{Status: wire.StatusConflict, Error: "conflict", Offsets: offsets,
		Reason: fmt.Sprintf("%d entries have this jid: name one by its offset", len(found))}
}

func (c *core) gone(cmd wire.Command) (*wire.Reply, error) {
	happened, err := c.entries.Happened(cmd.Stream, cmd.JID)
	if err != nil {
		return nil, err
	}
	reason := fmt.Sprintf("%s has no entry with this jid", cmd.Stream)
	if happened != nil {
		reason = fmt.Sprintf("%s: it was %s", reason, happened.What)
	}
	return &wire.Reply{Status: wire.StatusNotFound, Error: "not_found", Reason: reason, Happened: happened}, nil
}

// act carries out a command about an entry that is there.
func (c *core) act(now time.Time, cmd wire.Command, s *tracker.Stored, e *wire.Entry, answer func(wire.Reply)) error {
	o := order{actor: cmd.Actor, command: cmd.ID, operation: cmd.Operation, key: tracker.DueKey{At: s.At, Stream: s.Stream, Offset: s.Offset},
		refused: func() { answer(refusedBy(s.Queue)) }, folded: func() error { return carriedOut(answer) }}
	switch cmd.Command {
	case wire.CommandTrigger:
		o.op = wire.OpTriggered
		return c.dispatcher.fire(now, s, e, o)
	case wire.CommandRetry:
		o.op = wire.OpRetried
		return c.dispatcher.fire(now, s, e, o)
	case wire.CommandKill:
		return c.kill(now, cmd, s, e, o, answer)
	case wire.CommandDelete:
		r := wire.JournalRecord{Type: wire.TypeDeleted, Stream: s.Stream, Offset: s.Offset, JID: wire.JIDTag(s.JID), Entry: json.RawMessage(e.Raw)}
		return c.note(now, cmd, r, ledger.ID(s.Stream, s.Offset), answer)
	case wire.CommandChange:
		return c.change(cmd, s, e, answer)
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
func (c *core) kill(now time.Time, cmd wire.Command, s *tracker.Stored, e *wire.Entry, o order, answer func(wire.Reply)) error {
	o.op = wire.OpBuried
	o.refused = func() { answer(refusedBy(wire.DeadJobs)) }
	o.folded = nil
	o.confirmed = func(burial *ledger.Publish) {
		at := ledger.ID(s.Stream, s.Offset)
		r := killed(at, wire.JIDTag(s.JID), e)
		r.DiedAt = wire.Seconds(now)
		c.ledger.NextStep(func() error {
			it := c.noteItem(now, cmd, r, at)
			it.Confirmed, it.Folded = func() { c.ledger.Close(burial) }, func() error { return carriedOut(answer) }
			return c.ledger.Send(it)
		})
	}
	class, message := e.ErrorClass, e.ErrorMessage
	if class == "" {
		class, message = "killed", cmp.Or(cmd.Reason, "killed by "+cmp.Or(cmd.Actor, "an operator"))
	}
	return c.dispatcher.bury(now, s, e, o, class, message)
}

// killed is the record that tells of a kill.
func killed(at spot, tag string, e *wire.Entry) wire.JournalRecord {
	return wire.JournalRecord{Type: wire.TypeKilled, Stream: at.Stream, Offset: at.Offset, JID: tag, Entry: json.RawMessage(e.Raw)}
}

// note journals what a command did, and answers once that is read back.
func (c *core) note(now time.Time, cmd wire.Command, r wire.JournalRecord, about spot, answer func(wire.Reply)) error {
	it := c.noteItem(now, cmd, r, about)
	it.Folded = func() error { return carriedOut(answer) }
	return c.ledger.Send(it)
}

func (c *core) noteItem(now time.Time, cmd wire.Command, r wire.JournalRecord, about spot) *ledger.Publish {
	r.Actor, r.Command, r.InOperation, r.Reason = cmd.Actor, cmd.ID, cmd.Operation, cmp.Or(r.Reason, cmd.Reason)
	return c.ledger.NewRecord(now, r, about)
}

func (c *core) dismiss(now time.Time, cmd wire.Command, answer func(wire.Reply)) error {
	_, ok, err := c.entries.Rejected(cmd.Stream, *cmd.Offset)
	if err != nil {
		return err
	}
	if !ok {
		answer(wire.Reply{Status: wire.StatusNotFound, Error: "not_found", Reason: "no such rejected record is kept"})
		return nil
	}
	return c.note(now, cmd, wire.JournalRecord{Type: wire.TypeDismissed, Stream: cmd.Stream, Offset: *cmd.Offset}, spot{}, answer)
}
