package scheduler

import (
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// carryOperations has operations rest until what they did is known, and then writes them down again: low water would forget them. done tells
// that they are in the journal, at its end.
func (c *core) carryOperations(now time.Time) (done bool, err error) {
	if c.pauses.sending { // first, what is on its way
		return false, nil
	}
	if !c.carry.still {
		c.carry.still, c.carry.rested = true, -1
	}
	for _, o := range c.operations {
		if len(o.flying) > 0 || o.ending {
			c.carry.rested = -1
			return false, nil
		}
	}
	if c.carry.rested < 0 {
		c.carry.rested = c.ledger.Seq()
	}
	if c.entries.State().Confirmed < c.carry.rested {
		return false, nil
	}
	for _, op := range c.entries.Operations() {
		if op.State == wire.OperationRunning {
			if op.JIDs, err = c.entries.OperationJIDs(op.ID); err != nil {
				return false, err
			}
			if o := c.operations[op.ID]; o != nil {
				p := o.progress()
				op.Cursor, op.Failed, op.LastError, op.Skips = p.Cursor, p.Failed, p.LastError, p.Skips
			}
		}
		if err := c.ledger.Record(now, wire.JournalRecord{Type: wire.TypeState, Operation: &op}, spot{}); err != nil {
			return false, err
		}
	}
	return true, nil
}
