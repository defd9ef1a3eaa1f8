package tracker

import (
	"time"

	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// foldEntry takes in one record of an entry stream.
func (t *Entries) foldEntry(tx *view.Tx, r *wire.Record) error {
	p := place{codes[r.Stream], r.Offset}
	if err := t.sweep(tx, p); err != nil {
		return err
	}
	if _, begun := t.peek().First[r.Stream]; !begun {
		t.update(func(s *State) { s.First[r.Stream] = r.Offset })
	}
	if r.Fault != "" {
		return t.reject(tx, r, r.Fault)
	}
	if t.isBarrier(r) {
		return t.foldBarrier(r)
	}
	_, replaces := r.Headers[wire.HeaderReplaces]
	trusted := t.Trusts(r)
	if _, probe := wire.ProbeOf(r.Headers); probe && trusted && r.Stream == wire.Gated {
		return nil
	}
	if replaces && !trusted {
		return t.reject(tx, r, "it replaces another entry, which only Millrace's own user may do: it came from user "+wire.ASCII(quoted(r.UserID)))
	}
	d, isDispatch := wire.DispatchOf(r.Headers)
	enqueues := r.Headers[wire.HeaderAnnounces] == wire.OpEnqueued && !replaces
	isCopy := trusted && isDispatch && !d.Burial() && r.Stream == wire.Gated // never void: its fire may be in force
	ours := trusted && (replaces || enqueues || isDispatch && d.Burial())
	if barrier, seen := t.peek().Barriers[r.Stream]; ours && seen && wire.Int(r.Headers, wire.HeaderEpoch) != barrier.Epoch {
		t.update(func(s *State) { s.Void[r.Stream]++ })
		return nil
	}
	if ours && isDispatch {
		t.buried(d)
	}
	e, err := wire.EntryOf(r)
	if err != nil {
		return t.reject(tx, r, err.Error())
	}
	if e.At.IsZero() && r.Stream == wire.Gated { // the transport cannot tell when it came
		e.At = time.Now().UTC()
	}
	if low, ok := t.peek().LowWater[r.Stream]; ok && r.Offset < low {
		return tx.Delete(keyMark(p)) // settled, whatever it was; what is rejected stays listed
	}
	s := newStored(&e)
	s.Trace = wire.TraceOf(r.Headers)
	_, drop := r.Headers[wire.HeaderDropped]
	s.Dropped = drop && trusted && r.Stream == wire.DeadJobs
	if _, lease := r.Headers[wire.HeaderLease]; lease && trusted && r.Stream == wire.ScheduledJobs {
		s.Leased = e.Job.JID
	}
	if ours && replaces {
		if first, carried := r.Headers[wire.HeaderFirst].(int64); carried {
			s.First = first
		}
		s.Parked, _ = r.Headers[wire.HeaderParked].(string)
		s.Burial.Op, _ = r.Headers[wire.HeaderCopy].(string)
		if err := t.replace(tx, s, wire.Int(r.Headers, wire.HeaderReplaces)); err != nil {
			return err
		}
		if a, ok := wire.AnnouncementOf(r, wire.JIDTag(e.JID)); ok {
			if err := t.announce(tx, a); err != nil {
				return err
			}
		}
	}
	if a, ok := wire.AnnouncementOf(r, wire.JIDTag(e.JID)); ok && ours && enqueues {
		a.JID = e.JID
		if err := t.announce(tx, a); err != nil {
			return err
		}
	}
	if isDispatch && (ours || isCopy) {
		s.Burial, s.Burial.Confirmed = d, 0
	}
	return t.meet(tx, s)
}

// replace drops the earlier entry that an entry stands for. One that is not the same job stands in another stream: the replacement was
// on its way when the stream was made anew. A mark stays: a fire of the earlier entry that came back, which the view may read only now,
// must not be taken for one whose entry is lost.
func (t *Entries) replace(tx *view.Tx, by *Stored, offset int64) error {
	p, tag := place{codes[by.Stream], offset}, wire.JIDTag(by.JID)
	old, err := t.stored(tx, p)
	if err != nil || offset >= by.Offset || old != nil && old.JID != by.JID {
		return err
	}
	m, err := t.mark(tx, p)
	if err != nil || m != nil && m.tag != tag {
		return err
	}
	if err := t.drop(tx, p); err != nil {
		return err
	}
	if low, ok := t.peek().LowWater[by.Stream]; ok && offset < low {
		return nil
	}
	return t.setMark(tx, p, &mark{state: replaced, tag: tag, seq: by.Offset})
}

// meet puts an entry together with what the journal has said of it already.
func (t *Entries) meet(tx *view.Tx, s *Stored) error {
	p := s.place()
	m, err := t.mark(tx, p)
	if err != nil {
		return err
	}
	if m != nil && m.tag != wire.JIDTag(s.JID) { // said of another entry, in a stream that is gone
		if err := t.unmark(tx, p, m); err != nil {
			return err
		}
		m = nil
	}
	switch {
	case m == nil:
		return t.addPending(tx, s)
	case m.state == replaced:
		return nil
	case m.state == settled:
		t.met(p)
		return tx.Delete(keyMark(p))
	case m.state == parked:
		s.Parked = m.reason
		if err := tx.Delete(keyMark(p)); err != nil {
			return err
		}
		return t.addPending(tx, s)
	}
	if m.returned {
		if err := t.unmark(tx, p, m); err != nil {
			return err
		}
		return t.addPending(tx, s)
	}
	m.body = nil // the entry has it
	if err := t.setMark(tx, p, m); err != nil {
		return err
	}
	return t.setStored(tx, s)
}

// isBarrier tells whether a record is one, so that a barrier that anybody else wrote is refused as an entry.
func (t *Entries) isBarrier(r *wire.Record) bool {
	return len(r.Body) < 1024 && t.Trusts(r) && gjson.ValidBytes(r.Body) && gjson.GetBytes(r.Body, "type").String() == wire.TypeBarrier
}

// foldBarrier notes a leader's barrier. One of an older epoch is void, unless its leader had read the newer one: then the journal was lost
// in between, and epochs have begun again.
func (t *Entries) foldBarrier(r *wire.Record) error {
	epoch, read := gjson.GetBytes(r.Body, "epoch").Int(), gjson.GetBytes(r.Body, "read")
	t.update(func(s *State) {
		before, seen := s.Barriers[r.Stream]
		if seen && epoch < before.Epoch && read.Exists() && read.Int() < before.Offset {
			s.Void[r.Stream]++
			return
		}
		if !seen {
			s.FirstBarrier[r.Stream] = r.Offset
		}
		s.Barriers[r.Stream] = before.follow(epoch, r.Offset, seen)
	})
	return nil
}

// addPending stores an entry and lists it.
func (t *Entries) addPending(tx *view.Tx, s *Stored) error {
	p := s.place()
	if err := t.setStored(tx, s); err != nil {
		return err
	}
	listed := keyList(s.listed(), s.At)
	t.fronts.add(tx, s.listed().stream, listed)
	if err := tx.Set(listed, summary(s)); err != nil {
		return err
	}
	if err := tx.Set(keyJID(p, s.JID), nil); err != nil {
		return err
	}
	if s.Leased != "" {
		if err := tx.Set(keyJID(s.listed(), s.Leased), nil); err != nil {
			return err
		}
	}
	t.counts.entry(tx, s, 1)
	if s.Stream == wire.DeadJobs {
		return tx.Set(keyDead(s), nil)
	}
	if s.IsCopy() {
		t.noteCopy(s)
	}
	if !fires(s) {
		return nil
	}
	t.noteReady(s)
	return tx.Set(keyFire(s.Queue, s.At, p), nil)
}

// removePending takes an entry out of the lists; it stays stored.
func (t *Entries) removePending(tx *view.Tx, s *Stored) error {
	p := s.place()
	if err := tx.Delete(keyList(s.listed(), s.At)); err != nil {
		return err
	}
	if err := tx.Delete(keyJID(p, s.JID)); err != nil {
		return err
	}
	if s.Leased != "" {
		if err := tx.Delete(keyJID(s.listed(), s.Leased)); err != nil {
			return err
		}
	}
	t.counts.entry(tx, s, -1)
	if s.Stream == wire.DeadJobs {
		return tx.Delete(keyDead(s))
	}
	if !fires(s) {
		return nil
	}
	return tx.Delete(keyFire(s.Queue, s.At, p))
}

// fires tells whether an entry is fired when it is due.
func fires(s *Stored) bool { return s.Stream != wire.DeadJobs && s.Parked == "" }

// drop forgets an entry, whatever its state: it was settled or replaced.
func (t *Entries) drop(tx *view.Tx, p place) error {
	s, err := t.stored(tx, p)
	if err != nil {
		return err
	}
	m, err := t.mark(tx, p)
	if err != nil {
		return err
	}
	if s != nil {
		if m == nil || m.state != doubtful {
			if err := t.removePending(tx, s); err != nil {
				return err
			}
		}
		if err := t.deleteStored(tx, p); err != nil {
			return err
		}
	}
	return t.unmark(tx, p, m)
}

func summary(s *Stored) []byte {
	return appendText(appendText(appendText(nil, s.Queue), s.Class), s.JID)
}

func quoted(user string) string {
	if user == "" {
		return "(none)"
	}
	return user
}
