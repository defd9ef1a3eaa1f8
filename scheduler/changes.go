package scheduler

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// A change replaces an entry by a later one in the same stream. The stream alone decides: each
// leader that has read it fires the new entry and never the old one. The journal gets a record
// afterwards, with the old bytes. If the leader ends in between, the next one writes the record.

// changes publishes entries that replace others, and journals them when the view has read them.
type changes struct {
	base
	enqueues  *enqueues
	periodics *periodics
	replacing map[ledger.EntryID]*replacement // by the old entry
	lookedAt  time.Time                       // when it was last checked which were read back
}

// replacement is an entry on its way that replaces another. The old entry is busy until the view
// has read it.
type replacement struct {
	sent   *ledger.Publish
	entry  json.RawMessage // the old entry, for the journal
	reason string
	unique wire.UniqueID // the key of the job that comes
	answer func(wire.Reply)
}

// change publishes an entry with some of it changed. A parked one is tried again then.
func (c *changes) change(t target) error {
	s := t.old
	if c.entries.IsHeld(s.Stream, s.Offset) {
		return t.reply(conflict("it is held since the journal lost records: it may have been delivered already; release or delete it first"))
	}
	record, err := changed(t)
	if err != nil {
		return t.reply(badRequest(err.Error()))
	}
	if reply := keepsKey(s, record); reply != nil {
		return t.reply(*reply)
	}
	a := wire.Announcement{What: wire.TypeChanged, Stream: s.Stream, Replaces: s.Offset, JIDTag: wire.JIDTag(s.JID),
		Command: t.cmd.ID, Actor: t.cmd.Actor, Operation: t.cmd.Operation}
	return c.replace(a, s, record, &replacement{entry: t.entry.Raw, reason: t.cmd.Reason, answer: t.answer})
}

// changed returns the record of an entry with the changes that were asked for.
func changed(t target) ([]byte, error) {
	changes, err := wire.ParseChanges(t.old.Stream, t.cmd.Changes)
	if err != nil {
		return nil, err
	}
	return t.entry.Change(changes)
}

// keepsKey returns why a unique job cannot be changed: it would have another key, or it is not
// decided whether it has the one that it names. It returns nil if it can.
func keepsKey(s *tracker.Stored, record []byte) *wire.Reply {
	if s.Undecided {
		return &busyNow
	}
	if s.Unique == "" || s.Stream == wire.DeadJobs {
		return nil
	}
	e, err := wire.ParseEntry(s.Stream, s.Offset, record)
	if err != nil || wire.UniqueIDOf(&e.Job) == s.Unique {
		return nil //nolint:nilerr // its stream lists it as rejected
	}
	return new(conflict("the change would give the unique job another key: delete it, and enqueue a new one"))
}

// takesKey reports whether an entry with a key is on its way.
func (c *changes) takesKey(key wire.UniqueID) bool {
	for _, r := range c.replacing {
		if r.unique == key {
			return true
		}
	}
	return false
}

// replace publishes an entry that replaces an older one.
func (c *changes) replace(a wire.Announcement, old *tracker.Stored, record []byte, r *replacement) error {
	headers := a.Headers(c.ledger.Epoch())
	inherit(headers, old, a.What)
	at := ledger.ID(a.Stream, a.Replaces)
	r.sent = &ledger.Publish{Plain: true, Returned: indeterminate(at.Stream), Size: len(record), Entry: at,
		Build: func(int64, int64) wire.Message { return wire.Carry(a.Stream, old.JID, record, headers) }}
	err := c.ledger.Send(r.sent)
	if errors.Is(err, broker.ErrUnpublishable) {
		r.answer(badRequest(err.Error()))
		return nil
	}
	if err != nil {
		return err
	}
	c.ledger.Hold(r.sent, at)
	if a.Dead != nil {
		c.ledger.Hold(r.sent, ledger.ID(wire.DeadJobs, *a.Dead))
	}
	c.replacing[at] = r
	return nil
}

// indeterminate ends the epoch if a stream refuses an entry: it may have been written.
func indeterminate(stream string) func(time.Time, string, bool) error {
	return func(time.Time, string, bool) error { return fmt.Errorf("%w: %s", errIndeterminate, stream) }
}

// If many are under way, it is not checked in each step which of them were read back.
const (
	fewReplacing = 32
	lookEvery    = 10 * time.Millisecond
)

// step journals the replacements that are confirmed and read back.
func (c *changes) step(now time.Time) error {
	under := len(c.replacing) + len(c.enqueues.enqueuing)
	if under == 0 || under > fewReplacing && now.Sub(c.lookedAt) < lookEvery && !now.Before(c.lookedAt) {
		return nil
	}
	c.lookedAt = now
	announced, err := c.entries.Announced()
	if err != nil {
		return err
	}
	for _, a := range announced {
		if a.What == wire.OpEnqueued {
			if under := c.enqueues.enqueuing[a.Key]; under != nil && under.sent.Acked() && !under.journaled {
				under.journaled = true
				if err := c.enqueues.journal(now, a); err != nil {
					return err
				}
			}
			continue
		}
		if a.What == wire.TypeTicked {
			continue
		}
		at := ledger.ID(a.Stream, a.Replaces)
		r := c.replacing[at]
		if r == nil || !r.sent.Acked() {
			continue
		}
		delete(c.replacing, at)
		c.ledger.Free(at)
		if err := c.journal(now, a, r); err != nil {
			return err
		}
	}
	return nil
}

// wake returns when that is to be checked again.
func (c *changes) wake(now time.Time) time.Time {
	if len(c.replacing)+len(c.enqueues.enqueuing) > fewReplacing {
		return now.Add(lookEvery)
	}
	return now.Add(maxSleep)
}

// journal journals a replacement, and answers when that is read back.
func (c *changes) journal(now time.Time, a wire.Announcement, r *replacement) error {
	about, by := ledger.EntryID{}, a.Offset
	if a.Dead != nil {
		s, err := c.entries.Get(wire.DeadJobs, *a.Dead)
		if err != nil {
			return err
		}
		about = ledger.ID(wire.DeadJobs, *a.Dead)
		if s == nil || wire.JIDTag(s.JID) != a.JIDTag { // dead_jobs was declared again: it is gone
			a.Dead, about = nil, ledger.EntryID{}
		}
	}
	record := a.Record()
	record.Entry, record.Reason = r.entry, r.reason
	return c.ledger.RecordThen(now, record, about, func() error {
		if r.answer != nil {
			r.answer(wire.Reply{Status: wire.StatusOK, Entry: &by})
		}
		return nil
	})
}

// journalOthers journals the replacements of earlier leaders that ended before they could.
func (c *changes) journalOthers(now time.Time) error {
	announced, err := c.entries.Announced()
	if err != nil {
		return err
	}
	fetches := true
	for _, a := range announced {
		if a.What == wire.OpEnqueued {
			if err := c.enqueues.journal(now, a); err != nil {
				return err
			}
			continue
		}
		if a.What == wire.TypeTicked {
			if err := c.periodics.journalOne(now, a); err != nil {
				return err
			}
			continue
		}
		r := &replacement{reason: "journaled by the leader that followed"}
		if a.What == wire.TypeChanged && fetches {
			r.entry, fetches = c.entryAt(a.Stream, a.Replaces, a.JIDTag)
		}
		if err := c.journal(now, a, r); err != nil {
			return err
		}
	}
	return nil
}

// unjournaled reports whether a replacement at or below a cut is not journaled yet. Low water would
// forget it.
func (c *changes) unjournaled(cut map[string]int64) (bool, error) {
	announced, err := c.entries.Announced()
	for _, a := range announced {
		if a.Offset <= cut[a.Stream] {
			return true, err
		}
	}
	return false, err
}
