package tracker

import (
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// replacements take in what the journal says of them.
type replacements struct {
	state     *leadership
	announced *announcements
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
	return t.announced.journaled(tx, entryID{c, *j.By}, j.JID)
}
