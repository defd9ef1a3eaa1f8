package scheduler

import (
	"errors"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// settleLone tells of the burials that the journal does not have, the oldest first: what they buried would else be pending beside its dead job.
func (c *core) settleLone(now time.Time) error {
	for len(c.settling.lone) > 0 && c.room() {
		newest := len(c.settling.lone) - 1
		dead := c.settling.lone[newest]
		c.settling.lone = c.settling.lone[:newest]
		if err := c.tellBurial(now, dead); err != nil {
			return err
		}
	}
	return nil
}

// tellBurial journals of what entry a dead job came.
func (c *core) tellBurial(now time.Time, dead *tracker.Stored) error {
	if there, err := c.mayBeThere(dead.JID); err != nil || !there {
		return err
	}
	record, err := c.setup.fetch(wire.DeadJobs, dead.Offset)
	if err != nil {
		return err
	}
	d, ok := wire.DeedOf(record.Headers)
	if !ok || dead.Origin != (wire.Through{Epoch: d.Epoch, Through: d.Seq}) {
		return nil // it went while it was looked for
	}
	at := spot{d.Stream, d.Offset}
	s, e, err := c.load(at)
	if err != nil && !errors.Is(err, errFetch) {
		return err
	}
	if s == nil || wire.JIDTag(s.JID) != d.JIDTag {
		return nil
	}
	c.settling.open = slices.DeleteFunc(c.settling.open, func(o tracker.Doubt) bool { return spotOf(&o) == at }) // a fire before it came back
	r := wire.JournalRecord{Type: wire.TypeExpired, Stream: at.stream, Offset: at.offset, JID: d.JIDTag}
	if d.Op == wire.OpBuried {
		r.Type, r.DiedAt = wire.TypeKilled, wire.Seconds(dead.At)
		r.Actor, r.Command, r.InOperation = d.Actor, d.Command, d.Operation
		if e != nil {
			r.Entry = e.Raw
		}
	}
	return c.record(now, r, at, nil)
}

// mayBeThere tells whether an entry with a jid is pending or doubtful.
func (c *core) mayBeThere(jid string) (bool, error) {
	for _, stream := range []string{wire.ScheduledJobs, wire.Retries} {
		if found, err := c.entries.Find(stream, jid); err != nil || len(found) > 0 {
			return true, err
		}
	}
	return slices.ContainsFunc(c.settling.open, func(d tracker.Doubt) bool { return d.JID == wire.JIDTag(jid) }), nil
}
