package scheduler

import (
	"time"

	"github.com/millrace-jobs/millrace/scheduler/gate"
	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
)

// Gated entries are fired as others are, but their groups take turns, and not their queues. The
// queue decides in the same way whether it takes a job.

// lookFrom has an entry fired when it is due: its queue, or if it is gated its group, is looked up
// again from its key on.
func (d *dispatcher) lookFrom(s *tracker.Stored, key tracker.DueKey) {
	if s.Gated {
		d.limits.look(s.Group(), key)
	} else {
		d.queues.lookFrom(d.queues.of(s.Queue), key)
	}
}

// wakeGroups makes those groups ready whose time has come, or whose queue takes jobs again.
func (d *dispatcher) wakeGroups(now time.Time) {
	d.limits.gate.Wake(now)
	d.limits.gate.Unpark(func(queue string) int {
		q := d.queues.of(queue)
		if d.queues.awaitsReady(q) || !q.takes() {
			return 0
		}
		return q.limit - q.unconfirmed
	})
}

// fireGroup fires one entry of a group, or ends its turn. wait reports that the window must drain
// first.
func (d *dispatcher) fireGroup(now time.Time, entries tracker.Lookup, g *gate.Group[lookups]) (did, wait bool, err error) {
	q := d.queues.of(g.Queue)
	if q.unconfirmed == 0 {
		q.limit = d.setup.window(q.name)
	}
	key, ok, err := d.head(&g.State, func(behind tracker.DueKey, fn func(tracker.DueKey) bool) error {
		return entries.DueInGroup(g.Group, behind, fn)
	})
	d.looked = append(d.looked, &g.State)
	at := ledger.ID(key.Stream, key.Offset)
	switch {
	case err != nil:
		return false, false, err
	case !ok:
		d.limits.gate.Drop(now, g)
	case key.At.After(now):
		d.limits.gate.Sleep(now, g, key.At)
	case !q.takes() || !d.queues.isReady(now, q):
		d.limits.gate.Park(now, g)
	case d.ledger.Suspects()[at] > 0 && !d.ledger.Drained():
		d.limits.gate.First(g)
		return false, true, nil
	default:
		g.State.behind, g.State.ahead = key, g.State.ahead[1:]
		err = d.fireDueEntry(now, entries, at, key)
		d.limits.gate.Again(now, g)
		return true, false, err
	}
	return false, false, nil
}

// endLooks forgets what this step has looked up of groups: there may be very many of them, and the
// next step looks again.
func (d *dispatcher) endLooks() {
	for _, l := range d.looked {
		l.ahead = nil
	}
	d.looked = d.looked[:0]
}
