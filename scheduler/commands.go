package scheduler

import (
	"errors"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// commands carries out commands, each once.
type commands struct {
	base
	queues     *dueQueues
	reconciler *reconciler
	dispatcher *dispatcher
	actions    *actions
	verbs      map[string]verb               // the commands that are not about one entry
	waiting    map[string][]func(wire.Reply) // the answers to commands under way, by id
}

// verb carries out one kind of command.
type verb func(now time.Time, r request) error

// take carries out a command. If it comes again while it is under way, it is answered with the
// first.
func (c *commands) take(now time.Time, r request) error {
	c.counters.Commands++
	if id := r.cmd.ID; id != "" {
		waiting, running := c.waiting[id]
		if c.waiting[id] = append(waiting, r.answer); running {
			return nil
		}
		r.answer = c.answerAll(id)
	}
	return c.whenKnown(now, r)
}

// whenKnown carries out a command about an entry when it is known whether the last record about
// that entry stands: it may be refused yet, or be taken back.
func (c *commands) whenKnown(now time.Time, r request) error {
	if r.cmd.JID == "" {
		return c.carryOut(now, r)
	}
	h, err := c.entries.LastOutcome(r.cmd.Stream, r.cmd.JID)
	if err != nil {
		return err
	}
	if h == nil {
		return c.carryOut(now, r)
	}
	if at := ledger.ID(r.cmd.Stream, h.Offset); c.ledger.Busy(at) == nil && !c.reconciler.mayRefire(at) {
		return c.carryOut(now, r)
	}
	c.ledger.NextStep(func() error { return c.whenKnown(c.ledger.Now(), r) })
	return nil
}

// carryOut carries out a command, unless the journal says that it was.
func (c *commands) carryOut(now time.Time, r request) error {
	if r.cmd.ID != "" {
		if done, err := c.entries.CarriedOut(r.cmd.ID); err != nil || done {
			r.answer(wire.Reply{Status: wire.StatusDone, Repeated: true})
			return err
		}
	}
	if do := c.verbs[r.cmd.Command]; do != nil {
		return do(now, r)
	}
	return c.onEntry(now, r)
}

// onEntry carries out a command about an entry.
func (c *commands) onEntry(now time.Time, r request) error {
	s, e, reply, err := c.find(now, r.cmd)
	if err != nil {
		return err
	}
	if reply != nil {
		return r.reply(*reply)
	}
	if fires := r.cmd.Command == wire.CommandTrigger || r.cmd.Command == wire.CommandRetry; fires && !c.queues.of(s.Queue).bound {
		return c.queues.whenBound(now, s.Queue, func(fault error) error {
			if fault != nil {
				return r.reply(unavailable(fmt.Sprintf("queue %q takes no job: %v: it is pending as before", s.Queue, fault)))
			}
			return c.carryOut(c.ledger.Now(), r)
		})
	}
	return c.actions.act(now, target{r, s, e})
}

// ping answers that there is a leader.
func ping(_ time.Time, r request) error { return r.done() }

// answerAll answers everyone who sent the same command.
func (c *commands) answerAll(id string) func(wire.Reply) {
	return func(r wire.Reply) {
		waiting := c.waiting[id]
		delete(c.waiting, id)
		for _, answer := range waiting {
			answer(r)
			r.Repeated = true
		}
	}
}

// find returns the entry that a command is about, or a reply that says why there is none.
func (c *commands) find(now time.Time, cmd wire.Command) (*tracker.Stored, *wire.Entry, *wire.Reply, error) {
	found, err := c.candidates(cmd)
	if err == nil && len(found) > 1 {
		found, err = c.dispatcher.withoutRepeats(now, found)
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
		return nil, nil, new(unavailable("the entry's record cannot be read from its stream")), nil
	}
	return s, e, nil, nil
}

// candidates returns the pending entries that a command may be about.
func (c *commands) candidates(cmd wire.Command) ([]*tracker.Stored, error) {
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

// pick returns the only entry, or the one with the offset that the command names.
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

// gone returns the reply for an entry that is not pending.
func (c *commands) gone(cmd wire.Command) (*wire.Reply, error) {
	happened, err := c.entries.LastOutcome(cmd.Stream, cmd.JID)
	if err != nil {
		return nil, err
	}
	reason := fmt.Sprintf("%s has no entry with this jid", cmd.Stream)
	if happened != nil {
		reason = fmt.Sprintf("%s: it was %s", reason, happened.What)
	}
	return new(about(happened, notFound(reason))), nil
}
