package tracker

import (
	"fmt"
	"maps"

	"github.com/millrace-jobs/millrace/tracker/audit"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// journalFold takes in the records of the journal.
type journalFold struct {
	trust        Trust
	state        *leadership
	numbers      *numbers
	rejects      *rejects
	outcomes     *outcomes
	operations   *operations
	audit        *audit.Log
	pauses       *pauses
	settling     *settling
	replacements replacements
	lowWater     lowWater
	record       wire.JournalRecord // the newest; here, since each would be allocated to be passed to recordFolds
}

// fold takes in one record.
func (t *journalFold) fold(tx *view.Tx, r *wire.Record) error {
	if t.state.peek().JournalFirst < 0 {
		t.state.update(func(s *State) { s.JournalFirst = r.Offset })
	}
	if r.Fault != "" {
		return t.rejects.record(tx, r, r.Fault)
	}
	if !t.trust.Trusts(r) {
		return t.rejects.record(tx, r, "the journal is Millrace's own: it came from user "+wire.ASCII(quoted(r.UserID)))
	}
	if format := wire.Int(r.Headers, wire.HeaderFormat); format > wire.Format {
		return fmt.Errorf("%w: the journal has format %d, this build knows %d: upgrade this sidecar", view.ErrHalt, format, wire.Format)
	}
	if p, ok := wire.ProbeOf(r.Headers); ok {
		return t.foldProbe(tx, r, p)
	}
	if d, ok := wire.DeedOf(r.Headers); ok {
		return t.foldDispatch(tx, r, &d)
	}
	var err error
	if t.record, err = wire.ParseJournal(r.Body); err != nil {
		return t.rejects.record(tx, r, err.Error())
	}
	return t.foldRecord(tx, r, &t.record)
}

// isLate reports whether a record is of a leader that had been followed already. If its epoch is
// newer than the known one, that began in a part of the journal that retention took, or in a
// journal that is gone. Then the journal does not say from where on it must be read.
func (t *journalFold) isLate(epoch int64) bool {
	known := t.state.peek().Epoch
	if epoch > known {
		t.state.update(func(s *State) { s.opened(epoch, &wire.JournalRecord{}) })
	}
	return epoch < known
}

// confirm settles the fires and burials of an epoch that are confirmed.
func (t *journalFold) confirm(tx *view.Tx, k wire.Confirmed) error {
	t.numbers.confirmed(k)
	for _, r := range k.Above {
		if err := t.settling.between(tx, dispatchID{k.Epoch, r.First}, dispatchID{k.Epoch, r.Last + 1}); err != nil {
			return err
		}
	}
	from := int64(0)
	if current := t.state.peek(); k.Epoch == current.Epoch {
		if k.Through <= current.Confirmed {
			return nil
		}
		from = current.Confirmed + 1
		t.state.update(func(s *State) { s.Confirmed = k.Through })
	}
	return t.settling.between(tx, dispatchID{k.Epoch, from}, dispatchID{k.Epoch, k.Through + 1})
}

// foldProbe takes in a probe of the routing.
func (t *journalFold) foldProbe(tx *view.Tx, r *wire.Record, p wire.Probe) error {
	if t.isLate(p.Epoch) {
		t.state.void(r.Stream)
	} else {
		t.state.update(func(s *State) {
			s.routed(&p.Routed)
			s.Probe, s.ProbeAt = p.Number, r.Offset
		})
	}
	return t.confirm(tx, wire.ConfirmedBy(p.Epoch, r.Headers))
}

// foldDispatch takes in a fire or burial. Its entry is in doubt from here on.
func (t *journalFold) foldDispatch(tx *view.Tx, r *wire.Record, d *wire.Deed) error {
	late := t.isLate(d.Epoch)
	if err := t.confirm(tx, wire.ConfirmedBy(d.Epoch, r.Headers)); err != nil {
		return err
	}
	if late && d.Burial() { // its dead job is behind the barrier of the leader that followed, and void too
		t.state.void(r.Stream)
		return nil
	}
	t.countDispatch(r, d, late)
	what := wire.Happened{What: d.Op, At: wire.Seconds(r.Time), Offset: d.Offset, Actor: d.Actor}
	if r.Time.IsZero() {
		what.At = 0
	}
	if err := t.outcomes.remember(tx, r.Offset, codes[d.Stream], d.JIDTag, what); err != nil {
		return err
	}
	if err := t.outcomes.answer(tx, r.Offset, d.Command); err != nil {
		return err
	}
	if err := t.audit.FoldDispatch(tx, d, what.At, r.Offset); err != nil {
		return err
	}
	if !late {
		return t.settling.markInDoubt(tx, r, d, 0)
	}
	if open, err := t.settling.isOpen(tx, d); err != nil || !open {
		return err
	}
	tx.AfterCommit(func() { t.state.shown.late.Add(1) })
	return t.settling.markInDoubt(tx, r, d, r.Offset)
}

func (t *journalFold) countDispatch(r *wire.Record, d *wire.Deed, late bool) {
	if !late {
		t.numbers.add(r, d.Epoch, d.Seq)
	}
	t.state.update(func(s *State) {
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
		t.operations.count(d.Operation, 1)
	}
}

// foldRecord takes in a JSON record.
func (t *journalFold) foldRecord(tx *view.Tx, r *wire.Record, j *wire.JournalRecord) error {
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
	if seq := wire.Int(r.Headers, wire.HeaderSeq); seq > t.state.peek().FoldedSeq {
		t.numbers.add(r, j.Epoch, seq)
		t.state.update(func(s *State) { s.numbered(j.Epoch, seq) })
	}
	if !t.state.peek().Led && j.Type != wire.TypeRecreated {
		t.state.update(func(s *State) { s.Led = true })
	}
	if err := t.outcomes.answer(tx, r.Offset, j.Command); err != nil {
		return err
	}
	if fold := recordFolds[j.Type]; fold != nil {
		if err := fold(t, tx, r, j); err != nil {
			return err
		}
	}
	return t.audit.Fold(tx, j, r.Offset)
}

// open begins an epoch.
func (t *journalFold) open(tx *view.Tx, offset int64, j *wire.JournalRecord) error {
	if j.Format > wire.Format {
		return fmt.Errorf("%w: the journal has format %d, this build knows %d: upgrade this sidecar", view.ErrHalt, j.Format, wire.Format)
	}
	if k := j.KnownConfirmed; k != nil {
		if err := t.confirm(tx, *k); err != nil {
			return err
		}
	}
	t.state.update(func(s *State) {
		s.opened(offset, j)
		s.NeedsKnown = true
	})
	if err := t.operations.cancel(tx, j.Held, offset, j.At); err != nil {
		return err
	}
	// A view that has read that a stream was created again has read all that was said of it since.
	// It knows more than a leader that had not.
	water := maps.Clone(j.LowWater)
	maps.DeleteFunc(water, func(stream string, _ int64) bool {
		_, recreated := t.state.peek().Recreated[stream]
		return recreated
	})
	return t.lowWater.move(tx, water)
}

// A leader may write for a moment after its successor has begun. What it decided then is void,
// because the successor did not know of it and may have decided otherwise. What it did is not: a
// job that it fired is in its queue, and what it says was confirmed was.

// foldLate takes in a JSON record of a leader that had been followed already.
func (t *journalFold) foldLate(tx *view.Tx, r *wire.Record, j *wire.JournalRecord) error {
	switch j.Type {
	case wire.TypeConfirmed:
		return t.confirm(tx, wire.Confirmed{Epoch: j.Epoch, Through: j.Through, Above: j.Above})
	case wire.TypeReturned:
		if _, found := t.settling.entries.doubts.find(dispatchID{j.Epoch, j.Seq}); found {
			return t.returned(tx, r, j)
		}
	}
	t.state.void(r.Stream)
	return nil
}

// recordFolds are what takes in the records of each type. Those of other types only count.
var recordFolds = map[string]func(t *journalFold, tx *view.Tx, r *wire.Record, j *wire.JournalRecord) error{
	wire.TypeConfirmed: (*journalFold).confirmed,
	wire.TypeOperation: func(t *journalFold, tx *view.Tx, r *wire.Record, j *wire.JournalRecord) error {
		return t.operations.fold(tx, j.Operation, r.Offset, false)
	},
	wire.TypeState:    (*journalFold).repeated,
	wire.TypeReturned: (*journalFold).returned,
	wire.TypeUnburied: func(t *journalFold, tx *view.Tx, _ *wire.Record, j *wire.JournalRecord) error {
		return t.takeBack(tx, j, dispatchID{j.FiredEpoch, j.Seq})
	},
	wire.TypeDelivered: func(t *journalFold, tx *view.Tx, _ *wire.Record, j *wire.JournalRecord) error {
		return t.settling.delivered(tx, dispatchID{j.FiredEpoch, j.Seq})
	},
	wire.TypeRefused: func(t *journalFold, tx *view.Tx, _ *wire.Record, j *wire.JournalRecord) error {
		return t.settling.park(tx, j)
	},
	wire.TypeDuplicate: (*journalFold).settled,
	wire.TypeExpired:   (*journalFold).settled,
	wire.TypeDeleted:   (*journalFold).settled,
	wire.TypeKilled:    (*journalFold).settled,
	wire.OpEnqueued: func(t *journalFold, tx *view.Tx, _ *wire.Record, j *wire.JournalRecord) error {
		if err := foldEnqueued(tx, j.Enqueued); err != nil {
			return err
		}
		return t.replacements.journaled(tx, j)
	},
	wire.TypeChanged:  (*journalFold).replaced,
	wire.TypeUndone:   (*journalFold).replaced,
	wire.TypeTrimmed:  (*journalFold).trimmed,
	wire.TypeLowWater: (*journalFold).lowWaterMoved,
	wire.TypeRecreated: func(t *journalFold, tx *view.Tx, r *wire.Record, j *wire.JournalRecord) error {
		if err := t.operations.interrupt(tx, j.Stream, r.Offset, j.At); err != nil {
			return err
		}
		return t.lowWater.recreate(tx, j.Stream, j.Below)
	},
	wire.TypeWitness: func(t *journalFold, _ *view.Tx, r *wire.Record, j *wire.JournalRecord) error {
		t.state.update(func(s *State) {
			s.witnessed(j, wire.Int(r.Headers, wire.HeaderSeq))
			s.nothingMisrouted()
			s.settledBefore(j.Epoch)
		})
		return nil
	},
	wire.TypeAstray: func(t *journalFold, _ *view.Tx, r *wire.Record, j *wire.JournalRecord) error {
		t.state.update(func(s *State) { s.foundMisrouted(r.Offset, j.At) })
		return nil
	},
	wire.TypeReleased: func(t *journalFold, _ *view.Tx, _ *wire.Record, j *wire.JournalRecord) error {
		t.lowWater.release(j.Held)
		return nil
	},
	wire.TypeRejected: func(t *journalFold, tx *view.Tx, r *wire.Record, j *wire.JournalRecord) error {
		return t.rejects.keep(tx, Reject{Stream: j.Queue, Offset: r.Offset, Reason: j.Reason, Size: j.Count, Body: j.Body})
	},
	wire.TypeDismissed: func(t *journalFold, tx *view.Tx, _ *wire.Record, j *wire.JournalRecord) error {
		return t.rejects.dismiss(tx, j.Stream, j.Offset)
	},
}

func (t *journalFold) confirmed(tx *view.Tx, _ *wire.Record, j *wire.JournalRecord) error {
	t.state.update(func(s *State) { s.routed(j.RoutedTo) })
	return t.confirm(tx, wire.Confirmed{Epoch: j.Epoch, Through: j.Through, Above: j.Above})
}

// repeated takes in what low water would forget.
func (t *journalFold) repeated(tx *view.Tx, r *wire.Record, j *wire.JournalRecord) error {
	if err := t.pauses.fold(tx, j.Paused); err != nil {
		return err
	}
	for i := range j.Keys {
		if err := foldEnqueued(tx, &j.Keys[i]); err != nil {
			return err
		}
	}
	return t.operations.fold(tx, j.Operation, r.Offset, true)
}

// returned takes in that a fire or burial of this epoch did not arrive.
func (t *journalFold) returned(tx *view.Tx, _ *wire.Record, j *wire.JournalRecord) error {
	t.operations.count(j.InOperation, -1)
	return t.takeBack(tx, j, dispatchID{j.Epoch, j.Seq})
}

func (t *journalFold) takeBack(tx *view.Tx, j *wire.JournalRecord, f dispatchID) error {
	if err := t.outcomes.takeBack(tx, j); err != nil {
		return err
	}
	return t.settling.returned(tx, f)
}

// settled takes in that an entry is no longer pending.
func (t *journalFold) settled(tx *view.Tx, r *wire.Record, j *wire.JournalRecord) error {
	p := entryID{codes[j.Stream], j.Offset}
	t.operations.count(j.InOperation, 1)
	if j.Type == wire.TypeDuplicate {
		t.state.update(func(s *State) { s.Duplicates++ })
	} else if err := t.outcomes.remember(tx, r.Offset, p.stream, j.JID, wire.Happened{What: j.Type, At: j.At, Offset: j.Offset, Actor: j.Actor}); err != nil {
		return err
	}
	return t.settling.entry(tx, p, j.JID)
}

// replaced takes in what a replacement was for.
func (t *journalFold) replaced(tx *view.Tx, r *wire.Record, j *wire.JournalRecord) error {
	t.operations.count(j.InOperation, 1)
	return t.replacements.fold(tx, r, j)
}

// trimmed takes in the dead jobs that the leader gave up: they were too many, or too old.
func (t *journalFold) trimmed(tx *view.Tx, _ *wire.Record, j *wire.JournalRecord) error {
	c := codes[j.Stream]
	if c == 0 {
		return nil
	}
	t.state.update(func(s *State) { s.Trimmed += int64(len(j.Entries)) })
	for _, e := range j.Entries {
		if err := t.settling.entry(tx, entryID{c, e.Offset}, e.JID); err != nil {
			return err
		}
	}
	return nil
}

// lowWaterMoved takes in that everything below an offset of each stream is settled.
func (t *journalFold) lowWaterMoved(tx *view.Tx, _ *wire.Record, j *wire.JournalRecord) error {
	t.state.update(func(s *State) {
		s.Needs, s.NeedsKnown, s.Lost, s.LowWaterAt = max(s.Needs, j.Needs), true, false, j.At
		s.repeatedWitness(j)
		s.routed(j.RoutedTo)
		s.settledBefore(j.Epoch)
	})
	t.state.shown.noteLowWater()
	if err := t.settling.earlier(tx, j.Epoch, j.ReadTo); err != nil {
		return err
	}
	if t.state.peek().Journals > 0 {
		if err := t.settling.entries.dropAged(tx); err != nil {
			return err
		}
	}
	return t.lowWater.move(tx, j.LowWater)
}
