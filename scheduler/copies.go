package scheduler

import (
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// A fire that finds no queue comes back as an entry of jobs.gated, its copy: see package tracker.
// Either the entry or the copy stands for the job.
//
//   - If the fire was confirmed, the entry is settled and the copy stands.
//   - If the fire was refused, the entry is pending and the copy is settled as a duplicate.
//   - Until that is known, nothing is done to the copy.
//
// A fire of an earlier epoch that is in doubt was delivered if its copy exists, regardless of the
// witness. If the entry is pending, the journal may still get the fire, late, and a leader would
// settle the entry as delivered. So then the entry is settled as a duplicate, and the copy stands.

// original is what became of the entry of a copy.
type original int

const (
	originalGone    original = iota // the copy stands for it
	originalPending                 // it stands
	originalUnknown                 // it is not known yet what became of the fire
)

// original returns what became of the entry of a fire that found no queue.
func (b *base) original(d wire.Dispatch) (original, error) {
	if d.Seq == 0 { // that was known when it was carried over
		return originalGone, nil
	}
	if _, folded := b.entries.Progress(); d.Epoch == b.ledger.Epoch() && (!b.ledger.HasPassed(d.Seq) || folded < d.Seq) {
		return originalUnknown, nil
	}
	if open, err := b.entries.InDoubt(d.Epoch, d.Seq); err != nil || open {
		return originalUnknown, err
	}
	if d.Stream == "" { // only the journal had the job
		return originalGone, nil
	}
	s, err := b.current(d.Stream, d.Offset)
	if err != nil || s == nil || wire.JIDTag(s.JID) != d.JIDTag {
		return originalGone, err
	}
	if b.ledger.Busy(ledger.ID(s.Stream, s.Offset)) != nil {
		return originalUnknown, nil
	}
	pending, err := b.entries.Pending(s)
	if err != nil || !pending {
		return originalUnknown, err
	}
	return originalPending, nil
}

// isBusy reports whether something is under way about an entry, or about the fire of which it is a
// copy.
func (b *base) isBusy(s *tracker.Stored) (bool, error) {
	if b.ledger.Busy(ledger.ID(s.Stream, s.Offset)) != nil {
		return true, nil
	}
	if !s.IsCopy() {
		return false, nil
	}
	o, err := b.original(s.Burial)
	return o != originalGone, err
}

// copies decides whether the entries of jobs.gated stand.
type copies struct {
	base
	dispatcher *dispatcher
	unrouted   *unrouted
	undecided  []int64 // those of which it is not known yet
	held       bool    // nothing of jobs.gated is fired: the queue of an older version is emptied
}

// open lists the copies that exist when the epoch begins.
func (c *copies) open(time.Time) (err error) {
	if _, err := c.takeNew(); err != nil {
		return err
	}
	c.undecided, err = c.entries.Copies()
	return err
}

// takeNew returns the offsets of the copies that came since the last call.
func (c *copies) takeNew() ([]int64, error) {
	came := c.entries.TakeCopies()
	return came, c.unrouted.copied(came)
}

// step decides about the copies that came since.
func (c *copies) step(now time.Time) error {
	came, err := c.takeNew()
	if err != nil {
		return err
	}
	c.undecided = append(c.undecided, came...)
	var fault error
	c.undecided = slices.DeleteFunc(c.undecided, func(offset int64) bool {
		if fault != nil {
			return false
		}
		var decided bool
		decided, fault = c.decide(now, offset)
		return decided
	})
	return fault
}

// decide finds out whether one copy stands.
func (c *copies) decide(now time.Time, offset int64) (decided bool, err error) {
	at := ledger.ID(wire.Gated, offset)
	if c.ledger.Busy(at) != nil {
		return true, nil
	}
	s, err := c.entries.Get(at.Stream, at.Offset)
	if err != nil || s == nil {
		return true, err
	}
	if pending, err := c.entries.Pending(s); err != nil || !pending {
		return true, err
	}
	o, err := c.original(s.Burial)
	switch {
	case err != nil || o == originalUnknown:
		return false, err
	case o == originalGone:
		return true, c.stands(now, s)
	case !c.ledger.Room():
		return false, nil
	}
	repeated := s
	if s.Burial.Epoch != c.ledger.Epoch() {
		if repeated, err = c.current(s.Burial.Stream, s.Burial.Offset); err != nil || repeated == nil {
			return false, err
		}
	}
	return repeated == s, c.ledger.Record(now, recordOf(wire.TypeDuplicate, repeated), ledger.ID(repeated.Stream, repeated.Offset))
}

// stands has a copy fired in place of its original. The slot of the original is freed: the copy
// takes one of its own.
func (c *copies) stands(now time.Time, s *tracker.Stored) error {
	c.dispatcher.lookFrom(s, tracker.DueKey{At: s.At, Stream: s.Stream, Offset: s.Offset})
	if s.Burial.Stream == "" {
		return nil
	}
	return c.dispatcher.limits.freeForGood(now, ledger.ID(s.Burial.Stream, s.Burial.Offset), s.Burial.JIDTag, "the job found no queue")
}

// endHold has the entries of jobs.gated fired.
func (c *copies) endHold() {
	if !c.held {
		return
	}
	c.held = false
	for queue := range c.entries.ByQueue(wire.Gated) {
		c.dispatcher.queues.lookFrom(c.dispatcher.queues.of(queue), tracker.DueKey{})
	}
	c.dispatcher.limits.lookAtAll = true
}

// readCopies returns the fires of which a copy is not settled: they arrived.
func (c *copies) readCopies() (map[dispatch]bool, error) {
	offsets, err := c.entries.Copies()
	if err != nil {
		return nil, err
	}
	fires := map[dispatch]bool{}
	for _, offset := range offsets {
		s, err := c.entries.Get(wire.Gated, offset)
		if err != nil {
			return nil, err
		}
		if s != nil && s.Burial.Seq > 0 {
			fires[dispatchOf(s.Burial)] = true
		}
	}
	return fires, nil
}
