package tracker

import (
	"time"

	"github.com/millrace-jobs/millrace/tracker/occupancy"
	"github.com/millrace-jobs/millrace/wire"
)

// maxCounted is how many waiting jobs are counted. Counting more takes too long.
const maxCounted = 200_000

// Occupancy counts the gated jobs that are due, and the slots that are held.
func (r *Reader) Occupancy(now time.Time) (*occupancy.Counts, error) {
	rates, err := r.Limits.Rates()
	if err != nil {
		return nil, err
	}
	c, waiting := occupancy.New(now, rates), map[wire.Group]int{}
	if c.More, err = r.CountGroups(maxCounted, now, waiting); err != nil {
		return nil, err
	}
	for g, n := range waiting {
		c.Wait(g, n)
	}
	err = r.Slots.Held(func(h *wire.HeldSlot) bool {
		c.Hold(h)
		return true
	})
	return c, err
}
