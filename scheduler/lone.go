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
func (c *core) settleLone(now time.Time) error {
	for len(c.settling.lone) > 0 && c.ledger.Room() {
		dead := c.settling.lone[0]
		c.settling.lone = c.settling.lone[1:]
		if err := c.tellBurial(now, dead); err != nil {
			return err
		}
	}
	return nil
}

// tellBurial journals of what entry a dead job came.
func (c *core) tellBurial(now time.Time, dead *tracker.Stored) error {
	d := dead.Burial
	at := ledger.ID(d.Stream, d.Offset)
	_, e, err := c.load(at)
	if err != nil && !errors.Is(err, errFetch) {
		return err
	}
	if c.ledger.Busy(at) != nil {
		return nil // it was buried twice, and the first has been told
	}
	c.settling.open = slices.DeleteFunc(c.settling.open, func(o tracker.Doubt) bool { return spotOf(&o) == at }) // a fire that came back before
	r := wire.JournalRecord{Type: wire.TypeExpired, Stream: at.Stream, Offset: at.Offset, JID: d.JIDTag}
	if d.Op == wire.OpBuried {
		r.Type, r.DiedAt = wire.TypeKilled, wire.Seconds(dead.At)
		r.Actor, r.Command, r.InOperation = d.Actor, d.Command, d.Operation
		if e != nil {
			r.Entry = e.Raw
		}
	}
	return c.ledger.Record(now, r, at)
}
