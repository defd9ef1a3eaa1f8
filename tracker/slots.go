package tracker

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// A slot is taken when a job is fired that limits count, and freed when the job has ended. It
// belongs to the entry, and not to a worker: a job that its broker gives to another worker keeps
// its slot.
//
// Two streams say what there is. The journal says which fires of an entry may be out: a fire adds
// itself, and a fire that was returned is taken off. The stream jobs.ends says which fires have
// ended. A slot is held while its entry has a fire that may be out, and none of its fires has
// ended. So it does not matter which stream is read first.

// slots writes the slots that are held, and what jobs.ends says of fires.
type slots struct {
	trust    Trust
	shown    *Shown
	governed *governing
	keys     *uniqueKeys
	ends     ends
	batch    table.Batch
	changes  []SlotChange // of the batch
}

func (t *slots) load(r view.Reader) error {
	t.batch, t.changes = table.Batch{}, nil
	return t.ends.load(r)
}

func (t *slots) save(tx *view.Tx) error {
	if changes := t.changes; len(changes) > 0 {
		t.changes = nil
		tx.AfterCommit(func() { t.shown.showSlots(changes) })
	}
	return t.ends.save(tx)
}

func (t *slots) changed(tx *view.Tx, id entryID, h *wire.HeldSlot, held bool) {
	if t.batch.Begins(tx) {
		t.changes = nil
	}
	t.changes = append(t.changes, SlotChange{id.name(), id.offset, h.JID, h.Group, held, h.At})
}

func (t *slots) set(tx *view.Tx, id entryID, h *wire.HeldSlot) error {
	return cmp.Or(t.keys.slotTaken(tx, id, h), tx.Set(keySlot(id), encodeSlot(h)))
}

func (t *slots) remove(tx *view.Tx, id entryID, h *wire.HeldSlot) error {
	t.changed(tx, id, h, false)
	return cmp.Or(t.keys.slotFreed(tx, id, h), tx.Delete(keySlot(id)))
}

// take takes in a fire that takes a slot.
func (t *slots) take(tx *view.Tx, d *wire.Dispatch, body []byte, at float64) error {
	job, err := wire.ParseJob(body)
	if err != nil {
		return nil //nolint:nilerr // it is no job of Millrace's: no limit counts it
	}
	h := wire.HeldSlot{Stream: d.Stream, Offset: d.Offset, JID: d.JIDTag, Fires: []wire.Through{{Epoch: d.Epoch, Through: d.Seq}},
		Group: wire.Group{Queue: job.Queue, Class: job.Class, Key: t.governed.keyOf(tx, &job)}, At: at, Unique: slotKey(d.Stream, &job)}
	return t.add(tx, &h)
}

// add adds the fires of a slot to what is known of its entry, unless a fire of the entry has ended.
func (t *slots) add(tx *view.Tx, h *wire.HeldSlot) error {
	id := entryID{codes[h.Stream], h.Offset}
	old, err := slotAt(tx, id)
	if err != nil {
		return err
	}
	if old != nil && old.JID != h.JID { // of an entry in a stream that is gone
		if err := t.remove(tx, id, old); err != nil {
			return err
		}
		old = nil
	}
	merged := *h
	merged.Why = ""
	if old != nil {
		merged.At = max(old.At, h.At)
		merged.Fires = slices.Clone(old.Fires)
		for _, f := range h.Fires {
			if !slices.Contains(merged.Fires, f) {
				merged.Fires = append(merged.Fires, f)
			}
		}
		slices.SortFunc(merged.Fires, wire.Through.Compare)
	}
	if t.ends.has(id, h.JID) { // the leader that fired it holds it
		t.changed(tx, id, h, false)
		return nil
	}
	if old == nil {
		t.changed(tx, id, h, true)
	}
	return t.set(tx, id, &merged)
}

// takeBack takes in that a fire did not arrive.
func (t *slots) takeBack(tx *view.Tx, id entryID, fire wire.Through) error {
	h, err := slotAt(tx, id)
	if err != nil || h == nil || !slices.Contains(h.Fires, fire) {
		return err
	}
	if len(h.Fires) == 1 {
		return t.remove(tx, id, h)
	}
	h.Fires = slices.DeleteFunc(h.Fires, func(f wire.Through) bool { return f == fire })
	return t.set(tx, id, h)
}

// free takes in that the leader has freed slots.
func (t *slots) free(tx *view.Tx, all []wire.HeldSlot) error {
	for i := range all {
		id := entryID{codes[all[i].Stream], all[i].Offset}
		h, err := slotOf(tx, id, all[i].JID)
		if err == nil && h != nil {
			err = t.remove(tx, id, h)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Streams implements Part.
func (t *slots) Streams() []string { return []string{wire.JobEnds} }

// Fold implements Part.
func (t *slots) Fold(tx *view.Tx, r *wire.Record) (reason string, refused []byte, err error) {
	e, all, err := wire.ParseEnd(r.Body)
	switch {
	case err != nil:
		reason, refused = err.Error(), r.Body
		if len(all) > 0 {
			reason += fmt.Sprintf("; its %d other slots count", len(all))
		}
	case e.Type == wire.TypeClaimed && !t.trust.Trusts(r):
		return "only Millrace's own user may write that a job was claimed: " + r.From(), r.Body, nil
	case e.Type == wire.TypeClaimed:
		tx.AfterCommit(func() { t.shown.noteClaim(wire.Through{Epoch: e.Epoch, Through: e.N}) })
		return "", nil, nil
	}
	for i := range all {
		if err := t.end(tx, fromEnds, ageOf(r.Offset, i), &all[i]); err != nil {
			return "", nil, err
		}
	}
	return reason, refused, nil
}

// endedBy takes in a record that Millrace has written in place of a worker, such as the dead job of
// a job that a worker has rejected.
func (t *slots) endedBy(tx *view.Tx, e *wire.EntryRecord) error {
	s, err := wire.ParseSlot(e.Slot)
	if err != nil {
		return nil //nolint:nilerr // a newer sidecar may write others
	}
	return t.end(tx, codes[e.Stream], uint64(e.Offset), &s)
}

// end takes in that a fire has ended, as a source says, and frees its slot if it is held. A leader
// may hold it for a fire that the journal does not have, so it learns of the end in any case.
func (t *slots) end(tx *view.Tx, source code, age uint64, s *wire.Slot) error {
	id := entryID{codes[s.Stream], s.Offset}
	if err := t.ends.note(tx, source, age, id, s.JIDTag); err != nil {
		return err
	}
	h, err := slotOf(tx, id, s.JIDTag)
	if err != nil {
		return err
	}
	if h == nil {
		t.changed(tx, id, &wire.HeldSlot{JID: s.JIDTag}, false)
		return nil
	}
	return t.remove(tx, id, h)
}

// Commit implements Part. The fold saves with its own.
func (t *slots) Commit(*view.Tx) error { return nil }

// Forget implements Part.
func (t *slots) Forget(tx *view.Tx, _ string) error { return t.ends.forget(tx, fromEnds) }
