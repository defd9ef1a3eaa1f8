package scheduler

import (
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// uniques decides which unique jobs have their keys. It goes through the undecided entries of
// jobs.gated in their order, and journals what it decides. When the view has read that, the
// decision takes effect and its publisher gets the answer. So each leader that follows finds the
// decisions that were answered, and no other.
//
// One record of decisions is on its way at a time. So the view knows all earlier decisions.
type uniques struct {
	base
	rests     func() bool                  // reports whether nothing may be decided, while what is known is written again
	replacing func(key wire.UniqueID) bool // reports whether an entry that takes a key is on its way

	look func(*tracker.Stored) // has an entry fired when it is due

	from     int64                            // no entry below it is undecided
	deciding map[wire.UniqueID]bool           // the keys of the record on its way; nil: there is none
	byHand   map[wire.UniqueID]ledger.EntryID // dead jobs that users retry, until the view has read that
	probes   retriesProbes
}

// What one record decides, and how many undecided entries are looked at for it.
const (
	mostDecisions = 500
	mostUndecided = 2000
)

// open begins an epoch.
func (u *uniques) open(time.Time) error {
	u.entries.FollowKeys(true)
	u.from = 0
	return nil
}

// busy reports whether decisions are on their way.
func (u *uniques) busy() bool { return u.deciding != nil }

// step decides about some of the undecided entries.
func (u *uniques) step(now time.Time) error {
	u.probes.note(u.entries.TakeFreed())
	if u.entries.UndecidedJobs() == 0 || u.busy() || u.rests() || !u.ledger.Room() {
		return nil
	}
	offsets, err := u.undecided()
	if err != nil {
		return err
	}
	r := round{base: u.base, probes: &u.probes, isTaken: u.isTakenByHand, now: now, keys: map[wire.UniqueID]*keyState{}}
	left := int64(-1)
	for _, offset := range offsets {
		decided := false
		if len(r.decisions) < mostDecisions {
			if decided, err = r.decide(offset); err != nil {
				return err
			}
		}
		if !decided && left < 0 {
			left = offset
		}
	}
	switch {
	case left >= 0:
		u.from = left
	case len(offsets) > 0:
		u.from = offsets[len(offsets)-1] + 1
	}
	if r.awaitsProbe {
		if err := u.probes.send(now, &u.base); err != nil {
			return err
		}
	}
	return u.journal(&r)
}

// undecided returns the first undecided entries. One that was killed may be pending again behind
// the place where the last look ended.
func (u *uniques) undecided() (offsets []int64, err error) {
	look := func(from int64) ([]int64, error) {
		var all []int64
		return all, u.entries.Unique.Undecided(from, func(offset int64) bool {
			all = append(all, offset)
			return len(all) < mostUndecided
		})
	}
	if offsets, err = look(u.from); err != nil || int64(len(offsets)) >= min(mostUndecided, u.entries.UndecidedJobs()) {
		return offsets, err
	}
	return look(0)
}

// journal journals the decisions. The entries are busy until the view has read that.
func (u *uniques) journal(r *round) error {
	if len(r.decisions) == 0 {
		return nil
	}
	u.deciding = map[wire.UniqueID]bool{}
	for key := range r.keys {
		u.deciding[key] = true
	}
	p := u.ledger.NewRecord(r.now, wire.JournalRecord{Type: wire.TypeDecided, Decisions: r.decisions}, ledger.EntryID{})
	p.Folded = func() error {
		u.deciding = nil
		for i := range r.decisions {
			u.counters.Decided.count(&r.decisions[i])
		}
		if err := u.lookAt(r.about); err != nil {
			return err
		}
		for _, answer := range r.answers {
			answer()
		}
		return nil
	}
	if err := u.ledger.Send(p); err != nil {
		return err
	}
	u.ledger.Hold(p, r.about...)
	return nil
}

// lookAt has entries fired when they are due. The view may have listed them while they were busy.
func (u *uniques) lookAt(about []ledger.EntryID) error {
	for _, at := range about {
		s, err := u.entries.Get(at.Stream, at.Offset)
		if err != nil {
			return err
		}
		if s != nil && !s.Undecided {
			u.look(s)
		}
	}
	return nil
}

// isTakenByHand reports whether something that a user has asked for is about to hold a key.
func (u *uniques) isTakenByHand(key wire.UniqueID) bool {
	if at, retried := u.byHand[key]; retried {
		if u.ledger.Busy(at) != nil {
			return true
		}
		delete(u.byHand, key)
	}
	return u.replacing(key)
}

// refusal returns why a job cannot come back by hand: another has its key, or may have it. It
// returns nil if it can. wait reports that this is not known yet.
func (u *uniques) refusal(key wire.UniqueID, jid string) (reply *wire.Reply, wait bool, err error) {
	if key == "" {
		return nil, false, nil
	}
	if reply, err = u.holder(key, jid); err != nil || reply != nil {
		return reply, false, err
	}
	if u.deciding[key] || u.isTakenByHand(key) {
		return nil, true, nil
	}
	if u.probes.note(u.entries.TakeFreed()); u.probes.passed(key, &u.base) {
		return nil, false, nil
	}
	return nil, true, u.probes.send(u.ledger.Now(), &u.base)
}

// holder returns the refusal for a job whose key another has, nil if none has it.
func (u *uniques) holder(key wire.UniqueID, jid string) (*wire.Reply, error) {
	holds, err := u.entries.Unique.Holds(key.Hash())
	if err != nil {
		return nil, err
	}
	for _, h := range holds {
		own := wire.JIDTag(h.JID) == wire.JIDTag(jid)
		if h.IsPeriod() && (own || h.Until <= u.ledger.Now().UnixMicro()) {
			continue
		}
		return new(conflict(fmt.Sprintf("job %s has the key that makes this one unique", h.JID))), nil
	}
	return nil, nil
}

// retries notes that a user retries a dead job.
func (u *uniques) retries(s *tracker.Stored) {
	if s.Unique == "" {
		return
	}
	if u.byHand == nil {
		u.byHand = map[wire.UniqueID]ledger.EntryID{}
	}
	u.byHand[s.Unique] = ledger.ID(s.Stream, s.Offset)
}

// command ends that a key is taken for a time, because a user says so.
func (u *uniques) command(now time.Time, r request) error {
	if u.busy() || u.rests() {
		u.ledger.NextStep(func() error { return u.command(u.ledger.Now(), r) })
		return nil
	}
	holds, err := u.entries.Unique.Holds(r.cmd.Key)
	if err != nil {
		return err
	}
	for _, h := range holds {
		if !h.IsPeriod() {
			continue
		}
		record := wire.JournalRecord{Type: wire.TypeDecided, Decisions: []wire.Decision{{Outcome: wire.UniqueFreed, Key: h.Key, JID: wire.JIDTag(h.JID)}},
			Actor: r.cmd.Actor, Reason: r.cmd.Reason, Command: r.cmd.ID}
		u.deciding = map[wire.UniqueID]bool{h.Key: true}
		return u.ledger.RecordThen(now, record, ledger.EntryID{}, func() error {
			u.deciding = nil
			return r.done()
		})
	}
	if len(holds) > 0 {
		return r.reply(conflict(fmt.Sprintf("job %s has this key: delete the job to free it", holds[0].JID)))
	}
	return r.reply(notFound("no key with this hash is taken"))
}

// maxPeriods is how many periods one record at low water has.
const maxPeriods = 500

// carryOver writes again the keys that are taken for a time, because low water would forget them.
func (u *uniques) carryOver(now time.Time) error {
	var all []wire.UniquePeriod
	record := func() error {
		r := wire.JournalRecord{Type: wire.TypeState, Periods: all}
		all = nil
		return u.ledger.Record(now, r, ledger.EntryID{})
	}
	var fault error
	err := u.entries.Unique.Periods(func(h *tracker.KeyHold) bool {
		all = append(all, wire.UniquePeriod{Key: h.Key, JID: h.JID, Since: h.Since, Until: h.Until})
		if len(all) == maxPeriods {
			fault = record()
		}
		return fault == nil
	})
	if err == nil && fault == nil && len(all) > 0 {
		fault = record()
	}
	if err != nil {
		return err
	}
	return fault
}
