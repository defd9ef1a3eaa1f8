package scheduler

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// checkWay is what leadership does before it fires.
func (s *modelSidecar) checkWay(now time.Time) error {
	b := s.broker
	switch {
	case !b.cut && !b.cutGated:
	case s.core.routing.mayRepair():
		b.repair(s.entries.State().RoutedTo)
	default:
		return s.core.routing.journalBroken(now)
	}
	b.cutBury = false // a leader always binds that again
	s.core.routingIntact()
	return nil
}

// repair notes what is fired again because it is unknown whether it arrived.
func (b *modelBroker) repair(routed int64) {
	b.cut, b.cutGated = false, false
	for _, r := range b.streams[wire.Journal].records {
		if d, ok := wire.DispatchOf(r.Headers); ok && r.Offset > routed {
			b.unsafe[b.place(d.Stream, d.Offset)] = fmt.Sprintf("fired at %d, and the route was broken after %d", r.Offset, routed)
			b.unsafeTags[d.JIDTag] = true
		}
	}
}

// journal reads a part of the journal again.
func (b *modelBroker) journal(from, below int64, each func(*wire.Record) error) error {
	journal := b.streams[wire.Journal]
	for at := max(from, int64(journal.base)); at < min(below, int64(journal.end())); at++ {
		if err := each(journal.get(at)); err != nil {
			return err
		}
	}
	return nil
}

// readLater has a part of the journal read a step later.
func (s *modelSidecar) readLater(from int64, each func(*wire.Record) error) *reading {
	r := newReading()
	s.later = append(s.later, func() {
		err := s.broker.journal(from, math.MaxInt64, each)
		if err == nil {
			err = errors.New("the journal ends here")
		}
		if errors.Is(err, errRead) {
			err = nil
		}
		r.end(err)
	})
	return r
}

func (s *modelSidecar) readNow() {
	todo := s.later
	s.later = nil
	for _, read := range todo {
		read()
	}
}

// forgetStrays notes what is unknown after the loss of the journal that had it: that it was fired,
// and may not have arrived.
func (b *modelBroker) forgetStrays() {
	if !b.everCut {
		return
	}
	routed := int64(-1)
	for _, r := range b.streams[wire.Journal].records {
		if j, err := wire.ParseJournal(r.Body); err == nil && j.RoutedTo != nil {
			routed = max(routed, *j.RoutedTo)
		}
	}
	for _, r := range b.streams[wire.Journal].records {
		if d, ok := wire.DispatchOf(r.Headers); ok && r.Offset > routed {
			b.gone[b.place(d.Stream, d.Offset)] = "it was misrouted, and the journal was lost"
		}
	}
}

// loseRepeated notes what is deleted with a stream although it stood in another first.
func (b *modelBroker) loseRepeated(stream string) {
	for here, first := range b.origin {
		if stream == wire.Gated && here.stream == stream && first.stream != stream {
			b.gone[first] = "its copy stood in a stream that was deleted"
		}
	}
	for here := range b.repeated {
		if here.stream == stream && here.generation == b.streams[stream].generation {
			b.gone[b.first(here)] = "it was entered again, in a stream that was deleted"
		}
	}
}

// bindNow creates and binds the queues that were requested in the last step.
func (s *modelSidecar) bindNow(now time.Time) {
	asked := s.asked
	s.asked = nil
	for _, queue := range asked {
		if s.broker.away[queue] {
			s.core.queues.bound(now, queue, errors.New("its node is away"))
			continue
		}
		s.bindModelQueue(queue)
		s.core.queues.bound(now, queue, nil)
	}
}
