package scheduler

import (
	"errors"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// batch is how many entries are fired in a step.
const batch = 256

// dispatcher fires due entries. It also fires, buries and parks entries for the other duties.
type dispatcher struct {
	base
	queues    *dueQueues
	routing   *routing
	copies    *copies
	unrouted  *unrouted
	unfetched map[ledger.EntryID]int // large entries, with how often they could not be fetched
	late      time.Duration          // how late the newest fire was
	steps     int                    // each has a snapshot of its own
	instant   instant                // at which the newest fire was due
	limits    *limits
	looked    []*lookups // of groups, in this step
}

// step fires due entries, the queues in turn, until the window is full, a batch is done or nothing
// is due.
func (d *dispatcher) step(now time.Time) (wake time.Time, err error) {
	d.queues.wakeUp(now)
	d.wakeGroups(now)
	if len(d.queues.ring) == 0 && !d.limits.gate.Ready() || !d.ledger.Room() || d.ledger.Quiet() {
		return d.wake(now), nil
	}
	d.steps++
	snapshot := d.entries.Snapshot()
	defer func() { err = errors.Join(err, snapshot.Close()) }()
	defer d.endLooks()
	for fired := 0; d.ledger.Room(); {
		if fired >= batch {
			return now, nil
		}
		if d.ledger.Alone() {
			return now.Add(maxSleep), nil
		}
		n, wait, err := d.fireTurn(now, snapshot.Lookup)
		if err != nil {
			return now, err
		}
		if wait {
			return now.Add(maxSleep), nil
		}
		if n < 0 {
			break
		}
		fired += n
	}
	return d.wake(now), nil
}

// wake returns when something may be due.
func (d *dispatcher) wake(now time.Time) time.Time {
	return d.limits.gate.NextWake(d.queues.next(now.Add(maxSleep)))
}

// fireTurn gives the first queue of the ring and the first group of the gate one turn each. It
// returns how many entries it fired, -1 if there was neither. wait reports that the window must
// drain first.
func (d *dispatcher) fireTurn(now time.Time, entries tracker.Lookup) (fired int, wait bool, err error) {
	fired = -1
	if len(d.queues.ring) > 0 {
		did, wait, err := d.fireNext(now, entries, d.queues.ring[0])
		if fired = 0; did {
			fired = 1
		}
		if err != nil || wait {
			return fired, wait, err
		}
	}
	group := d.limits.gate.Choose(now)
	if group == nil {
		return fired, false, nil
	}
	did, wait, err := d.fireGroup(now, entries, group)
	if fired = max(fired, 0); did {
		fired++
	}
	return fired, wait, err
}

// fireNext fires one entry of a queue, or takes the queue out of the ring. wait reports that the
// window must drain first.
func (d *dispatcher) fireNext(now time.Time, entries tracker.Lookup, q *dueQueue) (did, wait bool, err error) {
	if q.unconfirmed == 0 {
		q.limit = d.setup.window(q.name)
	}
	if q.full = q.unconfirmed >= q.limit; q.full || q.Silent && !q.trying || q.trial && q.unconfirmed > q.Aside {
		d.queues.leave(time.Time{})
		return false, false, nil
	}
	key, ok, err := d.head(&q.lookups, func(behind tracker.DueKey, fn func(tracker.DueKey) bool) error {
		return entries.Due(q.name, behind, fn)
	})
	if err != nil {
		return false, false, err
	}
	if !ok {
		d.queues.leave(time.Time{})
		return false, false, nil
	}
	if !d.prepared(now, key.At, q) {
		return false, false, nil
	}
	at := ledger.ID(key.Stream, key.Offset)
	if d.ledger.Suspects()[at] > 0 && !d.ledger.Drained() {
		return false, true, nil
	}
	q.behind, q.ahead = key, q.ahead[1:]
	d.queues.rotate()
	return true, false, d.fireDueEntry(now, entries, at, key)
}

// prepared reports whether an entry may be fired now. If it is not due, or its queue is not bound,
// the queue leaves the ring.
func (d *dispatcher) prepared(now, at time.Time, q *dueQueue) bool {
	if ahead := at.Add(-prepareAhead); !q.bound && ahead.After(now) {
		d.queues.leave(ahead)
		return false
	}
	ready := d.queues.isReady(now, q)
	switch {
	case !q.due: // it is held now
	case at.After(now):
		d.queues.leave(at)
	case !ready:
		d.queues.leave(time.Time{}) // bound wakes it
	default:
		return true
	}
	return false
}

// head returns the first entry of a queue or group that may be fired when it is due. It is pending
// in the snapshot of this step, from which due reads.
func (d *dispatcher) head(l *lookups, due func(behind tracker.DueKey, fn func(tracker.DueKey) bool) error) (tracker.DueKey, bool, error) {
	if l.step != d.steps { // a command may have acted since upon what was looked up before
		l.step, l.looks, l.ahead = d.steps, firstLook, nil
	}
	for {
		for len(l.ahead) > 0 {
			key := l.ahead[0]
			at := ledger.ID(key.Stream, key.Offset)
			waits := d.copies.held && at.Stream == wire.Gated
			if d.ledger.Busy(at) == nil && !waits && !d.entries.IsHeld(at.Stream, at.Offset) {
				return key, true, nil
			}
			l.behind, l.ahead = key, l.ahead[1:]
		}
		err := due(l.behind, func(key tracker.DueKey) bool {
			l.ahead = append(l.ahead, key)
			return len(l.ahead) < l.looks
		})
		l.looks = min(2*l.looks, lookAhead)
		if err != nil || len(l.ahead) == 0 {
			return tracker.DueKey{}, false, err
		}
	}
}

// fireDueEntry fires an entry, unless it has expired or cannot be fired.
func (d *dispatcher) fireDueEntry(now time.Time, entries tracker.Lookup, at ledger.EntryID, key tracker.DueKey) error {
	s, err := entries.Get(at.Stream, at.Offset)
	if err != nil || s == nil {
		delete(d.unfetched, at)
		return err
	}
	if busy, err := d.isBusy(s); err != nil || busy {
		return err // it is a copy: the queue is looked up again when it is decided
	}
	e, err := d.fireable(s)
	if errors.Is(err, errFetch) {
		return d.postpone(now, at, key, err)
	}
	if err != nil {
		return err
	}
	delete(d.unfetched, at)
	if d.ledger.Suspects()[at] >= maxKills {
		return d.park(now, s, d.deathReason(at))
	}
	if e == nil {
		return d.park(now, s, "its record cannot be read any more")
	}
	if err := d.dropRepeats(now, entries, s, e); err != nil {
		return err
	}
	if !e.Job.ExpiresAt.IsZero() && e.Job.ExpiresAt.Before(now) {
		return d.expire(now, s, e)
	}
	d.late = now.Sub(key.At)
	d.counters.FireDelays.note(d.late)
	return d.fire(now, s, e, purpose{op: wire.OpFired, key: key})
}

// fireable returns what is needed to fire an entry, nil if its record is gone. It parses no record
// that the view keeps.
func (d *dispatcher) fireable(s *tracker.Stored) (*wire.Entry, error) {
	if e, ok := s.Fireable(); ok {
		return &e, nil
	}
	return d.read(s)
}

// postpone holds the queue of an entry that cannot be fetched now. After several times it parks the
// entry.
func (d *dispatcher) postpone(now time.Time, at ledger.EntryID, key tracker.DueKey, why error) error {
	s, err := d.entries.Get(at.Stream, at.Offset)
	if err != nil || s == nil {
		return err
	}
	if d.unfetched[at]++; d.unfetched[at] >= maxUnfetched {
		delete(d.unfetched, at)
		return d.park(now, s, why.Error())
	}
	d.lookFrom(s, key)
	d.queues.hold(d.queues.of(s.Queue), now, why.Error(), maxHold)
	return nil
}

// maxKills is after how many connections that died while it was in flight an entry is not tried
// again.
const maxKills = 2

func (d *dispatcher) deathReason(at ledger.EntryID) string {
	return fmt.Sprintf("the connection died %d times while this was being published", d.ledger.Suspects()[at])
}
