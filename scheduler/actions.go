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

// actions does to single entries what commands and operations ask for.
type actions struct {
	base
	dispatcher *dispatcher
	changes    *changes
	uniques    *uniques
}

// onEntry is what is done to an entry, by verb.
var onEntry = map[string]func(*actions, time.Time, target) error{
	wire.CommandTrigger: fires(wire.OpTriggered),
	wire.CommandRetry:   fires(wire.OpRetried),
	wire.CommandKill:    (*actions).kill,
	wire.CommandDelete:  (*actions).delete,
	wire.CommandChange:  func(a *actions, _ time.Time, t target) error { return a.changes.change(t) },
}

// target is a request about an entry, and the entry.
type target struct {
	request
	old   *tracker.Stored
	entry *wire.Entry
}

// act does what is asked for.
func (a *actions) act(now time.Time, t target) error {
	if do := onEntry[t.cmd.Command]; do != nil {
		return do(a, now, t)
	}
	return t.reply(badRequest("command is not known"))
}

// fires returns what fires an entry.
func fires(op string) func(*actions, time.Time, target) error {
	return func(a *actions, now time.Time, t target) error {
		if t.old.Stream == wire.DeadJobs && t.old.Unique != "" {
			if may, err := a.retriesUnique(op, t); err != nil || !may {
				return err
			}
		}
		o := t.purpose(op, t.old.Queue)
		o.folded = t.done
		return a.dispatcher.fire(now, t.old, t.entry, o)
	}
}

// retriesUnique reports whether a dead job that is unique may be fired now. If it is not known yet,
// that is tried again.
func (a *actions) retriesUnique(op string, t target) (may bool, err error) {
	reply, wait, err := a.uniques.refusal(t.old.Unique, t.old.JID)
	switch {
	case err != nil:
		return false, err
	case reply != nil:
		return false, t.reply(*reply)
	case !wait:
		a.uniques.retries(t.old)
		return true, nil
	}
	a.ledger.NextStep(func() error {
		if s, err := a.entries.Get(t.old.Stream, t.old.Offset); err != nil || s == nil || s.JID != t.old.JID || a.ledger.Busy(ledger.ID(s.Stream, s.Offset)) != nil {
			return cmp.Or(err, t.reply(busyNow))
		}
		return fires(op)(a, a.ledger.Now(), t)
	})
	return false, nil
}

// purpose returns what a fire or burial is for that answers a request. queue is who may refuse it.
func (t *target) purpose(op, queue string) purpose {
	return purpose{op: op, actor: t.cmd.Actor, command: t.cmd.ID, operation: t.cmd.Operation,
		key:     tracker.DueKey{At: t.old.At, Stream: t.old.Stream, Offset: t.old.Offset},
		refused: func() { t.answer(refusedBy(queue)) }}
}

func refusedBy(queue string) wire.Reply {
	return unavailable(fmt.Sprintf("queue %q refused the job, or did not answer (it may be full, or down): the job is pending; if the queue did not answer, it may still have the job", queue))
}

// delete journals that an entry is deleted, with its bytes.
func (a *actions) delete(now time.Time, t target) error {
	r := recordOf(wire.TypeDeleted, t.old)
	r.Entry, r.Sender = json.RawMessage(t.entry.Raw), t.old.Sender
	return a.note(now, t.request, r, ledger.ID(t.old.Stream, t.old.Offset))
}

// kill buries an entry. When the view has the burial, the journal gets the bytes of the entry, so
// that the kill can be undone. The number of the burial stays open until the view has those too.
func (a *actions) kill(now time.Time, t target) error {
	at, e := ledger.ID(t.old.Stream, t.old.Offset), t.entry
	o := t.purpose(wire.OpBuried, wire.DeadJobs)
	o.confirmed = func(burial *ledger.Publish) {
		r := killed(at, wire.JIDTag(t.old.JID), e)
		r.DiedAt = wire.Seconds(now)
		note := func() error {
			it := a.noteItem(now, t.cmd, r, at)
			it.Folded = func() error {
				a.ledger.Close(burial)
				return t.done()
			}
			return a.ledger.Send(it)
		}
		a.ledger.NextStep(func() error { return a.ledger.AfterFold(burial.Seq(), note) })
	}
	class, message := e.ErrorClass, e.ErrorMessage
	if class == "" {
		class, message = "killed", cmp.Or(t.cmd.Reason, "killed by "+cmp.Or(t.cmd.Actor, "an operator"))
	}
	return a.dispatcher.bury(now, t.old, e, o, class, message)
}

// killed returns the record of a kill.
func killed(at ledger.EntryID, tag string, e *wire.Entry) wire.JournalRecord {
	return wire.JournalRecord{Type: wire.TypeKilled, Stream: at.Stream, Offset: at.Offset, JID: tag, Entry: json.RawMessage(e.Raw)}
}

// note journals what a request did, and answers when that is read back.
func (a *actions) note(now time.Time, by request, r wire.JournalRecord, about ledger.EntryID) error {
	it := a.noteItem(now, by.cmd, r, about)
	it.Folded = by.done
	return a.ledger.Send(it)
}

// noteItem returns the record of what a command did.
func (a *actions) noteItem(now time.Time, cmd wire.Command, r wire.JournalRecord, about ledger.EntryID) *ledger.Publish {
	r.Actor, r.Command, r.InOperation, r.Reason = cmd.Actor, cmd.ID, cmd.Operation, cmp.Or(r.Reason, cmd.Reason)
	return a.ledger.NewRecord(now, r, about)
}

// journal journals what a sidecar did.
func (a *actions) journal(now time.Time, r request) error {
	return a.note(now, r, wire.JournalRecord{Type: wire.TypeNoted, Noted: r.cmd.Noted}, ledger.EntryID{})
}

// dismiss journals that a rejected record is not shown any more.
func (a *actions) dismiss(now time.Time, r request) error {
	stream, offset := r.cmd.Stream, *r.cmd.Offset
	_, ok, err := a.entries.Rejected(stream, offset)
	if err != nil {
		return err
	}
	if !ok {
		return r.reply(notFound("no such rejected record is kept"))
	}
	return a.note(now, r, wire.JournalRecord{Type: wire.TypeDismissed, Stream: stream, Offset: offset}, ledger.EntryID{})
}
