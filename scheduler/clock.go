package scheduler

import "time"

// setBack is by how much the time must go back for the clock to have been set; less is what goroutines overtake each other by.
const setBack = time.Second

// follow has everything that waits wait no longer for a clock that was set back: what was to be tried again in a second would else be in an
// hour. What is due is due by the clock, and not touched. A clock that was set forward only ends such waits early.
func (c *core) follow(now time.Time) {
	back := c.ledger.Now().Sub(now)
	c.passing = min(max(0, -back), maxSleep)
	if back < setBack {
		c.ledger.SetNow(now, 0)
		return
	}
	c.ledger.SetNow(now, back)
	if c.carry != nil {
		c.carry.again = c.carry.again.Add(-back)
	}
	c.lanes.setBack(back)
}
