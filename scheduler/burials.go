package scheduler

import (
	"errors"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// journalBurials journals the burials that the journal lacks. Their entries would be pending beside
// the dead jobs that they became.
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

// journalBurial journals of which entry a dead job was made.
func (r *reconciler) journalBurial(now time.Time, dead *tracker.Stored) error {
	d := dead.Burial
	at := ledger.ID(d.Stream, d.Offset)
	_, e, err := r.load(at)
	if err != nil && !errors.Is(err, errFetch) {
		return err
	}
	if r.ledger.Busy(at) != nil {
		return nil // it was buried twice, and the first burial is journaled
	}
	// A fire of it that is in doubt was returned before.
	r.open = slices.DeleteFunc(r.open, func(o tracker.Doubt) bool { return entryOf(&o) == at })
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
