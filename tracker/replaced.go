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
// next leader can journal it if the leader died. A view that reads the journal first leaves an
// empty row until it has read the replacement too. So the order does not matter.

// announce notes a replacement that is not in the journal yet.
func announce(tx *view.Tx, a wire.Announcement) error {
	key := keyAnnounced(entryID{codes[a.Stream], a.Offset})
	_, journaled, err := tx.Get(key)
	if err != nil {
		return err
	}
	if journaled {
		return tx.Delete(key)
	}
	value, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("tracker: announce: %w", err)
	}
	return tx.Set(key, value)
}

// replacements take in what the journal says of them.
type replacements struct {
	state     *leadership
	outcomes  *outcomes
	lifecycle *lifecycle
}

// fold takes in what a replacement was for. It moves no entry except the dead job that goes with
// what is undone.
func (t replacements) fold(r record) error {
	ended, err := t.endedSince(r.tx, r.j)
	if err == nil && !ended {
		err = t.outcomes.rememberRecord(r)
	}
	if err == nil && r.j.Dead != nil {
		err = t.lifecycle.settle(r.tx, entryID{codes[wire.DeadJobs], *r.j.Dead}, r.j.JID)
	}
	if err != nil {
		return err
	}
	return t.journaled(r.tx, r.j)
}

// endedSince reports whether something has happened to the entry that replaced another, or to one
// that replaced that, before the journal has the replacement. Then the leader that replaced it
// died, and the next one has journaled it.
func (t replacements) endedSince(tx *view.Tx, j *wire.JournalRecord) (bool, error) {
	if j.By == nil {
		return false, nil
	}
	last, err := lastOutcome(tx, codes[j.Stream], j.JID)
	return last != nil && last.Offset >= *j.By && last.Record > t.state.peek().Recreated[j.Stream], err
}

// journaled notes that the journal has a replacement.
func (t replacements) journaled(tx *view.Tx, j *wire.JournalRecord) error {
	c := codes[j.Stream]
	if c == 0 || j.By == nil || *j.By < t.state.peek().LowWater[j.Stream] {
		return nil
	}
	id := entryID{c, *j.By}
	key := keyAnnounced(id)
	known, announced, err := tx.Get(key)
	switch {
	case err != nil || announced && len(known) == 0:
		return err
	case announced:
		return tx.Delete(key)
	}
	if passed, err := passed(tx, id); err != nil || passed {
		return err
	}
	return tx.Set(key, nil)
}

// Announced returns the replacements that are not in the journal yet.
func (h History) Announced() ([]wire.Announcement, error) {
	var all []wire.Announcement
	err := table.Scan(h.store, []byte{tableAnnounced}, table.After([]byte{tableAnnounced}), false, func(_, value []byte) (bool, error) {
		if len(value) == 0 {
			return true, nil
		}
		var a wire.Announcement
		if err := json.Unmarshal(value, &a); err != nil {
			return false, fmt.Errorf("tracker: announcement is damaged: %w", err)
		}
		all = append(all, a)
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}
