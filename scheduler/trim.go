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

// trimmer gives up the oldest dead jobs beyond what is kept of each kind. A dead job that is busy
// is left alone.
type trimmer struct {
	base
	looked time.Time       // when they were counted last
	more   bool            // there may be more to give up
	sent   *ledger.Publish // the newest record, until the view has read it
}

// step gives up a batch of dead jobs if there are too many.
func (t *trimmer) step(now time.Time) error {
	if t.sent != nil {
		if _, folded := t.entries.Progress(); !t.sent.Settled(folded) {
			return nil
		}
		t.sent = nil
	}
	due := t.more || now.Sub(t.looked) >= trimEvery || now.Before(t.looked)
	for _, dropped := range []bool{false, true} {
		due = due || t.tooMany(dropped) > t.mostDead(dropped)/1000
	}
	if !due || !t.ledger.Room() {
		return nil
	}
	t.looked, t.more = now, false
	for _, dropped := range []bool{false, true} {
		if err := t.trimKind(now, dropped); err != nil || t.sent != nil {
			return err
		}
	}
	return nil
}

// mostDead returns how many dead jobs of a kind are kept. Those that queues dropped may be a tenth
// of all.
func (t *trimmer) mostDead(dropped bool) int64 {
	if dropped {
		return max(t.setup.deadMax/10, 1)
	}
	return t.setup.deadMax
}

func (t *trimmer) tooMany(dropped bool) int64 { return t.entries.Dead(dropped) - t.mostDead(dropped) }

func (t *trimmer) trimKind(now time.Time, dropped bool) error {
	excess, oldest := t.tooMany(dropped), now.Add(-t.setup.deadAge)
	var chosen []int64
	looked := 0
	err := t.entries.OldestDead(dropped, func(at time.Time, offset int64) bool {
		looked++
		if int64(looked) > excess && !at.Before(oldest) {
			return false
		}
		if t.ledger.Busy(ledger.ID(wire.DeadJobs, offset)) == nil {
			chosen = append(chosen, offset)
		}
		return len(chosen) < trimBatch && looked < 2*trimBatch
	})
	if err != nil || len(chosen) == 0 {
		return err
	}
	return t.giveUpDead(now, chosen)
}

func (t *trimmer) giveUpDead(now time.Time, offsets []int64) error {
	r := wire.JournalRecord{Type: wire.TypeTrimmed, Stream: wire.DeadJobs}
	var entries []ledger.EntryID
	for _, offset := range offsets {
		s, err := t.entries.Get(wire.DeadJobs, offset)
		if err != nil {
			return err
		}
		if s != nil {
			r.Entries = append(r.Entries, wire.Trimmed{Offset: offset, JID: wire.JIDTag(s.JID)})
			entries = append(entries, ledger.ID(wire.DeadJobs, offset))
		}
	}
	if len(entries) == 0 {
		return nil
	}
	r.Count = int64(len(entries))
	sent := t.ledger.NewRecord(now, r, entries[0])
	if err := t.ledger.Send(sent); err != nil {
		return err
	}
	t.ledger.Hold(sent, entries[1:]...)
	t.sent, t.more = sent, true
	return nil
}
