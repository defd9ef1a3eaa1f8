package scheduler

import (
	"errors"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// journalBurials tells of the burials that the journal does not have: what they buried would else be pending beside its dead job.
func (r *reconciler) journalBurials(now time.Time) error {
	for len(r.unjournaled) > 0 && r.ledger.Room() {
		dead := r.unjournaled[0]
		r.unjournaled = r.unjournaled[1:]
		if err := r.journalBurial(now, dead); err != nil {
			return err
		}
	}
	return nil
}

// journalBurial journals of what entry a dead job came.
func (r *reconciler) journalBurial(now time.Time, dead *tracker.Stored) error {
	d := dead.Burial
	at := ledger.ID(d.Stream, d.Offset)
	_, e, err := r.load(at)
	if err != nil && !errors.Is(err, errFetch) {
		return err
	}
	if r.ledger.Busy(at) != nil {
		return nil // it was buried twice, and the first has been told
	}
	r.open = slices.DeleteFunc(r.open, func(o tracker.Doubt) bool { return entryOf(&o) == at }) // a fire that came back before
	record := wire.JournalRecord{Type: wire.TypeExpired, Stream: at.Stream, Offset: at.Offset, JID: d.JIDTag}
	if d.Op == wire.OpBuried {
		record.Type, record.DiedAt = wire.TypeKilled, wire.Seconds(dead.At)
		record.Actor, record.Command, record.InOperation = d.Actor, d.Command, d.Operation
		if e != nil {
			record.Entry = e.Raw
		}
	}
	return r.ledger.Record(now, record, at)
}
