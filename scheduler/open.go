package scheduler

import (
	"cmp"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// opening is how far an epoch's beginning is.
type opening struct {
	said      *wire.JournalRecord // the record opened, as it was appended
	least     int64               // the lowest epoch that will do
	raised    map[string]int64    // how far each entry stream was folded when its barrier was appended
	recreated map[string]bool     // streams whose re-creation was journaled
	narrowed  bool                // it was journaled where what is held ends
}

// open appends the record that begins the epoch and waits until the view has it. Its offset is the epoch's number. Views that begin to
// read there know of the past what it says: if the view had been behind the journal when it was written, it is written again.
func (c *core) open(now time.Time, state tracker.State) error {
	mine := state.Identity == c.setup.identity && state.Epoch >= c.opening.least
	gap := state.Gap(c.setup.base)
	if mine && gap == "" && repeats(c.opening.said, state) {
		c.ledger.Begin(state.Epoch)
		c.phase = phaseCatching
		return c.raiseBarriers(now)
	}
	if mine {
		c.opening.least, c.opening.said = state.Epoch+1, nil
	}
	if c.opening.said != nil {
		return nil
	}
	confirmed, err := c.entries.ConfirmedTo() // what was read beyond that may be gone after a failover
	if err != nil {
		return err
	}
	c.opening.said = &wire.JournalRecord{
		Type: wire.TypeOpened, At: wire.Seconds(now), Format: wire.Format, Identity: c.setup.identity,
		LowWater: state.LowWater, Needs: state.Needs, Held: toHold(state, gap), KnownConfirmed: c.setup.known, Probe: c.setup.probed,
		Witness: state.Witness, WitnessFrom: &state.WitnessFrom, Reason: cmp.Or(gap, state.Why), ReadTo: confirmed, RoutedTo: &state.RoutedTo,
	}
	return c.ledger.Append(wire.Journal, *c.opening.said)
}

// repeats tells whether a record opened says all that the journal before it did.
func repeats(said *wire.JournalRecord, state tracker.State) bool {
	if said.Witness != state.Witness || said.Needs < state.Needs {
		return false
	}
	return reaches(said.Held, state.Held) && reaches(said.LowWater, state.LowWater)
}

func reaches(said, known map[string]int64) bool {
	for stream, at := range known {
		if upTo, ok := said[stream]; !ok || upTo < at {
			return false
		}
	}
	return true
}

// raiseBarriers appends a barrier to every entry stream. What stands before it is known once it has been folded.
func (c *core) raiseBarriers(now time.Time) error {
	c.opening.raised = map[string]int64{}
	for _, stream := range wire.EntryStreams {
		at, err := c.entries.Position(stream)
		if err != nil {
			return err
		}
		c.opening.raised[stream] = at
		r := wire.JournalRecord{Type: wire.TypeBarrier, At: wire.Seconds(now), Epoch: c.ledger.Epoch(), Read: &at}
		if err := c.ledger.Append(stream, r); err != nil {
			return err
		}
	}
	return nil
}

// catchUp waits until every barrier has been folded. One that lands below low water, or in a stream that knows no earlier leader though
// the journal does, proves that the stream is a new one; unless it has barriers of earlier leaders: then it has lost its end, and what is
// left of it is settled as far as low water said.
func (c *core) catchUp(now time.Time, state tracker.State) error {
	done := true
	for _, stream := range wire.EntryStreams {
		b, seen := state.Barriers[stream]
		seen = seen && b.Epoch == c.ledger.Epoch() && b.Offset > c.opening.raised[stream] // epochs of a journal that is gone may have the same number
		above := b.Offset >= state.LowWater[stream]
		if seen && (!above || state.Foreign(stream, c.setup.base) && !c.opening.recreated[stream]) {
			done = false
			below := int64(0)
			if !above && state.Shortened(stream, c.setup.base) {
				below = b.Offset
			}
			if err := c.beginsAnew(now, stream, below); err != nil {
				return err
			}
		}
		// The journal must have that a stream is a new one before it has anything that is done to its entries, also where it refuses at first.
		said := !c.opening.recreated[stream] || state.Recreated[stream] == c.ledger.Epoch()
		done = done && seen && above && said
	}
	if !done {
		return nil
	}
	if known, err := c.narrowHold(now, state); err != nil || !known {
		return err
	}
	c.phase = phaseWay
	return nil
}

// isRecreated journals, once, that a stream was deleted and made anew: all that was said of it is void, and every view reads it anew.
func (c *core) isRecreated(now time.Time, stream string) error { return c.beginsAnew(now, stream, 0) }

// beginsAnew journals, once, that what was said of a stream is void, but for what stands below an offset: that is settled.
func (c *core) beginsAnew(now time.Time, stream string, below int64) error {
	if c.ledger.Epoch() < 0 || c.opening.recreated[stream] || !slices.Contains(wire.EntryStreams, stream) {
		return nil
	}
	if c.opening.recreated == nil {
		c.opening.recreated = map[string]bool{}
	}
	c.opening.recreated[stream] = true
	c.opening.raised[stream] = -1
	return c.ledger.Record(now, wire.JournalRecord{Type: wire.TypeRecreated, Stream: stream, Below: below}, spot{})
}
