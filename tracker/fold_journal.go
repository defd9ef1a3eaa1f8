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
	lifecycle    *lifecycle
	replacements replacements
	lowWater     lowWater
	parsed       wire.JournalRecord // the newest record; it is here so that it is not allocated for each
}

// fold takes in one record.
func (t *journalFold) fold(tx *view.Tx, r *wire.Record) error {
	if t.state.peek().JournalFirst < 0 {
		t.state.update(func(s *State) { s.JournalFirst = r.Offset })
	}
	if r.Fault != "" {
		return t.unreadable(tx, r, r.Fault)
	}
	if !t.trust.Trusts(r) {
		return t.rejects.record(tx, r, "the journal is Millrace's own: "+r.From())
	}
	if format := wire.Int(r.Headers, wire.HeaderFormat); format > wire.Format {
		return fmt.Errorf("%w: the journal has format %d, this build knows %d: upgrade this sidecar", view.ErrHalt, format, wire.Format)
	}
	if p, ok := wire.ProbeOf(r.Headers); ok {
		return t.foldProbe(tx, r, p)
	}
	if d, ok := wire.DispatchOf(r.Headers); ok {
		return t.foldDispatch(tx, r, &d)
	}
	var err error
	if t.parsed, err = wire.ParseJournal(r.Body); err != nil {
		return t.unreadable(tx, r, err.Error())
	}
	return t.foldRecord(record{tx, r, &t.parsed})
}

// unreadable takes in a record of which the number is not known.
func (t *journalFold) unreadable(tx *view.Tx, r *wire.Record, reason string) error {
	t.state.update(func(s *State) { s.Unread = true })
	return t.rejects.record(tx, r, reason)
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
func (t *journalFold) foldDispatch(tx *view.Tx, r *wire.Record, d *wire.Dispatch) error {
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
		return t.lifecycle.markInDoubt(tx, r, d, 0)
	}
	if open, err := t.lifecycle.isOpen(tx, d); err != nil || !open {
		return err
	}
	tx.AfterCommit(func() { t.state.shown.late.Add(1) })
	return t.lifecycle.markInDoubt(tx, r, d, r.Offset)
}

func (t *journalFold) countDispatch(r *wire.Record, d *wire.Dispatch, late bool) {
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

// record is a JSON record of the journal.
type record struct {
	tx *view.Tx
	*wire.Record
	j *wire.JournalRecord
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
	if seq := wire.Int(r.Headers, wire.HeaderSeq); seq > t.state.peek().FoldedSeq {
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
