package tracker

import (
	"fmt"
	"maps"

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
	if !t.Trusts(r) {
		return t.reject(tx, r, "the journal is Millrace's own: it came from user "+wire.ASCII(quoted(r.UserID)))
	}
	if format := wire.Int(r.Headers, wire.HeaderFormat); format > wire.Format {
		return fmt.Errorf("%w: the journal has format %d, this build knows %d: upgrade this sidecar", view.ErrHalt, format, wire.Format)
	}
	if p, ok := wire.ProbeOf(r.Headers); ok {
		return t.foldProbe(tx, r, p)
	}
	if d, ok := wire.DispatchOf(r.Headers); ok {
		return t.foldDispatch(tx, r, d)
	}
	j, err := wire.ParseJournal(r.Body)
	if err != nil {
		return t.reject(tx, r, err.Error())
	}
	return t.foldRecord(tx, r, &j)
}

// foldDispatch takes in a fire or burial: its entry is doubtful from here on.
func (t *Entries) foldDispatch(tx *view.Tx, r *wire.Record, d wire.Dispatch) error {
	late := t.isLate(d.Epoch)
	if err := t.confirm(tx, wire.ConfirmedBy(d.Epoch, r.Headers)); err != nil {
		return err
	}
	if late && d.Burial() { // its dead job stands behind the barrier of the leader that followed, and is void too
		t.void(r)
		return nil
	}
	if !late {
		t.numbers.add(r, d.Epoch, d.Seq)
	}
	t.update(func(s *State) {
		if !late {
			s.Led = true
			s.numbered(d.Epoch, d.Seq)
		}
		if d.Burial() {
			s.Buried++
		} else {
			s.Fired++
		}
	})
	if !d.Burial() { // of a kill the record is counted that follows
		t.part(d.Operation, 1)
	}
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
	if err := t.actOfDispatch(tx, &d, &what, r.Offset); err != nil {
		return err
	}
	if late {
		if open, err := t.lateFireIsOpen(tx, d); err != nil || !open {
			return err
		}
		tx.AfterCommit(func() { t.late.Add(1) })
	}
	return t.doubt(tx, r, d, late)
}

// isLate reports whether a record is of a leader that had been followed already. Its decisions are void: see foldLate. A newer epoch
// than the known one began in a part of the
// journal that retention took, or in a journal that is gone: then it does not tell from where it must be read.
func (t *Entries) isLate(epoch int64) bool {
	known := t.peek().Epoch
	if epoch > known {
		t.update(func(s *State) { s.opened(epoch, &wire.JournalRecord{}) })
	}
	return epoch < known
}

func (t *Entries) doubt(tx *view.Tx, r *wire.Record, d wire.Dispatch, late bool) error {
	p := place{codes[d.Stream], d.Offset}
	if p.stream == 0 {
		p.offset = r.Offset // a fire without an entry is named by where the journal has it
	}
	if low, ok := t.peek().LowWater[d.Stream]; ok && p.offset < low {
		return nil
	}
	s, err := t.stored(tx, p)
	if err != nil {
		return err
	}
	old, err := t.markAbout(tx, p, d.JIDTag, s)
	if err != nil {
		return err
	}
	m := &mark{state: doubtful, tag: d.JIDTag, epoch: d.Epoch, seq: d.Seq, op: d.Op, command: d.Command, actor: d.Actor, bulk: d.Operation}
	if late {
		m.late = r.Offset
	}
	switch {
	case s != nil && wire.JIDTag(s.JID) != d.JIDTag, old != nil && (old.tag != d.JIDTag || old.state == settled || old.state == replaced):
		return nil // said of another entry, in a stream that is gone; or it came back, and another entry stands for this one now
	case s == nil:
		m.body = r.Body // the entry may never come: its stream may have forgotten it
	case old == nil || old.state != doubtful:
		if err := t.removePending(tx, s); err != nil {
			return err
		}
		if s.Parked != "" {
			s.Parked = ""
			if err := t.setStored(tx, s); err != nil {
				return err
			}
		}
	}
	if err := t.unmark(tx, p, old); err != nil {
		return err
	}
	return t.setMark(tx, p, m)
}

// foldRecord takes in a JSON record of the journal.
func (t *Entries) foldRecord(tx *view.Tx, r *wire.Record, j *wire.JournalRecord) error {
	if j.Type == wire.TypeOpened {
		return t.open(tx, r.Offset, j)
	}
	late := t.isLate(j.Epoch)
	if err := t.confirm(tx, wire.ConfirmedBy(j.Epoch, r.Headers)); err != nil {
		return err
	}
	if late {
		return t.foldLate(tx, r, j)
	}
	if seq := wire.Int(r.Headers, wire.HeaderSeq); seq > t.peek().FoldedSeq {
		t.numbers.add(r, j.Epoch, seq)
		t.update(func(s *State) { s.numbered(j.Epoch, seq) })
	}
	if !t.peek().Led && j.Type != wire.TypeRecreated {
		t.update(func(s *State) { s.Led = true })
	}
	if err := t.answer(tx, r.Offset, j.Command); err != nil {
		return err
	}
	if err := t.foldType(tx, r, j); err != nil {
		return err
	}
	return t.actOf(tx, j, r.Offset)
}

func (t *Entries) foldType(tx *view.Tx, r *wire.Record, j *wire.JournalRecord) error {
	switch j.Type {
	case wire.TypeConfirmed:
		t.update(func(s *State) { s.routed(j.RoutedTo) })
		return t.confirm(tx, wire.Confirmed{Epoch: j.Epoch, Through: j.Through, Above: j.Above})
	case wire.TypeOperation:
		return t.operation(tx, j.Operation, r.Offset, false)
	case wire.TypeState:
		if err := t.pause(tx, j.Paused); err != nil {
			return err
		}
		for i := range j.Keys {
			if err := t.enqueued(tx, &j.Keys[i]); err != nil {
				return err
			}
		}
		return t.operation(tx, j.Operation, r.Offset, true)
	case wire.TypeReturned:
		t.part(j.InOperation, -1)
		return t.takeBack(tx, j.Epoch, j)
	case wire.TypeUnburied:
		return t.takeBack(tx, j.FiredEpoch, j)
	case wire.TypeDelivered:
		return t.delivered(tx, j)
	case wire.TypeRefused:
		return t.park(tx, j)
	case wire.TypeDuplicate, wire.TypeExpired, wire.TypeDeleted, wire.TypeKilled:
		return t.settle(tx, r, j)
	case wire.OpEnqueued:
		if err := t.enqueued(tx, j.Enqueued); err != nil {
			return err
		}
		return t.toldAt(tx, j)
	case wire.TypeChanged, wire.TypeUndone:
		return t.told(tx, r, j)
	case wire.TypeTrimmed:
		return t.trimmed(tx, j)
	case wire.TypeLowWater:
		t.update(func(s *State) {
			s.Needs, s.Told, s.Lost, s.LowWaterAt = max(s.Needs, j.Needs), true, false, j.At
			s.repeatedWitness(j)
			s.routed(j.RoutedTo)
			s.settledBefore(j.Epoch)
		})
		t.noteLowWater()
		if err := t.settleEarlier(tx, j.Epoch, j.ReadTo); err != nil {
			return err
		}
		if err := t.dropAged(tx); err != nil {
			return err
		}
		return t.lowWater(tx, j.LowWater)
	case wire.TypeRecreated:
		if err := t.interruptOperations(tx, j.Stream, r.Offset, j.At); err != nil {
			return err
		}
		return t.recreate(tx, j.Stream, j.Below)
	case wire.TypeWitness:
		t.update(func(s *State) {
			s.witnessed(j, wire.Int(r.Headers, wire.HeaderSeq))
			s.nothingMisrouted()
			s.settledBefore(j.Epoch)
		})
	case wire.TypeMisrouted:
		t.update(func(s *State) { s.foundMisrouted(r.Offset, j.At) })
	case wire.TypeReleased:
		t.release(j.Held)
	case wire.TypeRejected:
		return t.keepReject(tx, Reject{Stream: j.Queue, Offset: r.Offset, Reason: j.Reason, Size: j.Count, Body: j.Body})
	case wire.TypeDismissed:
		return t.dismiss(tx, j.Stream, j.Offset)
	}
	return nil
}

func (t *Entries) open(tx *view.Tx, offset int64, j *wire.JournalRecord) error {
	if j.Format > wire.Format {
		return fmt.Errorf("%w: the journal has format %d, this build knows %d: upgrade this sidecar", view.ErrHalt, j.Format, wire.Format)
	}
	if k := j.KnownConfirmed; k != nil {
		if err := t.confirm(tx, *k); err != nil {
			return err
		}
	}
	t.update(func(s *State) {
		s.opened(offset, j)
		s.Told = true
	})
	if err := t.cancelOperations(tx, j.Held, offset, j.At); err != nil {
		return err
	}
	// Whoever has read that a stream was made anew has read all that was said of it since, and knows better than a leader that had not.
	water := maps.Clone(j.LowWater)
	maps.DeleteFunc(water, func(stream string, _ int64) bool {
		_, recreated := t.peek().Recreated[stream]
		return recreated
	})
	return t.lowWater(tx, water)
}
