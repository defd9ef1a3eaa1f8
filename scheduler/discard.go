package scheduler

import (
	"cmp"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// discard deletes what is held and due, a batch at a time, and releases the rest.
type discard struct {
	cmd    wire.Command
	answer func(wire.Reply)
	left   []spot
}

func (c *core) beginDiscard(now time.Time, cmd wire.Command, answer func(wire.Reply)) error {
	if c.ending(answer) {
		return nil
	}
	d := &discard{cmd: cmd, answer: answer}
	for _, queue := range c.entries.Queues() {
		err := c.entries.Due(queue, tracker.DueKey{}, func(key tracker.DueKey) bool {
			if key.At.After(now) {
				return false
			}
			if c.entries.IsHeld(key.Stream, key.Offset) {
				d.left = append(d.left, ledger.ID(key.Stream, key.Offset))
			}
			return true
		})
		if err != nil {
			return err
		}
	}
	c.discarded = d
	return nil
}

// continueDiscard goes on with a discard as far as the window allows.
func (c *core) continueDiscard(now time.Time) error {
	d := c.discarded
	for d != nil && len(d.left) > 0 && c.ledger.Room() {
		at := d.left[0]
		d.left = d.left[1:]
		s, err := c.entries.Get(at.Stream, at.Offset)
		if err != nil {
			return err
		}
		if s == nil || c.ledger.Busy(at) != nil {
			continue
		}
		r := wire.JournalRecord{Type: wire.TypeDeleted, Stream: at.Stream, Offset: at.Offset, JID: wire.JIDTag(s.JID),
			Actor: d.cmd.Actor, Reason: cmp.Or(d.cmd.Reason, "discarded after a gap in the journal"), Entry: s.Raw}
		if err := c.ledger.Record(now, r, at); err != nil {
			return err
		}
	}
	if d == nil || len(d.left) > 0 {
		return nil
	}
	c.discarded = nil
	return c.beginRelease(now, d.cmd, d.answer)
}
