package scheduler

import (
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// A gap: the journal has lost records, so nobody knows of what stands in the entry streams whether it was done. The leader that finds one
// holds all of it, and then says where that ends. What is held never fires by itself: an operator releases or discards it.

// release is the end of a hold: whatever is pending is appended again and low water is moved above the rest, so that what the journal
// lacks is missed by nobody any more, and then the journal says that nothing is held.
type release struct {
	record wire.JournalRecord
	answer func(wire.Reply)
}

func (c *core) beginRelease(now time.Time, cmd wire.Command, answer func(wire.Reply)) error {
	if c.ending(answer) {
		return nil
	}
	c.releasing = &release{answer: answer, record: wire.JournalRecord{Type: wire.TypeReleased, Actor: cmd.Actor, Reason: cmd.Reason, Command: cmd.ID}}
	if len(c.entries.State().Held) == 0 {
		return c.endRelease(now)
	}
	return c.beginCarry(0) // somebody waits for it
}

// ending tells whether a hold is being ended already, and says so to whoever asks for it again.
func (c *core) ending(answer func(wire.Reply)) bool {
	ending := c.releasing != nil || c.discarded != nil
	if ending {
		answer(wire.Reply{Status: wire.StatusConflict, Error: "conflict", Reason: "what is held is being released or discarded already"})
	}
	return ending
}

func (c *core) endRelease(now time.Time) error {
	done := c.releasing
	if done == nil {
		return nil
	}
	c.releasing = nil
	return c.ledger.RecordThen(now, done.record, spot{}, func() error { return carriedOut(done.answer) })
}

// decideGap carries out what was configured for entries that are held because of a gap.
func (c *core) decideGap(now time.Time) error {
	if len(c.entries.State().Held) == 0 {
		return nil
	}
	nobody := func(wire.Reply) {}
	switch c.setup.onGap {
	case "fire":
		return c.beginRelease(now, wire.Command{Reason: "on-gap=fire"}, nobody)
	case "discard":
		return c.beginDiscard(now, wire.Command{Reason: "on-gap=discard"}, nobody)
	}
	return nil
}
