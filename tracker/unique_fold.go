package tracker

import (
	"cmp"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// decisions takes in what leaders decide about unique jobs.
type decisions struct {
	state     *leadership
	keys      *uniqueKeys
	outcomes  *outcomes
	lifecycle *lifecycle
}

// fold takes in the decisions of a record, in their order.
func (t *decisions) fold(r record) error {
	if err := t.keys.expire(r.tx, r.j.At); err != nil {
		return err
	}
	for i := range r.j.Decisions {
		if err := t.decide(r, &r.j.Decisions[i]); err != nil {
			return err
		}
	}
	t.keys.begin(r.tx)
	t.keys.decided = append(t.keys.decided, r.j.Decisions...)
	return nil
}

func (t *decisions) decide(r record, d *wire.Decision) error {
	id := entryID{codes[wire.Gated], d.Offset}
	switch d.Outcome {
	case wire.UniqueAdmitted:
		return t.admit(r, id, d)
	case wire.UniqueDuplicate:
		if d.Holder != nil {
			holder := entryID{codes[wire.Gated], *d.Holder}
			if err := t.putOff(r.tx, holder, &admission{JID: d.HolderJID, Due: d.Due}); err != nil {
				return err
			}
		}
		return t.outdo(r, id, d.JID, wire.UniqueDuplicate, d.Of)
	case wire.UniqueRepeated:
		t.state.update(func(s *State) { s.Duplicates++ })
		return t.lifecycle.settle(r.tx, id, d.JID)
	case wire.UniqueFreed:
		return t.keys.endPeriod(r.tx, d.Key)
	}
	return nil
}

// admit takes in that an entry has its key.
func (t *decisions) admit(r record, id entryID, d *wire.Decision) error {
	if d.Holder != nil {
		if err := t.outdo(r, entryID{codes[wire.Gated], *d.Holder}, d.HolderJID, wire.UniqueReplaced, d.JID); err != nil {
			return err
		}
	}
	if err := t.putOff(r.tx, id, &admission{JID: d.JID, Due: d.Due, First: d.First}); err != nil || d.Key == "" {
		return err
	}
	if d.Until == 0 {
		return t.keys.endPeriod(r.tx, d.Key)
	}
	return t.keys.take(r.tx, &wire.UniquePeriod{Key: d.Key, JID: d.JID, Since: int64(micros(r.j.At)), Until: d.Until})
}

// outdo settles an entry because another job has its key.
func (t *decisions) outdo(r record, id entryID, tag, what, other string) error {
	happened := wire.Happened{What: what, At: r.j.At, Offset: id.offset, Other: other}
	return cmp.Or(t.outcomes.remember(r.tx, r.Offset, id.stream, tag, happened), t.lifecycle.settle(r.tx, id, tag))
}

// repeat takes in the keys that are taken for a time, written again at low water.
func (t *decisions) repeat(r record) error {
	for i := range r.j.Periods {
		if p := &r.j.Periods[i]; float64(p.Until) > r.j.At*1e6 {
			if err := t.keys.take(r.tx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// putOff takes in that an entry of jobs.gated has its key, and when it is due.
func (t *decisions) putOff(tx *view.Tx, id entryID, a *admission) error {
	if t.state.settled(id.name(), id.offset) {
		return nil
	}
	if matches, err := t.lifecycle.about(tx, id, a.JID); err != nil || !matches {
		return err
	}
	s, err := t.lifecycle.entries.stored(tx, id)
	if err != nil {
		return err
	}
	m, err := t.lifecycle.entries.mark(tx, id)
	switch {
	case err != nil:
		return err
	case s == nil && m != nil && m.state == settled:
		return nil
	case s == nil:
		if passed, err := passed(tx, id); err != nil || passed {
			return err
		}
		return t.keys.await(tx, id.offset, a)
	case m != nil && m.state == inDoubt:
		a.admitted(s)
		return t.lifecycle.entries.setStored(tx, s)
	}
	if err := t.lifecycle.entries.removePending(tx, s); err != nil {
		return err
	}
	a.admitted(s)
	return t.lifecycle.entries.addPending(tx, s)
}
