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
	trust      Trust
	state      *leadership
	numbers    *numbers
	rejects    *rejects
	outcomes   *outcomes
	operations *operations
	audit      *audit.Log
	pauses     *pauses
	definitions
	slots        *slots
	decisions    *decisions
	lifecycle    *lifecycle
	replacements replacements
	lowWater     lowWater
	parsed       wire.JournalRecord // the newest record; it is here so that it is not allocated for each
}

// foldRecord takes in a JSON record.
func (t *journalFold) foldRecord(r record) error {
	if r.j.Type == wire.TypeOpened {
		return t.open(r.tx, r.Offset, r.j)
	}
	if r.j.Ended {
		return t.foldLastWords(r)
	}
	late := t.isLate(r.j.Epoch)
	if err := t.confirm(r.tx, wire.ConfirmedBy(r.j.Epoch, r.Headers)); err != nil {
		return err
	}
	if late {
		return t.foldLate(r)
	}
	if seq := wire.HeaderInt(r.Headers, wire.HeaderSeq); seq > t.state.peek().FoldedSeq {
		t.numbers.add(r.Record, r.j.Epoch, seq)
		t.state.update(func(s *State) { s.numbered(r.j.Epoch, seq) })
	}
	if !t.state.peek().Led && r.j.Type != wire.TypeRecreated {
		t.state.update(func(s *State) { s.Led = true })
	}
	if err := t.outcomes.answer(r.tx, r.Offset, r.j.Command); err != nil {
		return err
	}
	if fold := recordFolds[r.j.Type]; fold != nil {
		if err := fold(t, r); err != nil {
			return err
		}
	}
	return t.audit.Fold(r.tx, r.j, r.Offset)
}

// recordFolds take in the JSON records of each type. Other types have no effect of their own.
var recordFolds = map[string]func(*journalFold, record) error{
	wire.TypeConfirmed: func(t *journalFold, r record) error {
		t.state.update(func(s *State) { s.routed(r.j.RoutedTo) })
		return t.foldConfirmed(r)
	},
	wire.TypeOperation: func(t *journalFold, r record) error { return t.operations.fold(r.tx, r.j.Operation, r.Offset, false) },
	wire.TypeState:     (*journalFold).foldRepeated,
	wire.TypeReturned:  (*journalFold).foldReturned,
	wire.TypeUnburied:  func(t *journalFold, r record) error { return t.takeBack(r, dispatchID{r.j.FiredEpoch, r.j.Seq}) },
	wire.TypeDelivered: func(t *journalFold, r record) error {
		return t.lifecycle.settleDelivered(r.tx, dispatchID{r.j.FiredEpoch, r.j.Seq})
	},
	wire.TypeRefused:   func(t *journalFold, r record) error { return t.lifecycle.park(r.tx, r.j) },
	wire.TypeDuplicate: (*journalFold).foldSettled,
	wire.TypeExpired:   (*journalFold).foldSettled,
	wire.TypeDeleted:   (*journalFold).foldSettled,
	wire.TypeKilled:    (*journalFold).foldSettled,
	wire.OpEnqueued: func(t *journalFold, r record) error {
		if err := foldEnqueued(r.tx, r.j.Enqueued); err != nil {
			return err
		}
		return t.replacements.journaled(r.tx, r.j)
	},
	wire.TypeDefined:  func(t *journalFold, r record) error { return t.define(r.tx, r.j, r.Offset) },
	wire.TypeGoverned: func(t *journalFold, r record) error { return t.governed.restate(r.tx, t.definitions.entries, r.j) },
	wire.TypeFreed:    func(t *journalFold, r record) error { return t.slots.free(r.tx, r.j.Slots) },
	wire.TypeDecided:  func(t *journalFold, r record) error { return t.decisions.fold(r) },
	wire.TypeTicked:   (*journalFold).foldTicked,
	wire.TypeChanged:  (*journalFold).foldReplaced,
	wire.TypeUndone:   (*journalFold).foldReplaced,
	wire.TypeTrimmed:  (*journalFold).foldTrimmed,
	wire.TypeLowWater: (*journalFold).foldLowWater,
	wire.TypeRecreated: func(t *journalFold, r record) error {
		if err := t.operations.interrupt(r.tx, r.j.Stream, r.Offset, r.j.At); err != nil {
			return err
		}
		return t.lowWater.recreate(r.tx, r.j.Stream, r.j.Below)
	},
	wire.TypeWitness: func(t *journalFold, r record) error {
		t.state.update(func(s *State) {
			s.witnessed(r.j, wire.HeaderInt(r.Headers, wire.HeaderSeq))
			s.nothingMisrouted()
			s.settledBefore(r.j.Epoch)
		})
		return nil
	},
	wire.TypeMisrouted: func(t *journalFold, r record) error {
		t.state.update(func(s *State) { s.foundMisrouted(r.Offset, r.j.At) })
		return nil
	},
	wire.TypeReleased: func(t *journalFold, r record) error {
		t.lowWater.release(r.j.Held)
		return nil
	},
	wire.TypeRejected: func(t *journalFold, r record) error {
		return t.rejects.keep(r.tx, Reject{Stream: r.j.Queue, Offset: r.Offset, Reason: r.j.Reason, Size: r.j.Count, Body: r.j.Body})
	},
	wire.TypeDismissed: func(t *journalFold, r record) error { return t.rejects.dismiss(r.tx, r.j.Stream, r.j.Offset) },
}

// A leader may write for a moment after its successor has begun. Its decisions are void then: the
// successor did not know them, and may have decided otherwise. Its fires and confirms are not void:
// a job that it fired is in its queue, and its confirms are true.

// foldLate takes in a record of a leader that had been followed already.
func (t *journalFold) foldLate(r record) error {
	switch r.j.Type {
	case wire.TypeConfirmed:
		return t.foldConfirmed(r)
	case wire.TypeReturned:
		fire := wire.Through{Epoch: r.j.Epoch, Through: r.j.Seq}
		if err := t.slots.takeBack(r.tx, entryID{codes[r.j.Stream], r.j.Offset}, fire); err != nil {
			return err
		}
		if t.lifecycle.isInDoubt(dispatchID{r.j.Epoch, r.j.Seq}) {
			return t.foldReturned(r)
		}
	}
	t.state.void(r.Stream)
	return nil
}

// foldLastWords takes in what a process says of an epoch that it has led. It may speak of a journal
// that is gone, or of an epoch that this one has lost. Another epoch may have the number now.
func (t *journalFold) foldLastWords(r record) error {
	newest := t.state.peek()
	its := r.j.Epoch == newest.Epoch && r.j.Identity == newest.Identity
	if r.j.Epoch >= newest.Epoch && !its {
		t.state.void(r.Stream)
		return nil
	}
	if its {
		t.state.update(func(s *State) { s.Ended = true })
	}
	return t.foldConfirmed(r)
}

func (t *journalFold) foldConfirmed(r record) error {
	return t.confirm(r.tx, wire.Confirmed{Epoch: r.j.Epoch, Through: r.j.Through, Above: r.j.Above})
}

// foldRepeated takes in facts that low water would forget.
func (t *journalFold) foldRepeated(r record) error {
	if err := t.pauses.fold(r.tx, r.j.Paused); err != nil {
		return err
	}
	if err := t.replace(r.tx, r.j); err != nil {
		return err
	}
	for i := range r.j.Slots {
		if err := t.slots.add(r.tx, &r.j.Slots[i]); err != nil {
			return err
		}
	}
	if err := t.decisions.repeat(r); err != nil {
		return err
	}
	for i := range r.j.Keys {
		if err := foldEnqueued(r.tx, &r.j.Keys[i]); err != nil {
			return err
		}
	}
	return t.operations.fold(r.tx, r.j.Operation, r.Offset, true)
}

// foldReturned takes in that a fire or burial of this epoch did not arrive.
func (t *journalFold) foldReturned(r record) error {
	t.operations.count(r.j.InOperation, -1)
	return t.takeBack(r, dispatchID{r.j.Epoch, r.j.Seq})
}

func (t *journalFold) takeBack(r record, f dispatchID) error {
	if err := t.outcomes.takeBack(r.tx, r.j); err != nil {
		return err
	}
	if err := t.slots.takeBack(r.tx, entryID{codes[r.j.Stream], r.j.Offset}, wire.Through{Epoch: f.epoch, Through: f.seq}); err != nil {
		return err
	}
	return t.lifecycle.takeBack(r.tx, f)
}

// foldSettled takes in that an entry is no longer pending.
func (t *journalFold) foldSettled(r record) error {
	t.operations.count(r.j.InOperation, 1)
	if r.j.Type == wire.TypeDuplicate {
		t.state.update(func(s *State) { s.Duplicates++ })
	} else if err := t.outcomes.rememberRecord(r); err != nil {
		return err
	}
	return t.lifecycle.settle(r.tx, entryID{codes[r.j.Stream], r.j.Offset}, r.j.JID)
}

// foldReplaced takes in the purpose of a replacement.
func (t *journalFold) foldReplaced(r record) error {
	t.operations.count(r.j.InOperation, 1)
	return t.replacements.fold(r)
}

// foldTrimmed takes in the dead jobs that the leader gave up: they were too many, or too old.
func (t *journalFold) foldTrimmed(r record) error {
	c := codes[r.j.Stream]
	if c == 0 {
		return nil
	}
	t.state.update(func(s *State) { s.Trimmed += int64(len(r.j.Entries)) })
	for _, e := range r.j.Entries {
		if err := t.lifecycle.settle(r.tx, entryID{c, e.Offset}, e.JID); err != nil {
			return err
		}
	}
	return nil
}

// foldLowWater takes in that everything below an offset of each stream is settled.
func (t *journalFold) foldLowWater(r record) error {
	t.state.update(func(s *State) {
		s.Needs, s.NeedsKnown, s.Lost, s.LowWaterAt = max(s.Needs, r.j.Needs), true, false, r.j.At
		s.repeatedWitness(r.j)
		s.routed(r.j.RoutedTo)
		s.settledBefore(r.j.Epoch)
	})
	t.state.shown.noteLowWater()
	if err := t.lifecycle.settleEarlier(r.tx, r.j.Epoch, r.j.ReadTo); err != nil {
		return err
	}
	if err := t.lowWater.dropAged(r.tx); err != nil {
		return err
	}
	// A view that begins to read here does not know the periods that are over.
	if err := t.decisions.keys.expire(r.tx, r.j.At); err != nil {
		return err
	}
	return t.lowWater.move(r.tx, r.j.LowWater)
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
		if err := t.lifecycle.settleBetween(tx, dispatchID{k.Epoch, r.First}, dispatchID{k.Epoch, r.Last + 1}); err != nil {
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
	return t.lifecycle.settleBetween(tx, dispatchID{k.Epoch, from}, dispatchID{k.Epoch, k.Through + 1})
}

// foldTicked takes in outcomes of ticks, and that the journal has those that made an entry.
func (t *journalFold) foldTicked(r record) error {
	for _, tick := range r.j.Ticks {
		if err := t.periodics.tick(r.tx, tick, r.j.At, r.j.Actor); err != nil {
			return err
		}
		if tick.By == nil || *tick.By < t.state.peek().LowWater[wire.ScheduledJobs] {
			continue
		}
		if err := t.replacements.announced.journaled(r.tx, entryID{codes[wire.ScheduledJobs], *tick.By}, wire.JIDTag(tick.JID)); err != nil {
			return err
		}
	}
	return nil
}
