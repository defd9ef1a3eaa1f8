package scheduler

import (
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// Governed queues in the model: where jobs.direct leads for each queue, and a governor that does
// one step of a switch at a time, so that everything may come in between.

// ownQueue stands for a queue itself among the destinations of jobs.direct.
const ownQueue = "queue"

// directTo returns where jobs.direct leads for a queue.
func (b *modelBroker) directTo(queue string) []string {
	if all, known := b.direct[queue]; known {
		return all
	}
	return []string{ownQueue}
}

func (b *modelBroker) bindDirect(queue, to string) {
	if all := b.directTo(queue); !slices.Contains(all, to) {
		b.direct[queue] = append(slices.Clone(all), to)
	}
}

func (b *modelBroker) unbindDirect(queue, from string) {
	b.direct[queue] = slices.DeleteFunc(slices.Clone(b.directTo(queue)), func(to string) bool { return to == from })
}

// bindModelQueue creates and binds a queue, as Scheduler.bindQueue does.
func (s *modelSidecar) bindModelQueue(queue string) {
	if s.broker.missing[queue] {
		s.broker.unbindDirect(queue, ownQueue)
	}
	delete(s.broker.missing, queue)
	if s.entries.Governed.GovernedQueue(queue) == nil {
		s.broker.bindDirect(queue, ownQueue)
	}
}

// governNow does the next step of each switch that is wanted, and reports to the core what it has
// found.
func (s *modelSidecar) governNow(now time.Time) error {
	if s.altAsked {
		s.altAsked = false
		var fault error
		if s.broker.cutGated {
			fault = errNoAlternate
		}
		if err := s.core.governed.tried(now, fault); err != nil {
			return err
		}
	}
	for _, w := range s.governs {
		if state, done := s.broker.switchOnce(w); done {
			if err := s.core.governed.found(now, restated{w.queue, w.turn, state}); err != nil {
				return err
			}
		}
	}
	return nil
}

// switchOnce does one step, and reports whether none is left, with the state that there is. While
// the alternate exchange works, nothing is bound for a governed queue.
func (b *modelBroker) switchOnce(w governing) (state string, done bool) {
	to, state := "", wire.QueueGoverned
	switch {
	case w.leaves:
		to, state = ownQueue, ""
	case w.full:
		to, state = wire.Full, wire.QueueFull
	case b.cutGated:
		to = wire.Gated
	}
	b.caught[w.queue] = b.cutGated && !w.leaves
	is := b.directTo(w.queue)
	binds := to != "" && !slices.Contains(is, to) && (to != ownQueue || !b.missing[w.queue])
	if binds && (len(is) == 0 || b.cutGated) {
		b.bindDirect(w.queue, to)
		return "", false
	}
	for _, other := range is {
		if other != to {
			b.unbindDirect(w.queue, other)
			return "", false
		}
	}
	if w.state == wire.QueueSwitching || w.state == wire.QueueDraining && b.plainIn[w.queue] > 0 {
		return wire.QueueDraining, true
	}
	return state, true
}
