package tracker

import (
	"cmp"
	"encoding/binary"
	"time"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// foldDecided takes in decisions about unique jobs, in their order.
func (t *journalFold) foldDecided(r record) error {
	if err := t.keys.expire(r.tx, r.j.At); err != nil {
		return err
	}
	for i := range r.j.Decisions {
		if err := t.decide(r, &r.j.Decisions[i]); err != nil {
			return err
		}
	}
	t.keys.begin(r.tx)
	t.keys.decided = append(t.keys.decided, r.j.Decisions...)
	return nil
}

func (t *journalFold) decide(r record, d *wire.Decision) error {
	id := entryID{codes[wire.Gated], d.Offset}
	switch d.Outcome {
	case wire.UniqueAdmitted:
		return t.admit(r, id, d)
	case wire.UniqueDuplicate:
		if d.Holder != nil {
			holder := entryID{codes[wire.Gated], *d.Holder}
			if err := t.lifecycle.putOff(r.tx, holder, &admission{JID: d.HolderJID, Due: d.Due}); err != nil {
				return err
			}
		}
		return t.outdo(r, id, d.JID, wire.UniqueDuplicate, d.Of)
	case wire.UniqueRepeated:
		t.state.update(func(s *State) { s.Duplicates++ })
		return t.lifecycle.settle(r.tx, id, d.JID)
	case wire.UniqueFreed:
		return t.keys.endPeriod(r.tx, d.Key)
	}
	return nil
}

// admit takes in that an entry has its key.
func (t *journalFold) admit(r record, id entryID, d *wire.Decision) error {
	if d.Holder != nil {
		if err := t.outdo(r, entryID{codes[wire.Gated], *d.Holder}, d.HolderJID, wire.UniqueReplaced, d.JID); err != nil {
			return err
		}
	}
	if err := t.lifecycle.putOff(r.tx, id, &admission{JID: d.JID, Due: d.Due, First: d.First}); err != nil || d.Key == "" {
		return err
	}
	if d.Until == 0 {
		return t.keys.endPeriod(r.tx, d.Key)
	}
	return t.keys.take(r.tx, &wire.UniquePeriod{Key: d.Key, JID: d.JID, Since: int64(micros(r.j.At)), Until: d.Until})
}

// outdo settles an entry because another job has its key.
func (t *journalFold) outdo(r record, id entryID, tag, what, other string) error {
	happened := wire.Happened{What: what, At: r.j.At, Offset: id.offset, Other: other}
	return cmp.Or(t.outcomes.remember(r.tx, r.Offset, id.stream, tag, happened), t.lifecycle.settle(r.tx, id, tag))
}

// putOff takes in that an entry of jobs.gated has its key, and when it is due.
func (t *lifecycle) putOff(tx *view.Tx, id entryID, a *admission) error {
	if t.state.settled(id.name(), id.offset) {
		return nil
	}
	if matches, err := t.about(tx, id, a.JID); err != nil || !matches {
		return err
	}
	s, err := t.entries.stored(tx, id)
	if err != nil {
		return err
	}
	m, err := t.entries.mark(tx, id)
	switch {
	case err != nil:
		return err
	case s == nil && m != nil && m.state == settled:
		return nil
	case s == nil:
		if passed, err := passed(tx, id); err != nil || passed {
			return err
		}
		return t.entries.keys.await(tx, id.offset, a)
	case m != nil && m.state == inDoubt:
		a.admitted(s)
		return t.entries.setStored(tx, s)
	}
	if err := t.entries.removePending(tx, s); err != nil {
		return err
	}
	a.admitted(s)
	return t.entries.addPending(tx, s)
}

// uniqueness is what is known of the key of an entry.
type uniqueness struct {
	Unique    wire.UniqueID // empty: it has none
	Undecided bool          // it is not decided whether it has its key
	Waiting   bool          // its key is free when it is delivered
	Replace   bool
	For       time.Duration
	Wait, Max time.Duration

	PutOffSince int64 // in microseconds since 1970: when the first one came that it replaces

	ReplyTo, CorrelationID string // of an undecided entry
}

// uniquenessOf returns it of an entry that was read. No decision is made in other streams. A fire that
// found no queue had its key before.
func uniquenessOf(e *wire.EntryRecord) (u uniqueness) {
	of := e.Job.Unique
	if of == nil || e.Stream == wire.ScheduledJobs {
		return u
	}
	u = uniqueness{Unique: wire.UniqueIDOf(&e.Job), Waiting: of.Waiting, Replace: of.Replace, For: of.For, Wait: of.Wait, Max: of.Max}
	old := e.Replaces
	u.Undecided = e.Stream == wire.Gated && e.Dispatch == nil && (old == nil || old.Copy == "" && old.Admitted == nil)
	switch {
	case u.Undecided:
		u.ReplyTo, u.CorrelationID = e.ReplyTo, e.CorrelationID
	case old != nil && old.Admitted != nil:
		u.PutOffSince = old.Admitted.First
	}
	return u
}

// HoldsSlot reports whether the job holds its key until it has ended. Then each fire takes a slot, so
// that its end is known.
func (s *Stored) HoldsSlot() bool {
	return s.Unique != "" && !s.Waiting && s.Stream != wire.ScheduledJobs
}

// holdsKey reports whether an entry holds its key.
func (s *Stored) holdsKey() bool {
	return s.Unique != "" && !s.Undecided && (s.Stream == wire.Gated || s.Stream == wire.Retries && !s.Waiting)
}

// slotKey returns the key that the slot of a fire holds, empty if it holds none.
func slotKey(stream string, job *wire.Job) wire.UniqueID {
	if job.Unique == nil || job.Unique.Waiting || stream == wire.ScheduledJobs {
		return ""
	}
	return wire.UniqueIDOf(job)
}

// HoldsKeyOf makes an entry of which only the journal has the job hold its key as it would if the view
// had it.
func (s *Stored) HoldsKeyOf(job *wire.Job) { s.Unique, s.Waiting = slotKey(s.Stream, job), false }

func (u *uniqueness) append(b []byte) []byte {
	if u.Unique == "" {
		return b
	}
	for _, t := range []string{string(u.Unique), u.ReplyTo, u.CorrelationID} {
		b = table.AppendText(b, t)
	}
	for _, n := range []int64{int64(u.For), int64(u.Wait), int64(u.Max), u.PutOffSince} {
		b = binary.AppendVarint(b, n)
	}
	return b
}

func (u *uniqueness) decode(d *table.Decoder) {
	u.Unique, u.ReplyTo, u.CorrelationID = wire.UniqueID(d.Text()), d.Text(), d.Text()
	u.For, u.Wait, u.Max, u.PutOffSince = time.Duration(d.Int()), time.Duration(d.Int()), time.Duration(d.Int()), d.Int()
}
