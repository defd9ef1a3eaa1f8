package scheduler

import (
	"errors"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// fireDue fires what is due, the queues in turn, until the window is full, a batch is done or nothing is due any more.
func (c *core) fireDue(now time.Time) (wake time.Time, err error) {
	c.lanes.wakeUp(now)
	if len(c.lanes.ring) == 0 || !c.ledger.Room() || c.ledger.Quiet() {
		return c.lanes.next(now.Add(maxSleep)), nil
	}
	moment := c.entries.Moment()
	defer func() { err = errors.Join(err, moment.Close()) }()
	for fired := 0; len(c.lanes.ring) > 0 && c.ledger.Room(); {
		if fired == batch {
			return now, nil
		}
		if c.ledger.Alone() {
			return now.Add(maxSleep), nil
		}
		did, wait, err := c.fireNext(now, moment.Lookup, c.lanes.ring[0])
		if err != nil {
			return now, err
		}
		if wait {
			return now.Add(maxSleep), nil
		}
		if did {
			fired++
		}
	}
	return c.lanes.next(now.Add(maxSleep)), nil
}

// fireNext fires one entry of a lane, or takes the lane out of the ring. wait tells that the window must drain first.
func (c *core) fireNext(now time.Time, entries tracker.Lookup, ln *lane) (did, wait bool, err error) {
	if ln.flying == 0 {
		ln.limit = c.setup.window(ln.queue)
	}
	if ln.full = ln.flying >= ln.limit; ln.full || ln.Silent && !ln.trying || ln.trial && ln.flying > ln.Aside {
		c.lanes.leave(time.Time{})
		return false, false, nil
	}
	key, ok, err := c.head(entries, ln)
	if err != nil {
		return false, false, err
	}
	if !ok {
		c.lanes.leave(time.Time{})
		return false, false, nil
	}
	if !c.prepared(now, key.At, ln) {
		return false, false, nil
	}
	at := ledger.ID(key.Stream, key.Offset)
	if c.ledger.Suspects()[at] > 0 && !c.ledger.Drained() {
		return false, true, nil
	}
	ln.behind, ln.ahead = key, ln.ahead[1:]
	c.lanes.turn()
	return true, false, c.fireDueEntry(now, entries, at, key)
}

// prepared reports whether an entry may be fired now: it is due, and its queue is there. If not, its lane leaves the ring.
func (c *core) prepared(now, at time.Time, ln *lane) bool {
	if ahead := at.Add(-prepareAhead); !ln.bound && ahead.After(now) {
		c.lanes.leave(ahead)
		return false
	}
	ready := c.lanes.isReady(now, ln)
	switch {
	case !ln.due: // it is held now
	case at.After(now):
		c.lanes.leave(at)
	case !ready:
		c.lanes.leave(time.Time{}) // bound wakes it
	default:
		return true
	}
	return false
}

// head is the first entry of a lane that may be fired when it is due.
func (c *core) head(entries tracker.Lookup, ln *lane) (tracker.DueKey, bool, error) {
	for {
		for len(ln.ahead) > 0 {
			key := ln.ahead[0]
			at := ledger.ID(key.Stream, key.Offset)
			waits := c.copies.held && at.Stream == wire.Gated
			if c.ledger.Busy(at) == nil && !waits && !c.entries.IsHeld(at.Stream, at.Offset) {
				return key, true, nil
			}
			ln.behind, ln.ahead = key, ln.ahead[1:]
		}
		err := entries.Due(ln.queue, ln.behind, func(key tracker.DueKey) bool {
			ln.ahead = append(ln.ahead, key)
			return len(ln.ahead) < look
		})
		if err != nil || len(ln.ahead) == 0 {
			return tracker.DueKey{}, false, err
		}
	}
}

func (c *core) fireDueEntry(now time.Time, entries tracker.Lookup, at spot, key tracker.DueKey) error {
	s, err := entries.Get(at.Stream, at.Offset)
	if err != nil || s == nil {
		return err
	}
	if pending, err := entries.Pending(s); err != nil || !pending {
		delete(c.unfetched, at)
		return err // a command was quicker: the lane had looked ahead
	}
	if busy, err := c.isBusy(s); err != nil || busy {
		return err // it is a copy: decideCopies has the lane look again
	}
	e, err := c.read(s)
	if errors.Is(err, errFetch) {
		return c.postpone(now, at, key, err)
	}
	if err != nil {
		return err
	}
	delete(c.unfetched, at)
	if c.ledger.Suspects()[at] >= maxKills {
		return c.refuse(now, s, c.kills(at))
	}
	if e == nil {
		return c.refuse(now, s, "its record cannot be read any more")
	}
	if err := c.dropRepeats(now, entries, s, e); err != nil {
		return err
	}
	if !e.Job.ExpiresAt.IsZero() && e.Job.ExpiresAt.Before(now) {
		return c.expire(now, s, e)
	}
	c.late = now.Sub(key.At)
	c.counters.FireDelays.note(c.late)
	return c.fire(now, s, e, order{op: wire.OpFired, key: key})
}

// postpone holds the queue of an entry whose record cannot be fetched now, and parks the entry in the end.
func (c *core) postpone(now time.Time, at spot, key tracker.DueKey, why error) error {
	s, err := c.entries.Get(at.Stream, at.Offset)
	if err != nil || s == nil {
		return err
	}
	if c.unfetched[at]++; c.unfetched[at] >= maxUnfetched {
		delete(c.unfetched, at)
		return c.refuse(now, s, why.Error())
	}
	ln := c.lanes.of(s.Queue)
	c.lanes.look(ln, key)
	c.lanes.hold(ln, now, why.Error(), maxHold)
	return nil
}

// maxKills is how many connections may die while an entry is in flight, before it is not tried again.
const maxKills = 2

func (c *core) kills(at spot) string {
	return fmt.Sprintf("the connection died %d times while this was being published", c.ledger.Suspects()[at])
}

// order is what a fire or burial is for.
type order struct {
	op        string
	key       tracker.DueKey
	actor     string
	command   string
	operation string
	refused   func()                // if it comes back
	folded    func() error          // once it is read back; a command is answered then
	confirmed func(*ledger.Publish) // once it is confirmed; its number stays open then
	doubt     *tracker.Doubt        // of a fire that is repeated
}

// fire publishes an entry's job to its queue and the journal.
func (c *core) fire(now time.Time, s *tracker.Stored, e *wire.Entry, o order) error {
	body, err := e.Body(now)
	if err != nil {
		if o.refused != nil {
			o.refused()
		}
		return c.refuse(now, s, err.Error())
	}
	ln := c.lanes.of(e.Job.Queue)
	d := c.newDispatch(s, o, func(seq, confirmed int64) wire.Message {
		m := wire.Fire(&e.Job, c.deed(s, o, seq, confirmed), body, now)
		if s.Trace != "" {
			m.Headers[wire.HeaderTraceparent] = s.Trace
		}
		return m
	})
	d.lane, d.operation, d.Folded, d.doubt = ln, o.operation, o.folded, o.doubt
	err = c.dispatch(d)
	if errors.Is(err, broker.ErrUnpublishable) {
		if o.refused != nil {
			o.refused()
		}
		return c.refuse(now, s, err.Error())
	}
	c.counters.Fired++
	ln.trying = false
	return err
}

// bury publishes an entry's job to the dead jobs and the journal.
func (c *core) bury(now time.Time, s *tracker.Stored, e *wire.Entry, o order, class, message string) error {
	body, err := e.Dead(now, class, message)
	if err != nil {
		if o.refused != nil {
			o.refused()
		}
		return c.refuse(now, s, err.Error())
	}
	d := c.newDispatch(s, o, func(seq, confirmed int64) wire.Message {
		return wire.Bury(&e.Job, c.deed(s, o, seq, confirmed), body, now)
	})
	d.buries = true
	if o.confirmed != nil {
		d.KeepOpen, d.Confirmed = true, func() { o.confirmed(d.Publish) }
	}
	if o.op == wire.OpExpired { // nobody waits for an answer: it is tried again in its queue's turn
		d.lane = c.lanes.of(s.Queue)
	}
	err = c.dispatch(d)
	if !errors.Is(err, broker.ErrUnpublishable) {
		return err
	}
	if o.refused != nil {
		o.refused()
	}
	return c.refuse(now, s, err.Error())
}

func (c *core) newDispatch(s *tracker.Stored, o order, build func(seq, confirmed int64) wire.Message) *dispatched {
	return &dispatched{Publish: &ledger.Publish{Entry: ledger.ID(s.Stream, s.Offset), Build: build}, key: o.key,
		tag: wire.JIDTag(s.JID), command: o.command, refused: o.refused}
}

func (c *core) deed(s *tracker.Stored, o order, seq, confirmed int64) wire.Deed {
	return wire.Deed{Op: o.op, Stream: s.Stream, Offset: s.Offset, JIDTag: wire.JIDTag(s.JID),
		Epoch: c.ledger.Epoch(), Seq: seq, Confirmed: confirmed, Actor: o.actor, Command: o.command, Operation: o.operation}
}

// refuse parks an entry that the broker cannot take: it is shown with the reason and not tried again by itself.
func (c *core) refuse(now time.Time, s *tracker.Stored, reason string) error {
	c.counters.Refused++
	delete(c.ledger.Suspects(), ledger.ID(s.Stream, s.Offset))
	r := wire.JournalRecord{Type: wire.TypeRefused, Stream: s.Stream, Offset: s.Offset, JID: wire.JIDTag(s.JID), Error: reason}
	return c.ledger.Record(now, r, ledger.ID(s.Stream, s.Offset))
}

// expire is what becomes of a job that is due too late.
func (c *core) expire(now time.Time, s *tracker.Stored, e *wire.Entry) error {
	if e.Job.Dead {
		key := tracker.DueKey{At: s.At, Stream: s.Stream, Offset: s.Offset}
		return c.bury(now, s, e, order{op: wire.OpExpired, key: key}, "expired", "the job was due after its expires_at")
	}
	r := wire.JournalRecord{Type: wire.TypeExpired, Stream: s.Stream, Offset: s.Offset, JID: wire.JIDTag(s.JID)}
	return c.ledger.Record(now, r, ledger.ID(s.Stream, s.Offset))
}

// dropRepeats journals that other pending entries are the same publish as this one, repeated.
func (c *core) dropRepeats(now time.Time, entries tracker.Lookup, s *tracker.Stored, e *wire.Entry) error {
	if repeated, err := entries.Repeated(s.Stream, s.JID); err != nil || !repeated {
		return err
	}
	twins, err := c.entries.Near(s.Stream, s.JID, s.Offset, maxTwins)
	if err != nil {
		return err
	}
	for _, twin := range twins {
		at := ledger.ID(twin.Stream, twin.Offset)
		if twin.Offset == s.Offset || c.ledger.Busy(at) != nil || twin.Parked != "" || !alike(s, twin) {
			continue
		}
		_, other, err := c.load(at)
		if err != nil && !errors.Is(err, errFetch) {
			return err
		}
		if other == nil || !wire.SamePublish(*e, *other) {
			continue
		}
		r := wire.JournalRecord{Type: wire.TypeDuplicate, Stream: twin.Stream, Offset: twin.Offset, JID: wire.JIDTag(twin.JID)}
		if err := c.ledger.Record(now, r, at); err != nil {
			return err
		}
	}
	return nil
}

// maxTwins is how many entries with one jid are compared, of those that stand nearest: a publish is repeated soon, while a jid that
// stands for many jobs may have any number of entries.
const maxTwins = 32

// alike tells whether two entries may be the same publish, as far as can be told without reading them.
func alike(a, b *tracker.Stored) bool {
	if a.Stream == wire.Gated { // two fires may find no queue for equal jobs of two entries
		return a.Queue == b.Queue && !a.IsCopy() && !b.IsCopy() || a.IsCopy() && a.Burial.Stream != "" &&
			a.Burial.Stream == b.Burial.Stream && a.Burial.Offset == b.Burial.Offset
	}
	return a.At.Equal(b.At) || a.Stream == wire.Retries && a.Attempt == b.Attempt
}
