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
type release struct{ request }

func (g *gap) beginRelease(now time.Time, r request) error {
	if g.ending() {
		return r.reply(endingAlready)
	}
	g.releasing = &release{r}
	if len(g.entries.State().Held) == 0 {
		return g.endRelease(now)
	}
	return g.carry.begin(0) // somebody waits for it
}

// ending reports whether a hold is being ended already.
func (g *gap) ending() bool { return g.releasing != nil || g.discarded != nil }

var endingAlready = conflict("what is held is being released or discarded already")

func (g *gap) endRelease(now time.Time) error {
	r := g.releasing
	if r == nil {
		return nil
	}
	g.releasing = nil
	record := wire.JournalRecord{Type: wire.TypeReleased, Actor: r.cmd.Actor, Reason: r.cmd.Reason, Command: r.cmd.ID}
	return g.ledger.RecordThen(now, record, ledger.EntryID{}, r.done)
}

// decide carries out what was configured for entries that are held because of a gap.
func (g *gap) decide(now time.Time) error {
	if len(g.entries.State().Held) == 0 {
		return nil
	}
	configured := request{wire.Command{Reason: "on-gap=" + g.setup.onGap}, func(wire.Reply) {}}
	switch g.setup.onGap {
	case "fire":
		return g.beginRelease(now, configured)
	case "discard":
		return g.beginDiscard(now, configured)
	}
	return nil
}

// discard deletes what is held and due, a batch at a time, and releases the rest.
type discard struct {
	request
	left []ledger.EntryID
}

func (g *gap) beginDiscard(now time.Time, r request) error {
	if g.ending() {
		return r.reply(endingAlready)
	}
	d := &discard{request: r}
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
	return g.beginRelease(now, d.request)
}
