package tracker

import (
	"time"

	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// entryFold takes in the records of the entry streams.
type entryFold struct {
	trust     Trust
	state     *leadership
	rejects   *rejects
	awaited   awaited
	announced *announcements
	lifecycle *lifecycle
}

// origin is the source of a record, according to its headers.
type origin struct {
	trusted    bool
	replaces   bool // another entry
	enqueues   bool // a job under a key
	isDispatch bool // a burial, or the copy of a fire
	dispatch   wire.Dispatch
}

func (t *entryFold) originOf(r *wire.Record) (o origin) {
	o.trusted = t.trust.Trusts(r)
	_, o.replaces = r.Headers[wire.HeaderReplaces]
	o.dispatch, o.isDispatch = wire.DispatchOf(r.Headers)
	o.enqueues = r.Headers[wire.HeaderAnnounces] == wire.OpEnqueued && !o.replaces
	return o
}

// ours reports whether a leader wrote the record. It is void if another leader has followed.
func (o *origin) ours() bool {
	return o.trusted && (o.replaces || o.enqueues || o.isDispatch && o.dispatch.Burial())
}

// fold takes in one record.
func (t *entryFold) fold(tx *view.Tx, r *wire.Record) error {
	id := entryID{codes[r.Stream], r.Offset}
	if err := t.awaited.sweep(tx, id); err != nil {
		return err
	}
	if _, begun := t.state.peek().First[r.Stream]; !begun {
		t.state.update(func(s *State) { s.First[r.Stream] = r.Offset })
	}
	if r.Fault != "" {
		return t.rejects.record(tx, r, r.Fault)
	}
	if t.isBarrier(r) {
		t.foldBarrier(r)
		return nil
	}
	o := t.originOf(r)
	if p, probe := wire.ProbeOf(r.Headers); probe && o.trusted && r.Stream == wire.Gated {
		if p.Number > 0 {
			t.state.update(func(s *State) { s.GatedProbe = wire.Through{Epoch: p.Epoch, Through: p.Number} })
		}
		return nil
	}
	if o.replaces && !o.trusted {
		return t.rejects.record(tx, r, "it replaces another entry, which only Millrace's own user may do: it came from user "+wire.ASCII(quoted(r.UserID)))
	}
	ours := o.ours()
	if barrier, seen := t.state.peek().Barriers[r.Stream]; ours && seen && barrier.voids(wire.Int(r.Headers, wire.HeaderEpoch)) {
		t.state.void(r.Stream)
		return nil
	}
	if ours && o.isDispatch {
		t.state.update(func(s *State) { s.buried(wire.Through{Epoch: o.dispatch.Epoch, Through: o.dispatch.Seq}) })
	}
	e, err := wire.EntryOf(r)
	if err != nil {
		return t.rejects.record(tx, r, err.Error())
	}
	if e.At.IsZero() && r.Stream == wire.Gated { // the transport does not say when it came
		e.At = time.Now().UTC()
	}
	if t.state.settled(r.Stream, r.Offset) {
		return tx.Delete(keyMark(id)) // what is rejected stays listed
	}
	return t.enter(tx, r, &e, &o)
}

// enter takes in an entry.
func (t *entryFold) enter(tx *view.Tx, r *wire.Record, e *wire.Entry, o *origin) error {
	s := newStored(e)
	s.Provenance = wire.ProvenanceOf(r.Headers, r.UserID, o.trusted)
	if s.Class != wire.MessageClass {
		s.Sender = ""
	}
	_, drop := r.Headers[wire.HeaderDropped]
	s.Dropped = drop && o.trusted && r.Stream == wire.DeadJobs
	if _, lease := r.Headers[wire.HeaderLease]; lease && o.trusted && r.Stream == wire.ScheduledJobs {
		s.Leased = e.Job.JID
	}
	ours := o.ours()
	if ours && o.replaces {
		if first, carried := r.Headers[wire.HeaderFirst].(int64); carried {
			s.First = first
		}
		s.Parked, _ = r.Headers[wire.HeaderParked].(string)
		s.Burial.Op, _ = r.Headers[wire.HeaderCopy].(string)
		if err := t.lifecycle.replace(tx, s, wire.Int(r.Headers, wire.HeaderReplaces)); err != nil {
			return err
		}
	}
	if ours && (o.replaces || o.enqueues) {
		if a, ok := wire.AnnouncementOf(r, wire.JIDTag(e.JID)); ok {
			if o.enqueues {
				a.JID = e.JID
			}
			if err := t.announced.add(tx, a); err != nil {
				return err
			}
		}
	}
	isCopy := o.trusted && o.isDispatch && !o.dispatch.Burial() && r.Stream == wire.Gated // never void: its fire may be in force
	if o.isDispatch && (ours || isCopy) {
		s.Burial, s.Burial.Confirmed = o.dispatch, 0
	}
	return t.lifecycle.reconcile(tx, s)
}

// isBarrier reports whether a record is a barrier. One that another user wrote is refused as an
// entry.
func (t *entryFold) isBarrier(r *wire.Record) bool {
	return len(r.Body) < 1024 && t.trust.Trusts(r) && gjson.ValidBytes(r.Body) && gjson.GetBytes(r.Body, "type").String() == wire.TypeBarrier
}

// foldBarrier notes a leader's barrier. One of an older epoch is void, unless its leader had read
// the newer one: then the journal was lost in between, and epochs have begun again. A leader that
// could not read its barrier may have written it again.
func (t *entryFold) foldBarrier(r *wire.Record) {
	epoch, read := gjson.GetBytes(r.Body, "epoch").Int(), gjson.GetBytes(r.Body, "read")
	t.state.update(func(s *State) {
		before, seen := s.Barriers[r.Stream]
		if seen && epoch < before.Epoch && read.Exists() && read.Int() < before.Offset {
			s.Void[r.Stream]++
			return
		}
		if seen && epoch == before.Epoch && read.Exists() && read.Int() < before.Offset {
			return
		}
		next := Barrier{Epoch: epoch, Offset: r.Offset}
		if seen {
			next = before.follow(epoch, r.Offset)
		} else {
			s.FirstBarrier[r.Stream] = r.Offset
		}
		// Retention may have taken newer barriers that its leader did not know.
		first := s.First[r.Stream]
		next.Overtaken = (!seen && first > 1 || before.Overtaken) && read.Exists() && read.Int() < first-1
		s.Barriers[r.Stream] = next
	})
}

func quoted(user string) string {
	if user == "" {
		return "(none)"
	}
	return user
}
