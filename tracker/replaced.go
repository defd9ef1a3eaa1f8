package tracker

import (
	"encoding/json"
	"fmt"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// A replacement that a person asked for is told of twice: by its stream, which alone decides what is pending, and then by the journal, for
// whoever asks what was done, and by whom. In between stands a row here, so that a leader that died in between leaves the telling to the
// next. A view that reads the journal first leaves an empty row, until it has read the replacement too: so the order does not matter.

// announce notes a replacement of which the journal has to tell.
func (t *Entries) announce(tx *view.Tx, a wire.Announcement) error {
	key := keyTelling(place{codes[a.Stream], a.Offset})
	_, told, err := tx.Get(key)
	if err != nil {
		return err
	}
	if told {
		return tx.Delete(key)
	}
	value, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("tracker: announce: %w", err)
	}
	return tx.Set(key, value)
}

// told takes in that the journal tells of a replacement. It moves no entry but the dead job that goes with what is undone.
func (t *Entries) told(tx *view.Tx, r *wire.Record, j *wire.JournalRecord) error {
	c := codes[j.Stream]
	t.part(j.InOperation, 1)
	if ended, err := t.endedSince(tx, j); err != nil {
		return err
	} else if !ended {
		h := wire.Happened{What: j.Type, At: j.At, Offset: j.Offset, Actor: j.Actor}
		if err := t.remember(tx, r.Offset, c, j.JID, h); err != nil {
			return err
		}
	}
	if j.Dead != nil {
		if err := t.settleAt(tx, place{codes[wire.DeadJobs], *j.Dead}, j.JID); err != nil {
			return err
		}
	}
	return t.toldAt(tx, j)
}

// endedSince tells whether something has happened to the entry that stands for a replaced one, or to one that stands for that, before the
// journal tells of it: the leader that replaced it died, and the one that follows tells.
func (t *Entries) endedSince(tx *view.Tx, j *wire.JournalRecord) (bool, error) {
	if j.By == nil {
		return false, nil
	}
	last, err := happened(tx, codes[j.Stream], j.JID)
	return last != nil && last.Offset >= *j.By && last.Record > t.peek().Recreated[j.Stream], err
}

// toldAt notes that the journal has told of what stands at a place.
func (t *Entries) toldAt(tx *view.Tx, j *wire.JournalRecord) error {
	c := codes[j.Stream]
	if c == 0 || j.By == nil || *j.By < t.peek().LowWater[j.Stream] {
		return nil
	}
	p := place{c, *j.By}
	key := keyTelling(p)
	known, announced, err := tx.Get(key)
	switch {
	case err != nil || announced && len(known) == 0:
		return err
	case announced:
		return tx.Delete(key)
	}
	if gone, err := t.gone(tx, p); err != nil || gone {
		return err
	}
	return tx.Set(key, nil)
}

// settleAt settles the entry at a place, if the jid is its own.
func (t *Entries) settleAt(tx *view.Tx, p place, tag string) error {
	if matches, err := t.about(tx, p, tag); err != nil || !matches {
		return err
	}
	if err := t.drop(tx, p); err != nil {
		return err
	}
	return t.settleUnread(tx, p, tag)
}

// Announced lists the replacements of which the journal has not told yet.
func (t *Entries) Announced() ([]wire.Announcement, error) {
	var all []wire.Announcement
	var fault error
	err := t.store.Scan([]byte{tableTelling}, after([]byte{tableTelling}), false, func(_, value []byte) bool {
		if len(value) == 0 {
			return true
		}
		var a wire.Announcement
		if fault = json.Unmarshal(value, &a); fault != nil {
			return false
		}
		all = append(all, a)
		return true
	})
	if err != nil {
		return nil, err
	}
	if fault != nil {
		return nil, fmt.Errorf("tracker: announcement is damaged: %w", fault)
	}
	return all, nil
}

// Successor is the entry that stands for an older one; ok is false where none is known to.
func (t *Entries) Successor(stream string, offset int64) (by int64, ok bool, err error) {
	m, err := markAt(t.store, place{codes[stream], offset})
	if err != nil || m == nil || m.state != replaced {
		return 0, false, err
	}
	return m.seq, true, nil
}
