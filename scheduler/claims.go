package scheduler

import (
	"maps"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// A worker that gets a job which may have begun before claims it: it asks whether the job may run.
// The leader writes a record to jobs.ends, and answers when the view has read that. By then the
// view has read everything that a dead worker had written about the job: its messages stand before
// those that were sent after the broker gave the job to another worker. One record is enough for
// all claims that came before it.
//
// Of one entry, several fires may be out: the broker may have both a fire that was in doubt and
// the one that repeated it. The newest one runs, and the others are dropped. No claim of a fire in
// doubt is answered: the broker may lose its message, and the job with it if its worker dies. Once
// the doubt is settled, either the message is there for the next worker, or the fire was repeated.

// claims answers claims.
type claims struct {
	base
	sent    int64             // the number of the newest record of this epoch
	newest  *wire.End         // the record for the claims that came since; nil if none did
	pending map[string]*claim // by slot and process
}

// claim is a claim without an answer.
type claim struct {
	slot   wire.Slot
	n      int64 // of the record that must be read first
	answer func(wire.Reply)
}

// maxClaims is how many claims may be without an answer. Workers repeat theirs.
const maxClaims = 10_000

// command takes in a claim. One that is repeated waits for the answer to the first.
func (c *claims) command(_ time.Time, r request) error {
	slot, err := wire.ParseSlot(r.cmd.Slot)
	if err != nil {
		return r.reply(badRequest(err.Error()))
	}
	key := r.cmd.Slot + " " + r.cmd.Process
	if one := c.pending[key]; one != nil { // its worker waits for the newest answer only
		one.answer = r.answer
		return nil
	}
	if len(c.pending) >= maxClaims {
		return r.reply(unavailable("too many claims wait: ask again"))
	}
	if c.newest == nil {
		c.newest = &wire.End{Type: wire.TypeClaimed, Slot: r.cmd.Slot, Process: r.cmd.Process, Epoch: c.ledger.Epoch(), N: c.sent + 1}
	}
	c.pending[key] = &claim{slot: slot, n: c.newest.N, answer: r.answer}
	return nil
}

// send writes the record for the claims that have come since the last one.
func (c *claims) send() error {
	n := c.newest.N
	c.newest.At = wire.Seconds(c.ledger.Now())
	m, err := c.newest.Message()
	if err != nil {
		return err
	}
	c.sent, c.newest = n, nil
	return c.ledger.Send(&ledger.Publish{Plain: true, Elsewhere: true, Size: len(m.Body), Build: func(int64, int64) wire.Message { return m },
		Returned: func(time.Time, string, bool) error {
			maps.DeleteFunc(c.pending, func(_ string, one *claim) bool { return one.n == n })
			return nil
		}})
}

// step answers the claims whose record the view has read.
func (c *claims) step(time.Time) error {
	if len(c.pending) == 0 {
		return nil
	}
	if c.newest != nil {
		if err := c.send(); err != nil {
			return err
		}
	}
	read := c.entries.ReadClaims(c.ledger.Epoch())
	for key, one := range c.pending {
		if one.n > read {
			continue
		}
		answer, err := c.decide(&one.slot)
		if err != nil {
			return err
		}
		if answer == "" {
			continue
		}
		c.counters.Claims.count(answer)
		delete(c.pending, key)
		one.answer(wire.Reply{Status: wire.StatusOK, Claim: answer})
	}
	return nil
}

// decide returns the answer to a claim, or nothing while it is not known.
func (c *claims) decide(slot *wire.Slot) (answer string, err error) {
	if ended, err := c.entries.Slots.HasEnded(slot.Stream, slot.Offset, slot.JIDTag); err != nil || ended {
		return wire.ClaimDrop, err
	}
	if c.ledger.Busy(ledger.ID(slot.Stream, slot.Offset)) != nil {
		return "", nil
	}
	open, err := c.entries.InDoubt(slot.Epoch, slot.Seq)
	if err != nil || open && (slot.Epoch != c.ledger.Epoch() || !c.ledger.HasPassed(slot.Seq)) {
		return "", err
	}
	held, err := c.entries.Slots.HeldSlot(slot.Stream, slot.Offset, slot.JIDTag)
	if err != nil {
		return "", err
	}
	if held != nil && held.Fires[len(held.Fires)-1] != slot.Fire() {
		return wire.ClaimDrop, nil
	}
	entry, err := c.entries.Get(slot.Stream, slot.Offset)
	if err == nil && entry != nil && wire.JIDTag(entry.JID) == slot.JIDTag && !open {
		return wire.ClaimDrop, nil // it will be fired again
	}
	return wire.ClaimRun, err
}

// isReported reports whether a worker has said that the job of a fire in doubt has ended.
func (b *base) isReported(d *tracker.Doubt) (bool, error) {
	if d.ID.Stream == "" {
		return false, nil
	}
	return b.entries.Slots.HasEnded(d.ID.Stream, d.ID.Offset, d.JID)
}
