package tracker

import (
	"time"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// entryFold takes in the records of the entry streams.
type entryFold struct {
	trust     Trust
	state     *leadership
	awaited   awaited
	announced *announcements
	lifecycle *lifecycle
}

// fold takes in one record, or returns why it cannot be taken in.
func (t *entryFold) fold(tx *view.Tx, r *wire.Record) (fault string, err error) {
	id := entryID{codes[r.Stream], r.Offset}
	if err := t.awaited.sweep(tx, id); err != nil {
		return "", err
	}
	t.state.begins(r.Stream, r.Offset)
	e := wire.ReadEntry(r, t.trust.Trusts(r))
	switch {
	case e.Barrier != nil:
		t.state.update(func(s *State) { s.readBarrier(r.Stream, r.Offset, e.Barrier) })
		return "", nil
	case e.Probe != nil:
		t.state.readProbe(r.Stream, e.Probe)
		return "", nil
	case e.Ours && t.state.voids(r.Stream, e.Epoch):
		t.state.void(r.Stream)
		return "", nil
	}
	if e.Ours && e.Dispatch != nil {
		t.state.update(func(s *State) { s.buried(wire.Through{Epoch: e.Dispatch.Epoch, Through: e.Dispatch.Seq}) })
	}
	if e.Slot != "" && !e.Lease && e.Fault == "" {
		if err := t.lifecycle.slots.endedBy(tx, &e); err != nil {
			return "", err
		}
	}
	switch {
	case e.Fault != "":
		return e.Fault, nil
	case t.state.settled(r.Stream, r.Offset):
		return "", tx.Delete(keyMark(id))
	}
	return "", t.enter(tx, &e)
}

// enter takes in an entry.
func (t *entryFold) enter(tx *view.Tx, e *wire.EntryRecord) error {
	if e.At.IsZero() && e.Stream == wire.Gated { // the transport does not say when it came
		e.At = time.Now().UTC()
	}
	s := newStored(e)
	t.lifecycle.entries.gate(tx, &s)
	if e.Replaces != nil {
		if err := t.lifecycle.replace(tx, &s, e.Replaces.Offset); err != nil {
			return err
		}
	}
	if e.Announcement != nil {
		if err := t.announced.add(tx, *e.Announcement); err != nil {
			return err
		}
	}
	return t.lifecycle.reconcile(tx, &s)
}
