package scheduler

import (
	"errors"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// settleLone tells of the burials that the journal does not have: what they buried would else be pending beside its dead job.
func (s *settling) settleLone(now time.Time) error {
	for len(s.lone) > 0 && s.ledger.Room() {
		dead := s.lone[0]
		s.lone = s.lone[1:]
		if err := s.tellBurial(now, dead); err != nil {
			return err
		}
	}
	return nil
}

// tellBurial journals of what entry a dead job came.
func (s *settling) tellBurial(now time.Time, dead *tracker.Stored) error {
	d := dead.Burial
	at := ledger.ID(d.Stream, d.Offset)
	_, e, err := s.load(at)
	if err != nil && !errors.Is(err, errFetch) {
		return err
	}
	if s.ledger.Busy(at) != nil {
		return nil // it was buried twice, and the first has been told
	}
	s.open = slices.DeleteFunc(s.open, func(o tracker.Doubt) bool { return spotOf(&o) == at }) // a fire that came back before
	r := wire.JournalRecord{Type: wire.TypeExpired, Stream: at.Stream, Offset: at.Offset, JID: d.JIDTag}
	if d.Op == wire.OpBuried {
		r.Type, r.DiedAt = wire.TypeKilled, wire.Seconds(dead.At)
		r.Actor, r.Command, r.InOperation = d.Actor, d.Command, d.Operation
		if e != nil {
			r.Entry = e.Raw
		}
	}
	return s.ledger.Record(now, r, at)
}
