package scheduler

import (
	"errors"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// allowance is how many more entries an operation may act on now.
func (o *operating) allowance(now time.Time, batch int) int {
	if o.Rate <= 0 {
		return batch
	}
	return int(max(0, min(float64(batch), now.Sub(o.since).Seconds()*o.Rate-float64(o.issued))))
}

// actOn acts on the next entries. over tells that there are none left, more that it might go on at once.
func (c *operations) actOn(now time.Time, o *operating) (over, more bool, err error) {
	left := o.allowance(now, c.setup.pace.batch)
	if left == 0 || !c.ledger.Idle(operationFlight) {
		return false, false, nil
	}
	if o.undo != nil {
		return c.undoOn(now, o, left)
	}
	if len(o.JIDs) > 0 {
		return c.actOnJIDs(now, o, left)
	}
	found, err := c.entries.Kept(o.Stream, o.next+1, maxOffset, c.setup.pace.look)
	if err != nil || len(found) == 0 {
		return len(found) == 0, false, err
	}
	for _, s := range found {
		chosen, err := c.chosen(o, s)
		if err != nil {
			return false, false, err
		}
		if chosen {
			if busy, err := c.isBusy(s); err != nil || busy {
				return false, false, err // what is being done to it comes first
			}
			if left--; left < 0 {
				return false, o.Rate <= 0, nil
			}
			if c.awaitsQueue(now, o, s) {
				return false, false, nil
			}
			if err := c.actOnOne(now, o, s, s.Offset); err != nil {
				return false, false, err
			}
		}
		o.next = s.Offset
	}
	return false, true, nil
}

func (c *operations) actOnJIDs(now time.Time, o *operating, left int) (over, more bool, err error) {
	for ; left > 0 && o.next < int64(len(o.JIDs)); left-- {
		found, err := c.entries.Find(o.Stream, o.JIDs[o.next])
		if err == nil && len(found) > 1 {
			found, err = c.dispatcher.withoutRepeats(now, found)
		}
		if err != nil {
			return false, false, err
		}
		var all []*tracker.Stored
		for _, s := range found {
			if s.First <= *o.AsOf {
				all = append(all, s)
			}
		}
		switch len(all) {
		case 0:
			o.fails("an entry was not pending any more")
		case 1:
			if busy, err := c.isBusy(all[0]); err != nil || busy {
				return false, false, err
			}
			if c.awaitsQueue(now, o, all[0]) {
				return false, false, nil
			}
			if err := c.actOnOne(now, o, all[0], o.next); err != nil {
				return false, false, err
			}
		default:
			o.fails(fmt.Sprintf("%d entries have the jid %s: act on each by its offset", len(all), wire.ASCII(o.JIDs[o.next])))
		}
		o.next++
	}
	return o.next >= int64(len(o.JIDs)), o.Rate <= 0, nil
}

func (o *operating) fails(reason string) {
	o.Failed++
	o.LastError = reason
}

// fires reports whether an operation fires entries.
func (o *operating) fires() bool {
	return o.Action == wire.CommandTrigger || o.Action == wire.CommandRetry
}

// awaitsQueue reports whether an operation is to wait until an entry's queue is made and bound.
func (c *operations) awaitsQueue(now time.Time, o *operating, s *tracker.Stored) bool {
	ln := c.lanes.of(s.Queue)
	if ln.moving != "" && o.fires() {
		return true
	}
	if failed := ln.unmade && ln.held != ""; !o.fires() || failed {
		return false
	}
	return !c.lanes.isReady(now, ln) && ln.asked
}

// actOnOne does to one entry what the operation is for. at is what it is called until that is answered.
func (c *operations) actOnOne(now time.Time, o *operating, s *tracker.Stored, at int64) error {
	o.issued++
	if ln := c.lanes.of(s.Queue); o.fires() && !ln.bound {
		o.fails(fmt.Sprintf("queue %q takes no job: %s: it is pending as before", s.Queue, ln.held))
		return nil
	}
	e, err := c.read(s)
	if err != nil && !errors.Is(err, errFetch) {
		return err
	}
	if e == nil {
		o.fails("a record could not be read from its stream")
		return nil
	}
	if err := c.dispatcher.dropRepeats(now, c.entries.Lookup, s, e); err != nil {
		return err
	}
	o.flying[at] = true
	cmd := wire.Command{Command: o.Action, Stream: s.Stream, JID: s.JID, Offset: &s.Offset, Changes: o.changes, Reason: o.Reason, Actor: o.Actor, Operation: o.ID}
	answer := func(r wire.Reply) {
		delete(o.flying, at)
		if r.Status >= 300 {
			o.fails(r.Reason)
		}
	}
	return c.actions.act(now, target{request{cmd, answer}, s, e})
}
