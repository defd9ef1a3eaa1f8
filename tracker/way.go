package tracker

import (
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// What is fired takes a way that somebody may break: then the broker confirms what reaches no queue. The leader sends probes along that way
// and journals how far it has seen them arrive.

// foldProbe takes in a probe.
func (t *Entries) foldProbe(tx *view.Tx, r *wire.Record, p wire.Probe) error {
	if t.isLate(p.Epoch) {
		t.void(r)
	} else {
		t.update(func(s *State) {
			s.routed(&p.Routed)
			s.Probe, s.ProbeAt = p.Number, r.Offset
		})
	}
	return t.confirm(tx, wire.ConfirmedBy(p.Epoch, r.Headers))
}

// routed notes up to where, in the journal, what was fired reached its queue. A leader that had not read all of it says less than is known.
func (s *State) routed(to *int64) {
	if to != nil && *to > s.RoutedTo {
		s.RoutedTo = *to
	}
}

// foundMisrouted notes that what was fired before may have reached no queue.
func (s *State) foundMisrouted(at int64, when float64) { s.MisroutedAt, s.MisroutedTime = at, when }

// nothingMisrouted notes that all of that has been fired again.
func (s *State) nothingMisrouted() {
	s.RoutedTo, s.MisroutedAt = max(s.RoutedTo, s.MisroutedAt), -1
}

// buried notes that a burial reached its stream. Without a barrier before it nobody knows what it is to be compared with.
func (t *Entries) buried(d wire.Dispatch) {
	t.update(func(s *State) {
		if b, seen := s.Barriers[wire.DeadJobs]; seen {
			b.Buried = max(b.Buried, d.Seq)
			s.Barriers[wire.DeadJobs] = b
		}
	})
}
