package tracker

import (
	"fmt"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// fold takes in one record of the journal: a probe, a fire or burial, or JSON. It may return why
// the record cannot be taken in.
func (t *journalFold) fold(tx *view.Tx, r *wire.Record) (fault string, err error) {
	if t.state.peek().JournalFirst < 0 {
		t.state.update(func(s *State) { s.JournalFirst = r.Offset })
	}
	if r.Fault != "" {
		return t.unreadable(r.Fault)
	}
	if !t.trust.Trusts(r) {
		return "the journal is Millrace's own: " + r.From(), nil
	}
	if format := wire.HeaderInt(r.Headers, wire.HeaderFormat); format > wire.Format {
		return "", fmt.Errorf("%w: the journal has format %d, this build knows %d: upgrade this sidecar", view.ErrHalt, format, wire.Format)
	}
	if p, ok := wire.ProbeOf(r.Headers); ok {
		return "", t.foldProbe(tx, r, p)
	}
	if d, ok := wire.DispatchOf(r.Headers); ok {
		return "", t.foldDispatch(tx, r, &d)
	}
	if t.parsed, err = wire.ParseJournal(r.Body); err != nil {
		return t.unreadable(err.Error())
	}
	return "", t.foldRecord(record{tx, r, &t.parsed})
}

// unreadable notes that there was a record of which the number is not known.
func (t *journalFold) unreadable(why string) (fault string, err error) {
	t.state.update(func(s *State) { s.Unread = true })
	return why, nil
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
	if err := t.foldLimited(tx, r, d); err != nil {
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

// foldLimited takes in which slot and which rates a fire has taken.
func (t *journalFold) foldLimited(tx *view.Tx, r *wire.Record, d *wire.Dispatch) error {
	if err := t.limits.use(tx, d.Rates); err != nil || !d.TakesSlot() {
		return err
	}
	return t.slots.take(tx, d, r.Body, wire.Seconds(r.Time))
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
