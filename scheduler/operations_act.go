package scheduler

import (
	"errors"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// allowance returns how many more entries an operation may act upon now.
func (o *operation) allowance(now time.Time, batch int) int {
	if o.Rate <= 0 {
		return batch
	}
	return int(max(0, min(float64(batch), now.Sub(o.since).Seconds()*o.Rate-float64(o.issued))))
}

// actMore acts upon the next entries. over reports that none is left, more that there is more to do
// now.
func (ops *operations) actMore(now time.Time, o *operation) (over, more bool, err error) {
	left := o.allowance(now, ops.setup.pace.batch)
	if left == 0 || !ops.ledger.Idle(operationFlight) {
		return false, false, nil
	}
	if o.undo != nil {
		return ops.undoMore(now, o, left)
	}
	if len(o.JIDs) > 0 {
		return ops.actOnJIDs(now, o, left)
	}
	found, err := ops.entries.Kept(o.Stream, o.next+1, maxOffset, ops.setup.pace.look)
	if err != nil || len(found) == 0 {
		return len(found) == 0, false, err
	}
	for _, s := range found {
		chosen, err := ops.chosen(o, s)
		if err != nil {
			return false, false, err
		}
		if chosen {
			if busy, err := ops.isBusy(s); err != nil || busy {
				return false, false, err
			}
			if left--; left < 0 {
				return false, o.Rate <= 0, nil
			}
			if ops.awaitsQueue(now, o, s) {
				return false, false, nil
			}
			if err := ops.actOnOne(now, o, s, s.Offset); err != nil {
				return false, false, err
			}
		}
		o.next = s.Offset
	}
	return false, true, nil
}

// actOnJIDs acts upon the next entries of a list of jids.
func (ops *operations) actOnJIDs(now time.Time, o *operation, left int) (over, more bool, err error) {
	for ; left > 0 && o.next < int64(len(o.JIDs)); left-- {
		found, err := ops.entries.Find(o.Stream, o.JIDs[o.next])
		if err == nil && len(found) > 1 {
			found, err = ops.dispatcher.withoutRepeats(now, found)
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
			o.fail("an entry was not pending any more")
		case 1:
			if busy, err := ops.isBusy(all[0]); err != nil || busy {
				return false, false, err
			}
			if ops.awaitsQueue(now, o, all[0]) {
				return false, false, nil
			}
			if err := ops.actOnOne(now, o, all[0], o.next); err != nil {
				return false, false, err
			}
		default:
			o.fail(fmt.Sprintf("%d entries have the jid %s: act on each by its offset", len(all), wire.ASCII(o.JIDs[o.next])))
		}
		o.next++
	}
	return o.next >= int64(len(o.JIDs)), o.Rate <= 0, nil
}

// fail counts an entry upon which the operation could not act.
func (o *operation) fail(reason string) {
	o.Failed++
	o.LastError = reason
}

// fires reports whether an operation fires entries.
func (o *operation) fires() bool {
	return o.Action == wire.CommandTrigger || o.Action == wire.CommandRetry
}

// awaitsQueue reports whether an operation must wait until the queue of an entry is bound.
func (ops *operations) awaitsQueue(now time.Time, o *operation, s *tracker.Stored) bool {
	q := ops.queues.of(s.Queue)
	if q.moving != "" && o.fires() {
		return true
	}
	if failed := q.unmade && q.held != ""; !o.fires() || failed {
		return false
	}
	return !ops.queues.isReady(now, q) && q.asked
}

// actOnOne acts upon one entry. at names it until that is answered.
func (ops *operations) actOnOne(now time.Time, o *operation, s *tracker.Stored, at int64) error {
	o.issued++
	if q := ops.queues.of(s.Queue); o.fires() && !q.bound {
		o.fail(fmt.Sprintf("queue %q takes no job: %s: it is pending as before", s.Queue, q.held))
		return nil
	}
	e, err := ops.read(s)
	if err != nil && !errors.Is(err, errFetch) {
		return err
	}
	if e == nil {
		o.fail("a record could not be read from its stream")
		return nil
	}
	if err := ops.dispatcher.dropRepeats(now, ops.entries.Lookup, s, e); err != nil {
		return err
	}
	o.inFlight[at] = true
	cmd := wire.Command{Command: o.Action, Stream: s.Stream, JID: s.JID, Offset: &s.Offset, Changes: o.changes, Reason: o.Reason, Actor: o.Actor, Operation: o.ID}
	answer := func(r wire.Reply) {
		delete(o.inFlight, at)
		if r.Status >= 300 {
			o.fail(r.Reason)
		}
	}
	return ops.actions.act(now, target{request{cmd, answer}, s, e})
}
