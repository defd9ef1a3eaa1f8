package scheduler

import (
	"cmp"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// round is one record of decisions.
type round struct {
	base
	probes      *retriesProbes
	isTaken     func(wire.UniqueID) bool // reports whether something that a user has asked for takes a key
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
	k := &keyState{blocked: r.isTaken(key)}
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
