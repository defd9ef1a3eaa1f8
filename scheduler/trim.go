package scheduler

import (
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

// What is kept of dead jobs, unless Config says otherwise.
const (
	DefaultDeadMax = 1_000_000
	DefaultDeadAge = 180 * 24 * time.Hour
)

const (
	trimBatch = 1000
	trimEvery = time.Minute
)

// trimming is how far the dead jobs are trimmed.
type trimming struct {
	looked time.Time       // when they were looked at last
	more   bool            // that was not enough
	sent   *ledger.Publish // the newest record, until it has been folded
}

// trim gives up the oldest dead jobs beyond what is kept of each kind. What is about to be done to one by a person comes first.
func (c *core) trim(now time.Time) error {
	t := &c.trimming
	if t.sent != nil {
		if _, folded := c.entries.Progress(); !t.sent.Settled(folded) {
			return nil
		}
		t.sent = nil
	}
	due := t.more || now.Sub(t.looked) >= trimEvery || now.Before(t.looked)
	for _, dropped := range []bool{false, true} {
		due = due || c.tooMany(dropped) > c.mostDead(dropped)/1000
	}
	if !due || !c.ledger.Room() {
		return nil
	}
	t.looked, t.more = now, false
	for _, dropped := range []bool{false, true} {
		if err := c.trimKind(now, dropped); err != nil || t.sent != nil {
			return err
		}
	}
	return nil
}

// mostDead is how many dead jobs of a kind are kept: a tenth of all may be what queues dropped.
func (c *core) mostDead(dropped bool) int64 {
	if dropped {
		return max(c.setup.deadMax/10, 1)
	}
	return c.setup.deadMax
}

func (c *core) tooMany(dropped bool) int64 { return c.entries.Dead(dropped) - c.mostDead(dropped) }

func (c *core) trimKind(now time.Time, dropped bool) error {
	excess, oldest := c.tooMany(dropped), now.Add(-c.setup.deadAge)
	var chosen []int64
	looked := 0
	err := c.entries.OldestDead(dropped, func(at time.Time, offset int64) bool {
		looked++
		if int64(looked) > excess && !at.Before(oldest) {
			return false
		}
		if c.ledger.Busy(ledger.ID(wire.DeadJobs, offset)) == nil {
			chosen = append(chosen, offset)
		}
		return len(chosen) < trimBatch && looked < 2*trimBatch
	})
	if err != nil || len(chosen) == 0 {
		return err
	}
	return c.giveUpDead(now, chosen)
}

func (c *core) giveUpDead(now time.Time, offsets []int64) error {
	r := wire.JournalRecord{Type: wire.TypeTrimmed, Stream: wire.DeadJobs}
	var spots []spot
	for _, offset := range offsets {
		s, err := c.entries.Get(wire.DeadJobs, offset)
		if err != nil {
			return err
		}
		if s != nil {
			r.Entries = append(r.Entries, wire.Trimmed{Offset: offset, JID: wire.JIDTag(s.JID)})
			spots = append(spots, ledger.ID(wire.DeadJobs, offset))
		}
	}
	if len(spots) == 0 {
		return nil
	}
	r.Count = int64(len(spots))
	sent := c.ledger.NewRecord(now, r, spots[0])
	if err := c.ledger.Send(sent); err != nil {
		return err
	}
	c.ledger.Hold(sent, spots[1:]...)
	c.trimming.sent, c.trimming.more = sent, true
	return nil
}
