package scheduler

import (
	"errors"
	"math"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// carrier does the carry-over: it appends again each pending entry that stands at or below a cut,
// and then moves low water above the cut. Retention may remove what is below low water.
type carrier struct {
	base
	operations *operations
	pauses     *pauses
	periodics  *periodics
	changes    *changes
	enqueues   *enqueues
	limits     *limits
	uniques    *uniques
	governed   *governed
	gap        *gap
	run        *carryOver // nil if none is under way
}

// carryOver is a carry-over under way.
type carryOver struct {
	cut     map[string]int64
	next    map[string]int64 // where to go on looking
	needs   int64
	sent    []*ledger.Publish // not read back yet
	again   time.Time         // not before
	over    int64             // the newest number when no old entry was left, 0 before
	entries int               // how many were appended
	linger  time.Duration     // how long low water waits when everything is settled
	still   bool              // operations rest
	rested  int64             // the newest number when they had come to rest, -1 before
}

// What a carry-over may take of a step, and of the window.
const (
	carryBatch  = 128
	carryFlight = ledger.MaxOpen / 2
)

// setBack has a carry-over wait no longer because the clock was set back.
func (c *carrier) setBack(by time.Duration) {
	if c.run != nil {
		c.run.again = c.run.again.Add(-by)
	}
}

// begin starts a carry-over, unless one is under way or entries are held: a held entry is known by
// its offset. Low water lingers, since a power failure takes what the broker has not written to its
// disk. It must not take an entry whose original was given up.
func (c *carrier) begin(linger time.Duration) error {
	if c.run != nil || len(c.entries.State().Held) > 0 && c.gap.releasing == nil {
		return nil
	}
	needs, err := c.entries.Position(wire.Journal)
	if err != nil {
		return err
	}
	c.run = &carryOver{cut: map[string]int64{}, next: map[string]int64{}, needs: needs, linger: linger}
	for _, stream := range wire.EntryStreams {
		if c.run.cut[stream], err = c.entries.Position(stream); err != nil {
			return err
		}
		c.run.next[stream] = math.MinInt64
	}
	return nil
}

// step continues a carry-over as far as the window allows.
func (c *carrier) step(now time.Time) error {
	if c.run == nil || now.Before(c.run.again) {
		return nil
	}
	if err := c.readBack(); err != nil {
		return err
	}
	done := true
	for _, stream := range wire.EntryStreams {
		over, err := c.carryStream(now, stream)
		if err != nil {
			return err
		}
		done = done && over
	}
	if !done || len(c.run.sent) > 0 {
		c.run.over = 0
	} else if c.run.over == 0 {
		c.run.over = c.ledger.Seq()
	}
	if c.run.over == 0 || c.entries.State().Confirmed < c.run.over {
		c.run.again = later(c.run.again, now.Add(20*time.Millisecond))
		return nil
	}
	if c.run.linger > 0 {
		c.run.again, c.run.linger = now.Add(c.run.linger), 0
		return nil
	}
	if some, err := c.changes.unjournaled(c.run.cut); err != nil || some {
		c.run.again = now.Add(20 * time.Millisecond)
		return err
	}
	read, err := c.entries.Position(wire.Journal) // read before the doubts
	if err != nil {
		return err
	}
	doubts, err := c.entries.Doubts()
	if err != nil {
		return err
	}
	for _, d := range doubts {
		// Low water would settle what is in doubt. Only the journal has the job of a returned fire:
		// the next leader fires it again. Late fires are about to be settled.
		if d.Returned || d.Epoch < c.ledger.Epoch() {
			c.run.again, c.run.still = now.Add(time.Second), false
			return nil
		}
	}
	if carried, err := c.carryOperations(now); err != nil || !carried {
		c.run.again = now.Add(20 * time.Millisecond)
		return err
	}
	if err := errors.Join(c.pauses.carry(now), c.enqueues.carryOver(now), c.periodics.carryOver(now), c.limits.carryOver(now, c.periodics.record), c.governed.carryOver(now), c.uniques.carryOver(now)); err != nil {
		return err
	}
	return c.endCarry(now, read+1)
}

// rests reports whether operations rest and no job is enqueued, while what they did is written
// again.
func (c *carrier) rests() bool { return c.run != nil && c.run.still }

// wake returns when a carry-over is to continue.
func (c *carrier) wake(now time.Time) time.Time {
	if c.run != nil {
		return c.run.again
	}
	return now.Add(maxSleep)
}

// readBack frees the entries whose replacement the view has read.
func (c *carrier) readBack() error {
	open := c.run.sent[:0]
	for _, it := range c.run.sent {
		s, err := c.entries.Get(it.Entry.Stream, it.Entry.Offset)
		if err != nil {
			return err
		}
		if s != nil || !it.Acked() {
			open = append(open, it)
			continue
		}
		c.ledger.Free(it.Entry)
	}
	c.run.sent = open
	return nil
}

// carryStream appends some old entries of a stream again. over reports that none is left.
func (c *carrier) carryStream(now time.Time, stream string) (over bool, err error) {
	if stream == wire.DeadJobs {
		if inDoubt, err := c.burialsInDoubt(); err != nil || inDoubt {
			return false, err // dead jobs as they were buried prove that they arrived
		}
	}
	from, cut := c.run.next[stream], c.run.cut[stream]
	found, err := c.entries.Kept(stream, from, cut, carryBatch)
	if err != nil {
		return false, err
	}
	for _, s := range found {
		if !c.ledger.Idle(carryFlight) {
			return false, nil
		}
		c.run.next[stream] = s.Offset + 1
		if err := c.carryOne(now, s); err != nil {
			return false, err
		}
	}
	if len(found) > 0 {
		return false, nil
	}
	c.run.next[stream] = math.MinInt64
	return from == math.MinInt64, nil
}

// giveUp journals that an entry is lost.
func (c *carrier) giveUp(now time.Time, s *tracker.Stored) error {
	r := recordOf(wire.TypeDeleted, s)
	r.Reason = "retention took its record, which was too large to be kept elsewhere"
	return c.ledger.Record(now, r, ledger.ID(s.Stream, s.Offset))
}

// carryOne appends an entry again. One that is busy or in doubt is left for the next round.
func (c *carrier) carryOne(now time.Time, s *tracker.Stored) error {
	at := ledger.ID(s.Stream, s.Offset)
	if s.Undecided && s.Parked == "" { // behind younger ones it would come too late
		c.run.again = later(c.run.again, now.Add(20*time.Millisecond))
		return nil
	}
	if busy, err := c.isBusy(s); err != nil || busy {
		return err
	}
	if pending, err := c.entries.Pending(s); err != nil || !pending {
		return err
	}
	_, e, err := c.load(at)
	if errors.Is(err, errFetch) {
		c.run.again = now.Add(fetchAgain) // it is found again in the next round
		return nil
	}
	if err != nil {
		return err
	}
	if e == nil { // too large for the view, and gone from its stream
		return c.giveUp(now, s)
	}
	record, err := wire.WithEntryJID(e.Raw, e)
	if err != nil {
		return err
	}
	headers := map[string]any{wire.HeaderReplaces: s.Offset, wire.HeaderFirst: s.First, wire.HeaderEpoch: c.ledger.Epoch()}
	inherit(headers, s, "carried over")
	if s.Parked != "" {
		headers[wire.HeaderParked] = wire.ASCII(s.Parked)
	}
	it := &ledger.Publish{Plain: true, Entry: at, Build: func(int64, int64) wire.Message { return wire.Carry(s.Stream, s.JID, record, headers) }}
	if err := c.ledger.Send(it); err != nil {
		return err
	}
	c.ledger.Hold(it, at)
	c.run.sent = append(c.run.sent, it)
	c.run.entries++
	return nil
}

// burialsInDoubt reports whether a burial is in doubt.
func (c *carrier) burialsInDoubt() (bool, error) {
	doubts, err := c.entries.Doubts()
	for _, d := range doubts {
		if (wire.Dispatch{Op: d.Op}).Burial() {
			return true, err
		}
	}
	return false, err
}

// endCarry journals that everything below the cut is settled, as far as the journal was read.
func (c *carrier) endCarry(now time.Time, readTo int64) error {
	low := map[string]int64{}
	for stream, cut := range c.run.cut {
		low[stream] = cut + 1
	}
	state := c.entries.State()
	// What may be misrouted stands behind RoutedTo.
	r := wire.JournalRecord{Type: wire.TypeLowWater, ReadTo: readTo, LowWater: low, Needs: min(c.run.needs, state.RoutedTo+1),
		RoutedTo: &state.RoutedTo, Witness: state.Witness, WitnessFrom: &state.WitnessFrom, Count: int64(c.run.entries)}
	c.run = nil
	if err := c.ledger.Record(now, r, ledger.EntryID{}); err != nil {
		return err
	}
	return c.gap.endRelease(now)
}

// inherit copies to a replacement what only the headers of the old entry say. why replaces the
// reason why a queue dropped a dead job.
func inherit(headers map[string]any, old *tracker.Stored, why string) {
	old.Provenance.AddTo(headers)
	if old.Dropped {
		headers[wire.HeaderDropped] = why
	}
	if old.Leased != "" {
		headers[wire.HeaderLease] = int64(1)
		if old.Slot != "" {
			headers[wire.HeaderSlot] = old.Slot
		}
	}
	if old.Unique != "" && old.Stream == wire.Gated && !old.Undecided {
		headers[wire.HeaderAdmitted] = wire.Admission{Due: old.At, First: old.PutOffSince}.String()
	}
	if old.IsCopy() {
		headers[wire.HeaderCopy] = old.Burial.Op
	}
}

// carryOperations lets operations rest until what they did is known, and then writes them again,
// because low water would forget them. done reports that they are in the journal.
func (c *carrier) carryOperations(now time.Time) (done bool, err error) {
	if c.pauses.sending { // first, what is on its way
		return false, nil
	}
	if !c.run.still {
		c.run.still, c.run.rested = true, -1
	}
	for _, o := range c.operations.all {
		if len(o.inFlight) > 0 || o.ending {
			c.run.rested = -1
			return false, nil
		}
	}
	if c.periodics.busy() || c.uniques.busy() {
		c.run.rested = -1
		return false, nil
	}
	if c.run.rested < 0 {
		c.run.rested = c.ledger.Seq()
	}
	if c.entries.State().Confirmed < c.run.rested {
		return false, nil
	}
	for _, op := range c.entries.Operations() {
		if op.State == wire.OperationRunning {
			if op.JIDs, err = c.entries.OperationJIDs(op.ID); err != nil {
				return false, err
			}
			if o := c.operations.all[op.ID]; o != nil {
				p := o.progress()
				op.Cursor, op.Failed, op.LastError, op.Skips = p.Cursor, p.Failed, p.LastError, p.Skips
			}
		}
		if err := c.ledger.Record(now, wire.JournalRecord{Type: wire.TypeState, Operation: &op}, ledger.EntryID{}); err != nil {
			return false, err
		}
	}
	return true, nil
}
