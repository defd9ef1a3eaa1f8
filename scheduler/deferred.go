package scheduler

import (
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// unread is something to be done once the view has folded a record of this epoch. What a client is told then stands, whatever happens
// after: the record comes before anything that a later leader writes.
type unread struct {
	seq int64
	fn  func() error
}

// whenFolded has something done once the view has folded all that was sent up to a number: what was answered just now may not be known yet.
func (c *core) whenFolded(seq int64, fn func() error) error {
	if epoch, folded := c.entries.Progress(); epoch == c.epoch && folded >= seq {
		c.release(folded) // what was folded since the last step is busy no more
		return fn()
	}
	c.unread = append(c.unread, unread{seq, fn})
	return nil
}

// recordFolded is record, and has something done once the broker has taken the record and the view has folded it.
func (c *core) recordFolded(now time.Time, r wire.JournalRecord, about spot, then func() error) error {
	it := c.recordItem(now, r, about)
	it.read = then
	return c.send(it)
}

// doRead does what waited for the records that the view has folded now.
func (c *core) doRead(folded int64) error {
	if len(c.unread) == 0 {
		return nil
	}
	all := c.unread
	c.unread = nil
	for _, u := range all {
		if u.seq > folded {
			c.unread = append(c.unread, u)
		} else if err := u.fn(); err != nil {
			return err
		}
	}
	return nil
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
