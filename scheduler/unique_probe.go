package scheduler

import (
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

// A worker writes the retry of a job first, and then that the job has ended. The view may read
// these in another order. So of a key that was held, the leader knows that it is free only when it
// has read the retries up to a message of its own, which it sent after the hold had ended.

// retriesProbes are the messages to the retries.
type retriesProbes struct {
	sent  int64                   // the number of the newest of this epoch
	at    time.Time               // when it was sent
	needs map[wire.UniqueID]int64 // keys that were held, with the number that must be read first
	least int64                   // the number that must be read for any other key
}

// probeAgain is when a message is sent again that was not read. The stream may have lost it.
const probeAgain = 5 * time.Second

// note takes in that keys are not held any more.
func (p *retriesProbes) note(freed map[wire.UniqueID]bool) {
	if len(freed) == 0 {
		return
	}
	if p.needs == nil || len(p.needs) > mostNeeds {
		p.needs, p.least = map[wire.UniqueID]int64{}, p.sent+1
	}
	for key := range freed {
		p.needs[key] = p.sent + 1
	}
}

// mostNeeds is how many keys are remembered.
const mostNeeds = 100_000

// passed reports whether a key that nothing holds is free. Each epoch needs one message, since keys
// may have been freed before.
func (p *retriesProbes) passed(key wire.UniqueID, b *base) bool {
	read := b.entries.RetriesProbe(b.ledger.Epoch())
	if read < max(p.needs[key], p.least, 1) {
		return false
	}
	delete(p.needs, key)
	return true
}

// send sends a message, unless one is on its way.
func (p *retriesProbes) send(now time.Time, b *base) error {
	if b.entries.RetriesProbe(b.ledger.Epoch()) < p.sent && now.Sub(p.at) < probeAgain && !now.Before(p.at) {
		return nil
	}
	p.sent++
	p.at = now
	m := wire.RetriesProbe(b.ledger.Epoch(), p.sent)
	return b.ledger.Send(&ledger.Publish{Plain: true, Elsewhere: true, Size: len(m.Body), Build: func(int64, int64) wire.Message { return m }})
}
