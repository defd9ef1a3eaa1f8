package scheduler

import (
	"cmp"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// After a gap the journal lacks records, so it is not known which entries were done. The leader
// that finds a gap holds all entries, and journals where the hold ends. A held entry never fires by
// itself: an administrator releases or discards it.

// gap ends a hold.
type gap struct {
	base
	carry     *carrier
	releasing *release
	discarded *discard
}

// release is a release under way. Pending entries are carried over and low water is moved above the
// gap; then the journal says that nothing is held.
type release struct{ request }

// beginRelease releases what is held.
func (g *gap) beginRelease(now time.Time, r request) error {
	if g.ending() {
		return r.reply(endingAlready)
	}
	g.releasing = &release{r}
	if len(g.entries.State().Held) == 0 {
		return g.endRelease(now)
	}
	return g.carry.begin(0) // a user waits for it
}

// ending reports whether a hold is being ended already.
func (g *gap) ending() bool { return g.releasing != nil || g.discarded != nil }

var endingAlready = conflict("what is held is being released or discarded already")

// endRelease journals that nothing is held, after the carry-over of a release.
func (g *gap) endRelease(now time.Time) error {
	r := g.releasing
	if r == nil {
		return nil
	}
	g.releasing = nil
	record := wire.JournalRecord{Type: wire.TypeReleased, Actor: r.cmd.Actor, Reason: r.cmd.Reason, Command: r.cmd.ID}
	return g.ledger.RecordThen(now, record, ledger.EntryID{}, r.done)
}

// decide does what is configured for held entries.
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

// discard is a discard under way: held entries that are due are deleted, a batch at a time, and
// then the others are released.
type discard struct {
	request
	left []ledger.EntryID
}

// beginDiscard deletes what is held and due.
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

// step continues a discard as far as the window allows.
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
		r := recordOf(wire.TypeDeleted, s)
		r.Actor, r.Reason, r.Entry, r.Sender = d.cmd.Actor, cmp.Or(d.cmd.Reason, "discarded after a gap in the journal"), s.Raw, s.Sender
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
