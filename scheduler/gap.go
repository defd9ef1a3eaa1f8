package scheduler

import (
	"cmp"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// A gap: the journal has lost records, so nobody knows of what stands in the entry streams whether it was done. The leader that finds one
// holds all of it, and then says where that ends. What is held never fires by itself: an operator releases or discards it.

// gap ends holds.
type gap struct {
	base
	carry     *carrier
	releasing *release
	discarded *discard
}

// release is the end of a hold: whatever is pending is appended again and low water is moved above the rest, so that what the journal
// lacks is missed by nobody any more, and then the journal says that nothing is held.
type release struct {
	record wire.JournalRecord
	answer func(wire.Reply)
}

func (g *gap) beginRelease(now time.Time, cmd wire.Command, answer func(wire.Reply)) error {
	if g.ending(answer) {
		return nil
	}
	g.releasing = &release{answer: answer, record: wire.JournalRecord{Type: wire.TypeReleased, Actor: cmd.Actor, Reason: cmd.Reason, Command: cmd.ID}}
	if len(g.entries.State().Held) == 0 {
		return g.endRelease(now)
	}
	return g.carry.begin(0) // somebody waits for it
}

// ending tells whether a hold is being ended already, and says so to whoever asks for it again.
func (g *gap) ending(answer func(wire.Reply)) bool {
	ending := g.releasing != nil || g.discarded != nil
	if ending {
		answer(wire.Reply{Status: wire.StatusConflict, Error: "conflict", Reason: "what is held is being released or discarded already"})
	}
	return ending
}

func (g *gap) endRelease(now time.Time) error {
	done := g.releasing
	if done == nil {
		return nil
	}
	g.releasing = nil
	return g.ledger.RecordThen(now, done.record, spot{}, func() error { return carriedOut(done.answer) })
}

// decide carries out what was configured for entries that are held because of a gap.
func (g *gap) decide(now time.Time) error {
	if len(g.entries.State().Held) == 0 {
		return nil
	}
	nobody := func(wire.Reply) {}
	switch g.setup.onGap {
	case "fire":
		return g.beginRelease(now, wire.Command{Reason: "on-gap=fire"}, nobody)
	case "discard":
		return g.beginDiscard(now, wire.Command{Reason: "on-gap=discard"}, nobody)
	}
	return nil
}

// discard deletes what is held and due, a batch at a time, and releases the rest.
type discard struct {
	cmd    wire.Command
	answer func(wire.Reply)
	left   []spot
}

func (g *gap) beginDiscard(now time.Time, cmd wire.Command, answer func(wire.Reply)) error {
	if g.ending(answer) {
		return nil
	}
	d := &discard{cmd: cmd, answer: answer}
	for _, queue := range g.entries.Queues() {
		err := g.entries.Due(queue, tracker.DueKey{}, func(key tracker.DueKey) bool {
			if key.At.After(now) {
				return false
			}
			if g.entries.IsHeld(key.Stream, key.Offset) {
				d.left = append(d.left, ledger.ID(key.Stream, key.Offset))
			}
			return true
		})
		if err != nil {
			return err
		}
	}
	g.discarded = d
	return nil
}

// step goes on with a discard as far as the window allows.
func (g *gap) step(now time.Time) error {
	d := g.discarded
	for d != nil && len(d.left) > 0 && g.ledger.Room() {
		at := d.left[0]
		d.left = d.left[1:]
		s, err := g.entries.Get(at.Stream, at.Offset)
		if err != nil {
			return err
		}
		if s == nil || g.ledger.Busy(at) != nil {
			continue
		}
		r := wire.JournalRecord{Type: wire.TypeDeleted, Stream: at.Stream, Offset: at.Offset, JID: wire.JIDTag(s.JID),
			Actor: d.cmd.Actor, Reason: cmp.Or(d.cmd.Reason, "discarded after a gap in the journal"), Entry: s.Raw}
		if err := g.ledger.Record(now, r, at); err != nil {
			return err
		}
	}
	if d == nil || len(d.left) > 0 {
		return nil
	}
	g.discarded = nil
	return g.beginRelease(now, d.cmd, d.answer)
}
