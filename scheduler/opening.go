package scheduler

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// opening begins an epoch: it appends the record opened, and then a barrier to each entry stream.
type opening struct {
	base
	said      *wire.JournalRecord // the record opened, as it was appended
	before    int64               // the newest epoch when that was appended
	unread    time.Time           // since when the view could have read it
	least     int64               // the lowest epoch that will do
	awaits    map[string]*awaited // by stream, what the view must read next
	losses    map[string]int      // by stream, how many of these it has lost
	unseen    []string            // the streams of which the view has not read the barrier
	raised    map[string]int64    // how far each stream was read when its barrier was appended
	recreated map[string]bool     // the streams of which it was journaled that they are new
	narrowed  bool                // it was journaled where the hold ends
}

// open appends the record that begins the epoch, and reports whether the view has read it. Its
// offset is the number of the epoch. Views that start reading there know the past only from this
// record: if the journal had more than this view had read, it is written again.
func (o *opening) open(now time.Time, state tracker.State) (begun bool, err error) {
	mine := state.Identity == o.setup.identity && state.Epoch >= o.least
	gap := state.Gap(o.setup.base)
	if mine && gap == "" && repeats(o.said, state) {
		o.ledger.Begin(state.Epoch)
		return true, o.raiseBarriers(now)
	}
	if mine {
		o.least, o.said = state.Epoch+1, nil
	}
	if o.said != nil {
		lost := false
		if state.Epoch == o.before {
			lost, err = o.lost(now, wire.Journal)
		}
		if err != nil {
			return false, err
		}
		if !lost {
			return false, o.awaitOpened(now, state)
		}
	}
	o.before, o.unread = state.Epoch, now
	confirmed, err := o.entries.ConfirmedTo() // a failover may lose what was read beyond that
	if err != nil {
		return false, err
	}
	o.said = &wire.JournalRecord{
		Type: wire.TypeOpened, At: wire.Seconds(now), Format: wire.Format, Identity: o.setup.identity,
		LowWater: state.LowWater, Needs: state.Needs, Held: toHold(state, gap), KnownConfirmed: o.setup.known, Probe: o.setup.probeQueue,
		Witness: state.Witness, WitnessFrom: &state.WitnessFrom, Reason: cmp.Or(gap, state.Why), ReadTo: confirmed, RoutedTo: &state.RoutedTo,
	}
	return false, o.append(wire.Journal, *o.said)
}

// awaited is a record that the view must read before the epoch can go on.
type awaited struct {
	confirmed bool
	since     time.Time // when a step found that it was
}

// append appends a record that the view must read.
func (o *opening) append(stream string, r wire.JournalRecord) error {
	if o.awaits == nil {
		o.awaits = map[string]*awaited{}
	}
	a := &awaited{}
	o.awaits[stream] = a
	return o.ledger.Append(stream, r, func() { a.confirmed = true })
}

// answersStale is how long after a failover a stream's new leader may say that the stream ends
// earlier than it does.
const answersStale = time.Second

// mostLosses is how many records of an epoch's beginning a stream may lose. RabbitMQ 3.10 loses one
// shortly after another node leads the stream. It may also confirm everything that a channel sends
// to a stream, and store nothing of it.
const mostLosses = 2

// lost reports whether a stream lacks the record that was appended to it last, although the broker
// has confirmed it. It returns an error if that happens too often: another connection may fare
// better.
func (o *opening) lost(now time.Time, stream string) (bool, error) {
	a := o.awaits[stream]
	if !a.confirmed {
		return false, nil
	}
	if a.since.IsZero() {
		a.since = now
	}
	if !o.setup.hasRead(stream, a.since.Add(answersStale)) {
		return false, nil
	}
	if o.losses == nil {
		o.losses = map[string]int{}
	}
	if o.losses[stream]++; o.losses[stream] > mostLosses {
		return true, fmt.Errorf("%w: the broker has confirmed %d records of %s, one after the other, and has none of them", errResigned, o.losses[stream], stream)
	}
	return true, nil
}

// overtakenAfter is how long the view may lack a claim that the journal took, if it has another's.
const overtakenAfter = 3 * time.Second

// awaitOpened waits until the view has read the record. If the claim of an earlier leader arrived
// behind it, the view never will: that claim was given up, and the broker took it late.
func (o *opening) awaitOpened(now time.Time, state tracker.State) error {
	if _, open := o.ledger.Oldest(); open || state.Epoch == o.before || now.Before(o.unread) {
		o.unread = now
	} else if now.Sub(o.unread) > overtakenAfter {
		return fmt.Errorf("%w: the claim of epoch %d arrived behind this one's", errFenced, state.Epoch)
	}
	return nil
}

// repeats reports whether a record opened says all that the journal said before it.
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

// raiseBarriers appends a barrier to each entry stream. Once the view has read a barrier, it knows
// all that was written before it.
func (o *opening) raiseBarriers(now time.Time) error {
	o.raised = map[string]int64{}
	for _, stream := range wire.EntryStreams {
		at, err := o.entries.Position(stream)
		if err != nil {
			return err
		}
		o.raised[stream] = at
		if err := o.raiseBarrier(now, stream); err != nil {
			return err
		}
	}
	return nil
}

// raiseBarrier appends a barrier to a stream, again if that lost the first one. A view that finds
// both counts one.
func (o *opening) raiseBarrier(now time.Time, stream string) error {
	read := o.raised[stream]
	return o.append(stream, wire.JournalRecord{Type: wire.TypeBarrier, At: wire.Seconds(now), Epoch: o.ledger.Epoch(), Read: &read})
}

// catchUp reports whether the view has read all barriers. A stream is a new one if its barrier is
// below low water, or if it knows no earlier leader and the journal does. A stream with barriers of
// earlier leaders has lost its end instead: what is left of it is settled up to low water.
func (o *opening) catchUp(now time.Time, state tracker.State) (done bool, err error) {
	done, o.unseen = true, nil
	for _, stream := range wire.EntryStreams {
		b, seen := state.Barriers[stream]
		// An epoch of a journal that is gone may have had the same number.
		seen = seen && b.Epoch == o.ledger.Epoch() && b.Offset > o.raised[stream]
		if !seen {
			o.unseen = append(o.unseen, stream)
			lost, err := o.lost(now, stream)
			if err == nil && lost {
				err = o.raiseBarrier(now, stream)
			}
			if err != nil {
				return false, err
			}
		}
		above := b.Offset >= state.LowWater[stream]
		if seen && (!above || state.Foreign(stream, o.setup.base) && !o.recreated[stream]) {
			done = false
			below := int64(0)
			if !above && state.Shortened(stream, o.setup.base) {
				below = b.Offset
			}
			if err := o.startsOver(now, stream, below); err != nil {
				return false, err
			}
		}
		// That a stream is new must be in the journal before anything about its entries is.
		said := !o.recreated[stream] || state.Recreated[stream] == o.ledger.Epoch()
		done = done && seen && above && said
	}
	if !done {
		return false, nil
	}
	known, err := o.narrowHold(now, state)
	if known && err == nil {
		o.ledger.ForgetPlain() // the view has read it: it needs no answer, which may never come
	}
	return known, err
}

// isRecreated journals, once, that a stream was deleted and declared again. What was said about it
// is void, and each view reads it from the start.
func (o *opening) isRecreated(now time.Time, stream string) error {
	return o.startsOver(now, stream, 0)
}

// startsOver journals, once, that what was said about a stream is void. What stands below an offset
// counts as settled.
func (o *opening) startsOver(now time.Time, stream string, below int64) error {
	if o.ledger.Epoch() < 0 || o.recreated[stream] || !slices.Contains(wire.EntryStreams, stream) {
		return nil
	}
	if o.recreated == nil {
		o.recreated = map[string]bool{}
	}
	o.recreated[stream] = true
	o.raised[stream] = -1
	return o.ledger.Record(now, wire.JournalRecord{Type: wire.TypeRecreated, Stream: stream, Below: below}, ledger.EntryID{})
}

// toHold returns what must not fire: what an earlier leader held, and after a gap everything. How
// far that reaches is known when the view has read the barriers.
func toHold(state tracker.State, gap string) map[string]int64 {
	held := maps.Clone(state.Held)
	if gap != "" {
		for _, stream := range wire.EntryStreams {
			held[stream] = wire.Everything
		}
	}
	return held
}

// narrowHold journals that what is held ends at the barriers, and reports whether the view has
// that. An earlier leader may have ended before it could.
func (o *opening) narrowHold(now time.Time, state tracker.State) (known bool, err error) {
	known = true
	for stream, upTo := range state.Held {
		if upTo == wire.Everything {
			state.Held[stream], known = state.Barriers[stream].Offset, false
		}
	}
	if known || o.narrowed {
		return known, nil
	}
	o.narrowed = true
	return false, o.ledger.Record(now, wire.JournalRecord{Type: wire.TypeReleased, Held: state.Held, Reason: "what came after the gap was found"}, ledger.EntryID{})
}
