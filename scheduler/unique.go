package scheduler

import (
	"cmp"
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
	changes *changes
	carry   *carrier

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
	if u.entries.UndecidedJobs() == 0 || u.busy() || u.carry.rests() || !u.ledger.Room() {
		return nil
	}
	offsets, err := u.undecided()
	if err != nil {
		return err
	}
	r := round{uniques: u, now: now, keys: map[wire.UniqueID]*keyState{}}
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
	return r.journal()
}

// undecided returns the first undecided entries. One that was killed may be pending again behind the
// place where the last look ended.
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

// round is one record of decisions.
type round struct {
	*uniques
	now         time.Time
	keys        map[wire.UniqueID]*keyState
	decisions   []wire.Decision
	about       []ledger.EntryID
	answers     []func()
	awaitsProbe bool
}

// keyState is what holds a key, with the decisions of this round.
type keyState struct {
	blocked bool // it is not known: something is under way
	jids    []string
	until   int64         // of a period, with its jid; 0: there is none
	period  string        // the jid of the period
	waits   *waitingEntry // the only hold beside a period: an entry that can be replaced or put off
}

// waitingEntry is an entry of jobs.gated that holds a key and waits.
type waitingEntry struct {
	at    ledger.EntryID
	tag   string
	first int64 // since when it is put off
	due   int64 // both in microseconds since 1970
}

func (k *keyState) free() bool { return len(k.jids) == 0 && k.until == 0 }

// decide decides about one entry, unless something is under way about its key.
func (r *round) decide(offset int64) (decided bool, err error) {
	s, err := r.entries.Get(wire.Gated, offset)
	if err != nil || s == nil || !s.Undecided {
		return true, err
	}
	k, err := r.state(s.Unique)
	if err != nil {
		return false, err
	}
	if at := ledger.ID(s.Stream, s.Offset); r.ledger.Busy(at) != nil {
		k.blocked = true // those behind it must not get the key before it
	}
	switch {
	case k.blocked:
	case k.has(s):
		r.add(s, wire.Decision{Outcome: wire.UniqueRepeated}, nil)
		return true, nil
	case k.free() && !r.probes.passed(s.Unique, &r.base):
		r.awaitsProbe, k.blocked = true, true
	case k.free(), s.Replace && k.waits != nil && (k.until == 0 || k.period == k.waits.tag):
		r.admit(s, k)
		return true, nil
	default:
		r.outdo(s, k)
		return true, nil
	}
	return false, nil
}

// has reports whether the job itself has the key.
func (k *keyState) has(s *tracker.Stored) bool {
	tag := wire.JIDTag(s.JID)
	for _, jid := range k.jids {
		if wire.JIDTag(jid) == tag {
			return true
		}
	}
	return k.until > 0 && k.period == tag
}

// state returns what holds a key.
func (r *round) state(key wire.UniqueID) (*keyState, error) {
	if k := r.keys[key]; k != nil {
		return k, nil
	}
	k := &keyState{blocked: r.isTakenByHand(key)}
	r.keys[key] = k
	holds, err := r.entries.Unique.Holds(key.Hash())
	if err != nil {
		return nil, err
	}
	r.probes.note(r.entries.TakeFreed()) // what ended before the holds were read
	for _, h := range holds {
		if err := r.note(k, h); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// note takes in one hold of a key.
func (r *round) note(k *keyState, h *tracker.KeyHold) error {
	if h.IsPeriod() {
		if h.Until > r.now.UnixMicro() {
			k.until, k.period = h.Until, wire.JIDTag(h.JID)
		}
		return nil
	}
	k.jids = append(k.jids, h.JID)
	if k.waits = nil; h.Slot {
		return nil
	}
	at := ledger.ID(h.Stream, h.Offset)
	if r.ledger.Busy(at) != nil {
		k.blocked = true
		return nil
	}
	s, err := r.entries.Get(h.Stream, h.Offset)
	if err != nil || s == nil || h.Stream != wire.Gated || s.IsCopy() || len(k.jids) > 1 {
		return err
	}
	if pending, err := r.entries.Pending(s); err != nil || !pending {
		return err
	}
	k.waits = &waitingEntry{at, wire.JIDTag(s.JID), cmp.Or(s.PutOffSince, r.now.UnixMicro()), s.At.UnixMicro()}
	return nil
}

// admit decides that an entry has its key, perhaps in place of one that waits.
func (r *round) admit(s *tracker.Stored, k *keyState) {
	d := wire.Decision{Outcome: wire.UniqueAdmitted, First: r.now.UnixMicro()}
	replaced := k.waits
	if replaced != nil {
		d.Holder, d.HolderJID, d.First, d.Key = &replaced.at.Offset, replaced.tag, replaced.first, s.Unique
	}
	due := s.At.UnixMicro()
	if s.Wait > 0 {
		due = max(due, r.putOff(s, d.First))
		d.Due = due
	}
	k.until, k.period = 0, ""
	if s.For > 0 {
		d.Key, d.Until = s.Unique, r.now.Add(s.For).UnixMicro()
		k.until, k.period = d.Until, wire.JIDTag(s.JID)
	}
	k.jids = []string{s.JID}
	k.waits = &waitingEntry{ledger.ID(s.Stream, s.Offset), wire.JIDTag(s.JID), d.First, due}
	r.add(s, d, replaced)
}

// putOff returns when a job is due that is put off now, in microseconds since 1970.
func (r *round) putOff(s *tracker.Stored, first int64) int64 {
	due := r.now.Add(s.Wait).UnixMicro()
	if s.Max > 0 {
		due = min(due, first+s.Max.Microseconds())
	}
	return due
}

// outdo decides that an entry is a duplicate. It may put off the job that stays.
func (r *round) outdo(s *tracker.Stored, k *keyState) {
	d := wire.Decision{Outcome: wire.UniqueDuplicate, Of: k.period}
	if len(k.jids) > 0 {
		d.Of = k.jids[0]
	}
	var put *waitingEntry
	if !s.Replace && s.Wait > 0 && k.waits != nil {
		if due := r.putOff(s, k.waits.first); due > k.waits.due {
			put = k.waits
			put.due = due
			d.Holder, d.HolderJID, d.Due = &put.at.Offset, put.tag, due
		}
	}
	r.add(s, d, put)
}

// add adds a decision to the record.
func (r *round) add(s *tracker.Stored, d wire.Decision, other *waitingEntry) {
	d.Offset, d.JID = s.Offset, wire.JIDTag(s.JID)
	r.decisions = append(r.decisions, d)
	r.about = append(r.about, ledger.ID(s.Stream, s.Offset))
	if other != nil {
		r.about = append(r.about, other.at)
	}
	if s.ReplyTo == "" || r.setup.answer == nil {
		return
	}
	reply := wire.Reply{Status: wire.StatusCreated, JID: s.JID}
	if d.Outcome == wire.UniqueDuplicate {
		reply = wire.Reply{Status: wire.StatusOK, JID: d.Of, DuplicateOf: d.Of}
	}
	to := wire.Delivery{ReplyTo: s.ReplyTo, CorrelationID: s.CorrelationID}
	r.answers = append(r.answers, func() { r.setup.answer(to, reply) })
}

// journal journals the decisions. The entries are busy until the view has read that.
func (r *round) journal() error {
	if len(r.decisions) == 0 {
		return nil
	}
	u := r.uniques
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

// isTakenByHand reports whether something that a user has asked for is about to hold a key.
func (u *uniques) isTakenByHand(key wire.UniqueID) bool {
	if at, retried := u.byHand[key]; retried {
		if u.ledger.Busy(at) != nil {
			return true
		}
		delete(u.byHand, key)
	}
	for _, r := range u.changes.replacing {
		if r.unique == key {
			return true
		}
	}
	return false
}

// refusal returns why a job cannot come back by hand: another has its key, or may have it. It returns
// nil if it can. wait reports that this is not known yet.
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
	if u.busy() || u.carry.rests() {
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

// A worker writes the retry of a job first, and then that the job has ended. The view may read these
// in another order. So of a key that was held, the leader knows that it is free only when it has read
// the retries up to a message of its own, which it sent after the hold had ended.

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
