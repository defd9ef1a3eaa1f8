package tracker

import (
	"encoding/json"
	"fmt"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// A replacement that a user asked for is written twice: to its stream, which alone decides what is
// pending, and then to the journal, for the audit log. In between there is a row here, so that the
// next leader tells the journal if the leader died. A view that reads the journal first leaves an
// empty row until it has read the replacement too. So the order does not matter.

// announce notes a replacement of which the journal has to tell.
func announce(tx *view.Tx, a wire.Announcement) error {
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

// replacements take in what the journal tells of them.
type replacements struct {
	state    *leadership
	outcomes *outcomes
	settling *settling
}

// fold takes in what a replacement was for. It moves no entry except the dead job that goes with
// what is undone.
func (t replacements) fold(tx *view.Tx, r *wire.Record, j *wire.JournalRecord) error {
	c := codes[j.Stream]
	if ended, err := t.endedSince(tx, j); err != nil {
		return err
	} else if !ended {
		h := wire.Happened{What: j.Type, At: j.At, Offset: j.Offset, Actor: j.Actor}
		if err := t.outcomes.remember(tx, r.Offset, c, j.JID, h); err != nil {
			return err
		}
	}
	if j.Dead != nil {
		if err := t.settling.entry(tx, place{codes[wire.DeadJobs], *j.Dead}, j.JID); err != nil {
			return err
		}
	}
	return t.told(tx, j)
}

// endedSince reports whether something has happened to the entry that stands for a replaced one, or
// to one that stands for that, before the journal tells of it: the leader that replaced it died,
// and the next one tells.
func (t replacements) endedSince(tx *view.Tx, j *wire.JournalRecord) (bool, error) {
	if j.By == nil {
		return false, nil
	}
	last, err := happened(tx, codes[j.Stream], j.JID)
	return last != nil && last.Offset >= *j.By && last.Record > t.state.peek().Recreated[j.Stream], err
}

// told notes that the journal has told of a replacement.
func (t replacements) told(tx *view.Tx, j *wire.JournalRecord) error {
	c := codes[j.Stream]
	if c == 0 || j.By == nil || *j.By < t.state.peek().LowWater[j.Stream] {
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
	if gone, err := gone(tx, p); err != nil || gone {
		return err
	}
	return tx.Set(key, nil)
}

// Announced returns the replacements of which the journal has not told yet.
func (h History) Announced() ([]wire.Announcement, error) {
	var all []wire.Announcement
	var fault error
	err := h.store.Scan([]byte{tableTelling}, table.After([]byte{tableTelling}), false, func(_, value []byte) bool {
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
