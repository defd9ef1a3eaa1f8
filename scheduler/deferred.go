package scheduler

import (
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// whenFolded has something done once the view has folded all that was sent up to a number: what was answered just now may not be known yet.
func (c *core) whenFolded(seq int64, fn func() error) error {
	if _, folded := c.entries.Progress(); folded >= seq {
		c.release(folded) // what was folded since the last step is busy no more
		return fn()
	}
	c.later(func() error { return c.whenFolded(seq, fn) })
	return nil
}

// recordFolded is record, and has something done once the view has folded the record.
func (c *core) recordFolded(now time.Time, r wire.JournalRecord, then func() error) error {
	return c.record(now, r, spot{}, func(bool) {
		seq := c.seq
		c.later(func() error { return c.whenFolded(seq, then) })
	})
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
