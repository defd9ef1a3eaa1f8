package tracker

import (
	"fmt"
	"maps"
	"slices"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// foldJournal takes in one record of the journal.
func (t *Entries) foldJournal(tx *view.Tx, r *wire.Record) error {
	if t.peek().JournalFirst < 0 {
		t.update(func(s *State) { s.JournalFirst = r.Offset })
	}
	if r.Fault != "" {
		return t.reject(tx, r, r.Fault)
	}
	if !t.trusts(r) {
		return t.reject(tx, r, "the journal is Millrace's own: it came from user "+wire.ASCII(quoted(r.UserID)))
	}
	if format := wire.Int(r.Headers, wire.HeaderFormat); format > wire.Format {
		return fmt.Errorf("%w: the journal has format %d, this build knows %d: upgrade this sidecar", view.ErrHalt, format, wire.Format)
	}
	if d, ok := wire.DeedOf(r.Headers); ok {
		return t.foldDeed(tx, r, d)
	}
	j, err := wire.ParseJournal(r.Body)
	if err != nil {
		return t.reject(tx, r, err.Error())
	}
	return t.foldRecord(tx, r, &j)
}

// foldDeed takes in a fire or burial: its entry is doubtful from here on.
func (t *Entries) foldDeed(tx *view.Tx, r *wire.Record, d wire.Deed) error {
	if t.isVoid(d.Epoch) {
		t.update(func(s *State) { s.Void[r.Stream]++ })
		return nil
	}
	if err := t.confirm(tx, d.Epoch, d.Confirmed); err != nil {
		return err
	}
	t.update(func(s *State) {
		s.FoldedSeq, s.Led = max(s.FoldedSeq, d.Seq), true
		if d.Burial() {
			s.Buried++
		} else {
			s.Fired++
		}
	})
	what := wire.Happened{What: d.Op, At: wire.Seconds(r.Time), Offset: d.Offset, Actor: d.Actor}
	if r.Time.IsZero() {
		what.At = 0
	}
	if err := t.remember(tx, r.Offset, codes[d.Stream], d.JIDTag, what); err != nil {
		return err
	}
	if err := t.answer(tx, r.Offset, d.Command); err != nil {
		return err
	}
	return t.doubt(tx, r, d)
}

// isVoid tells whether a record is of a leader that had been followed already. A newer epoch than the known one began in a part of the
// journal that retention took, or in a journal that is gone: then it does not tell from where it must be read.
func (t *Entries) isVoid(epoch int64) bool {
	known := t.peek().Epoch
	if epoch > known {
		t.update(func(s *State) { s.opened(epoch, &wire.JournalRecord{Needs: s.Needs, Held: s.Held}) })
	}
	return epoch < known
}

func (t *Entries) doubt(tx *view.Tx, r *wire.Record, d wire.Deed) error {
	p := place{codes[d.Stream], d.Offset}
	if p.stream == 0 {
		p.offset = r.Offset // a fire without an entry is named by where the journal has it
	}
	if low, ok := t.peek().LowWater[d.Stream]; ok && p.offset < low {
		return nil
	}
	s, err := t.entry(tx, p)
	if err != nil {
		return err
	}
	old, err := t.mark(tx, p)
	if err != nil {
		return err
	}
	m := &mark{state: doubtful, tag: d.JIDTag, epoch: d.Epoch, seq: d.Seq, op: d.Op}
	switch {
	case s != nil && wire.JIDTag(s.JID) != d.JIDTag, old != nil && (old.tag != d.JIDTag || old.state == settled):
		return nil // said of another entry, in a stream that is gone
	case s == nil:
		m.body = r.Body // the entry may never come: its stream may have forgotten it
	case old == nil || old.state != doubtful:
		if err := t.removePending(tx, s); err != nil {
			return err
		}
		if s.Parked != "" {
			s.Parked = ""
			if err := tx.Set(keyEntry(p), s.encode()); err != nil {
				return err
			}
		}
	}
	if err := t.unmark(tx, p, old); err != nil {
		return err
	}
	if err := tx.Set(keyMark(p), m.encode()); err != nil {
		return err
	}
	return tx.Set(keyDoubtful(d.Epoch, d.Seq), p.append(nil))
}

// confirm settles the doubtful fires and burials of an epoch up to a number.
func (t *Entries) confirm(tx *view.Tx, epoch, through int64) error {
	from := int64(0)
	if current := t.peek(); epoch == current.Epoch {
		if through <= current.Confirmed {
			return nil
		}
		from = current.Confirmed + 1 // what was settled is deleted, but the store walks over it for long
		t.update(func(s *State) { s.Confirmed = through })
	}
	var places []place
	err := tx.Scan(keyDoubtful(epoch, from), keyDoubtful(epoch, through+1), false, func(_, value []byte) bool {
		places = append(places, placeOf(value))
		return true
	})
	if err != nil {
		return err
	}
	for _, p := range places {
		if err := t.settleDoubtful(tx, p); err != nil {
			return err
		}
	}
	return nil
}

// settleDoubtful forgets an entry whose fire or burial is known to have reached its target.
func (t *Entries) settleDoubtful(tx *view.Tx, p place) error {
	m, err := t.mark(tx, p)
	if err != nil || m == nil {
		return err
	}
	if m.state == doubtful && len(m.body) == 0 { // the entry is stored, and was taken off the lists when it was fired
		if err := tx.Delete(keyEntry(p)); err != nil {
			return err
		}
		return t.unmark(tx, p, m)
	}
	if err := t.drop(tx, p); err != nil {
		return err
	}
	return t.settleUnread(tx, p, m.tag)
}

// foldRecord takes in a JSON record of the journal.
func (t *Entries) foldRecord(tx *view.Tx, r *wire.Record, j *wire.JournalRecord) error {
	if j.Type == wire.TypeOpened {
		return t.open(tx, r.Offset, j)
	}
	if t.isVoid(j.Epoch) {
		t.update(func(s *State) { s.Void[r.Stream]++ })
		return nil
	}
	if err := t.confirm(tx, j.Epoch, wire.Int(r.Headers, wire.HeaderConfirmed)); err != nil {
		return err
	}
	if seq := wire.Int(r.Headers, wire.HeaderSeq); seq > t.peek().FoldedSeq {
		t.update(func(s *State) { s.FoldedSeq = seq })
	}
	if !t.peek().Led && j.Type != wire.TypeRecreated {
		t.update(func(s *State) { s.Led = true })
	}
	if err := t.answer(tx, r.Offset, j.Command); err != nil {
		return err
	}
	return t.foldType(tx, r, j)
}

func (t *Entries) foldType(tx *view.Tx, r *wire.Record, j *wire.JournalRecord) error {
	switch j.Type {
	case wire.TypeConfirmed:
		return t.confirm(tx, j.Epoch, j.Through)
	case wire.TypeReturned:
		return t.takeBack(tx, j.Epoch, j.Seq)
	case wire.TypeUnburied:
		return t.takeBack(tx, j.FiredEpoch, j.Seq)
	case wire.TypeDelivered:
		return t.delivered(tx, j)
	case wire.TypeRefused:
		return t.park(tx, j)
	case wire.TypeDuplicate, wire.TypeExpired, wire.TypeDeleted, wire.TypeChanged, wire.TypeKilled:
		return t.settle(tx, r, j)
	case wire.TypeTrimmed:
		return t.lowWater(tx, map[string]int64{j.Stream: j.Below})
	case wire.TypeLowWater:
		t.update(func(s *State) {
			s.Needs, s.Told, s.LowWaterAt, s.Witness = max(s.Needs, j.Needs), true, j.At, orElse(j.Queue, s.Witness)
		})
		t.noteLowWater()
		return t.lowWater(tx, j.LowWater)
	case wire.TypeRecreated:
		return t.recreate(tx, j.Stream)
	case wire.TypeWitness:
		t.update(func(s *State) { s.Witness = j.Queue })
	case wire.TypeReleased:
		t.update(func(s *State) { s.Held, s.Needs = map[string]int64{}, max(s.Needs, j.Needs) })
		t.readyAll()
		return tx.ClearGap()
	case wire.TypeRejected:
		return t.keepReject(tx, Reject{Stream: j.Queue, Offset: r.Offset, Reason: j.Reason, Size: j.Count, Body: j.Body})
	case wire.TypeDismissed:
		return t.dismiss(tx, j.Stream, j.Offset)
	}
	return nil // state, operation: folded by who needs them
}

func (t *Entries) open(tx *view.Tx, offset int64, j *wire.JournalRecord) error {
	if j.Format > wire.Format {
		return fmt.Errorf("%w: the journal has format %d, this build knows %d: upgrade this sidecar", view.ErrHalt, j.Format, wire.Format)
	}
	if k := j.KnownConfirmed; k != nil {
		if err := t.confirm(tx, k.Epoch, k.Through); err != nil {
			return err
		}
	}
	t.update(func(s *State) {
		s.opened(offset, j)
		s.Told = true
		s.Witness = orElse(j.Queue, s.Witness)
	})
	return t.lowWater(tx, j.LowWater)
}

// delivered settles a doubtful fire or burial of an earlier epoch.
func (t *Entries) delivered(tx *view.Tx, j *wire.JournalRecord) error {
	raw, ok, err := tx.Get(keyDoubtful(j.FiredEpoch, j.Seq))
	if err != nil || !ok {
		return err
	}
	return t.settleDoubtful(tx, placeOf(raw))
}

// settle handles the records after which an entry is no longer pending.
func (t *Entries) settle(tx *view.Tx, r *wire.Record, j *wire.JournalRecord) error {
	p := place{codes[j.Stream], j.Offset}
	if j.Type == wire.TypeDuplicate {
		t.update(func(s *State) { s.Duplicates++ })
	} else if err := t.remember(tx, r.Offset, p.stream, j.JID, wire.Happened{What: j.Type, At: j.At, Offset: j.Offset, Actor: j.Actor}); err != nil {
		return err
	}
	if matches, err := t.about(tx, p, j.JID); err != nil || !matches {
		return err
	}
	if err := t.drop(tx, p); err != nil {
		return err
	}
	return t.settleUnread(tx, p, j.JID)
}

// about tells whether a record's jid is that of the entry that the view knows at a place, or whether it knows none.
func (t *Entries) about(tx *view.Tx, p place, tag string) (bool, error) {
	s, err := t.entry(tx, p)
	if err != nil {
		return false, err
	}
	if s != nil {
		return wire.JIDTag(s.JID) == tag, nil
	}
	m, err := t.mark(tx, p)
	return err == nil && (m == nil || m.tag == tag), err
}

// settleUnread leaves a mark for an entry that the view has not read yet.
func (t *Entries) settleUnread(tx *view.Tx, p place, tag string) error {
	if gone, err := t.gone(tx, p); err != nil || gone {
		return err
	}
	t.wait(p)
	return tx.Set(keyMark(p), (&mark{state: settled, tag: tag}).encode())
}

// takeBack makes the entry of a doubtful fire or burial pending again: it did not reach its queue.
func (t *Entries) takeBack(tx *view.Tx, epoch, seq int64) error {
	raw, ok, err := tx.Get(keyDoubtful(epoch, seq))
	if err != nil || !ok {
		return err
	}
	p := placeOf(raw)
	m, err := t.mark(tx, p)
	if err != nil {
		return err
	}
	s, err := t.entry(tx, p)
	if err != nil {
		return err
	}
	if gone, err := t.gone(tx, p); err != nil || s == nil && gone {
		return err // only the journal has this job: it stays doubtful, for the next leader to fire again
	}
	if err := t.unmark(tx, p, m); err != nil || s == nil {
		return err
	}
	return t.addPending(tx, s)
}

// gone tells whether the view is past a place, so that an entry that is not there will not come.
func (t *Entries) gone(tx *view.Tx, p place) (bool, error) {
	if p.stream == 0 {
		return true, nil
	}
	read, err := tx.Position(p.name())
	return p.offset <= read, err
}

// park keeps an entry that the broker cannot take, with the reason, and never fires it by itself.
func (t *Entries) park(tx *view.Tx, j *wire.JournalRecord) error {
	p := place{codes[j.Stream], j.Offset}
	if matches, err := t.about(tx, p, j.JID); err != nil || !matches {
		return err
	}
	s, err := t.entry(tx, p)
	if err != nil {
		return err
	}
	if s == nil {
		return t.parkUnread(tx, p, j)
	}
	m, err := t.mark(tx, p)
	if err != nil {
		return err
	}
	if m == nil {
		if err := t.removePending(tx, s); err != nil {
			return err
		}
	}
	if err := t.unmark(tx, p, m); err != nil {
		return err
	}
	s.Parked = j.Error
	return t.addPending(tx, s)
}

func (t *Entries) parkUnread(tx *view.Tx, p place, j *wire.JournalRecord) error {
	m, err := t.mark(tx, p)
	if err != nil {
		return err
	}
	if err := t.unmark(tx, p, m); err != nil {
		return err
	}
	if gone, err := t.gone(tx, p); err != nil || gone {
		return err
	}
	return tx.Set(keyMark(p), (&mark{state: parked, tag: j.JID, reason: j.Error}).encode())
}

// lowWater forgets everything below an offset of each stream: it is settled, whatever the journal still says of it.
func (t *Entries) lowWater(tx *view.Tx, water map[string]int64) error {
	for _, stream := range slices.Sorted(maps.Keys(water)) {
		c, below := codes[stream], water[stream]
		if c == 0 || below <= t.peek().LowWater[stream] {
			continue
		}
		t.update(func(s *State) { s.LowWater[stream] = below })
		if err := t.dropWhere(tx, place{c, minOffset}, place{c, below}); err != nil {
			return err
		}
	}
	return nil
}

// recreate forgets a stream and everything that was said of it, and has it read anew.
func (t *Entries) recreate(tx *view.Tx, stream string) error {
	c := codes[stream]
	if c == 0 {
		return nil
	}
	if err := t.dropWhere(tx, place{c, minOffset}, place{c, noOffset}); err != nil {
		return err
	}
	if err := forgetRejects(tx, stream); err != nil {
		return err
	}
	t.waiting[c] = noOffset
	t.update(func(s *State) {
		delete(s.LowWater, stream)
		delete(s.Barriers, stream)
		delete(s.First, stream)
		s.Recreated[stream] = s.Epoch
		delete(s.Held, stream)
		delete(s.Rejected, stream)
		delete(s.Void, stream)
	})
	return tx.Rewind(stream)
}

// dropWhere drops every entry and mark from one place up to another of the same stream.
func (t *Entries) dropWhere(tx *view.Tx, from, to place) error {
	for _, key := range []func(place) []byte{keyEntry, keyMark} {
		var places []place
		err := tx.Scan(key(from), key(to), false, func(k, _ []byte) bool {
			places = append(places, placeOf(k[1:]))
			return true
		})
		if err != nil {
			return err
		}
		for _, p := range places {
			if err := t.drop(tx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
