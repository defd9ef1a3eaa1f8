package scheduler

import (
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// whenFolded has something done once the view has folded all that was sent up to a number: what was answered just now may not be known yet.
func (c *core) whenFolded(seq int64, fn func() error) error {
	if c.ledger.HasFolded(seq) {
		return fn()
	}
	c.ledger.AfterFold(seq, fn)
	return nil
}

// recordFolded journals a record, and has something done once the broker has taken it and the view has folded it.
func (c *core) recordFolded(now time.Time, r wire.JournalRecord, about spot, then func() error) error {
	it := c.ledger.NewRecord(now, r, about)
	it.Folded = then
	return c.ledger.Send(it)
}

// later has something done at the next step.
func (c *core) later(fn func() error) { c.deferred = append(c.deferred, fn) }

func (c *core) doDeferred() error {
	todo := c.deferred
	c.deferred = nil
	for _, fn := range todo {
		if err := fn(); err != nil {
			return err
		}
	}
	return nil
}
