package scheduler

import (
	"errors"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// settling is how far the doubtful entries of earlier epochs are settled.
type settling struct {
	base
	dispatcher *dispatcher
	copies     *copies
	reentry    reentry

	begun   bool
	verdict verdict
	proof   proof
	from    wire.Through      // the witness tells only of what was fired after this
	lone    []*tracker.Stored // dead jobs whose burials the journal does not have
	open    []tracker.Doubt
	waiting []tracker.Doubt   // fires that arrived if the verdict is that the witness stands: nobody waits for it
	copied  map[dispatch]bool // fires that found no queue and stand in jobs.gated: they arrived
	retried map[dispatch]bool // burials whose dead job was acted upon already: they arrived

	delivered int            // fires that were found to have arrived
	repeated  map[string]int // fires that are dispatched again, by reason
}

// dispatch identifies one fire or burial. The number alone does not: epochs begin again with a new
// journal, and the streams may still hold what an older one tells of.
type dispatch struct {
	number wire.Through
	jid    string // its tag
}

// dispatchOf identifies what an entry was made by.
func dispatchOf(s *tracker.Stored) dispatch { return dispatch{s.Origin(), s.Burial.JIDTag} }

// dispatchInDoubt identifies a fire or burial in doubt.
func dispatchInDoubt(d *tracker.Doubt) dispatch {
	return dispatch{wire.Through{Epoch: d.Epoch, Through: d.Seq}, d.JID}
}

// decided takes in a verdict that was not known when the epoch began.
func (s *settling) decided(v verdict) { s.verdict = v }

// step settles every doubtful entry of every earlier epoch, each with a record, so that a leader that dies here leaves the rest
// doubtful.
func (s *settling) step(now time.Time) (done bool, err error) {
	if !s.begun {
		if err := s.begin(); err != nil {
			return false, err
		}
	}
	if err := s.settleLone(now); err != nil || len(s.lone) > 0 {
		return false, err
	}
	if err := s.settleOpen(now); err != nil || len(s.open) > 0 {
		return false, err
	}
	return s.reentry.step(s.retried)
}

// inDoubt counts what is not settled yet.
func (s *settling) inDoubt() int {
	return len(s.lone) + len(s.open) + len(s.waiting) + len(s.reentry.strays)
}

// isUnsettled reports whether a fire of an entry by an earlier leader waits to be settled: it may yet be
// fired again, and refused.
func (s *settling) isUnsettled(at spot) bool {
	isOf := func(d tracker.Doubt) bool { return spotOf(&d) == at }
	return slices.ContainsFunc(s.waiting, isOf) || slices.ContainsFunc(s.open, isOf)
}

// stepWaiting settles, while the epoch leads, the fires that had to wait for the verdict.
func (s *settling) stepWaiting(now time.Time) error {
	if s.verdict == undecided || len(s.open)+len(s.waiting) == 0 {
		return nil
	}
	if len(s.waiting) > 0 {
		var err error
		if s.copied, err = s.copies.readCopies(); err != nil { // some may have come meanwhile
			return err
		}
		s.open = append(s.open, s.waiting...)
		s.waiting = nil
	}
	return s.settleOpen(now)
}

// settleOpen settles what is in doubt, as far as the window allows.
func (s *settling) settleOpen(now time.Time) error {
	for len(s.open) > 0 && s.ledger.Room() {
		d := s.open[0]
		if s.verdict == undecided && s.provable(&d) && !s.isCopied(&d) {
			s.open = s.open[1:]
			s.waiting = append(s.waiting, d)
			continue
		}
		if s.ledger.Alone() || s.ledger.Suspects()[spotOf(&d)] > 0 && !s.ledger.Drained() {
			return nil // a confirm comes first
		}
		s.open = s.open[1:]
		if err := s.settleOne(now, &d); err != nil {
			return err
		}
	}
	return nil
}

// provable reports whether a fire in doubt certainly arrived if the witness stands.
func (s *settling) provable(d *tracker.Doubt) bool { return s.unprovable(d) == "" }

// unprovable returns why a fire in doubt may not have arrived although the witness stands; empty if
// it certainly did.
func (s *settling) unprovable(d *tracker.Doubt) string {
	fired := wire.Through{Epoch: d.Epoch, Through: d.Seq}
	switch {
	case (wire.Deed{Op: d.Op}).Burial():
		return "burial"
	case d.Returned:
		return "misrouted"
	case fired.Compare(s.from) <= 0:
		return "fired before the nodes or links changed"
	case !s.proof.of(queueOf(d)):
		return "queue gives no proof"
	}
	return ""
}

// fires returns what became of the fires that earlier leaders left in doubt, once it is known
// of all of them. It returns it once.
func (s *settling) fires() (delivered int, repeated map[string]int, known bool) {
	if len(s.open)+len(s.waiting) > 0 || s.delivered+len(s.repeated) == 0 {
		return 0, nil, false
	}
	delivered, repeated = s.delivered, s.repeated
	s.delivered, s.repeated = 0, nil
	return delivered, repeated, true
}

// noteRepeated counts a fire that is dispatched again.
func (s *settling) noteRepeated(d *tracker.Doubt) {
	why := s.unprovable(d)
	if why == "" {
		why = "nodes or links changed"
	}
	if s.repeated == nil {
		s.repeated = map[string]int{}
	}
	s.repeated[why]++
}

func (s *settling) begin() error {
	all, err := s.entries.Doubtful() // all of earlier epochs: in this one nothing has been fired yet
	if err != nil {
		return err
	}
	if s.lone, err = s.entries.Lone(); err != nil {
		return err
	}
	if s.copied, err = s.copies.readCopies(); err != nil {
		return err
	}
	s.begun, s.retried, s.from = true, map[dispatch]bool{}, s.entries.State().WitnessFrom
	for _, d := range all {
		s.open = append(s.open, d)
		if d.Entry != nil && d.Place.Stream == wire.DeadJobs {
			s.retried[dispatchOf(d.Entry)] = true
		}
	}
	return s.reentry.find(s.open, s.copied)
}

// settleOne settles a fire or burial, unless the journal has settled it meanwhile: the leader that fired
// it may live on, and say that it was confirmed, or that it came back.
func (s *settling) settleOne(now time.Time, d *tracker.Doubt) error {
	if open, err := s.entries.InDoubt(d.Epoch, d.Seq); err != nil || !open {
		return err
	}
	returned, err := s.entries.HasReturned(d.Epoch, d.Seq)
	if err != nil {
		return err
	}
	d.Returned = d.Returned || returned
	at := spotOf(d)
	burial := (wire.Deed{Op: d.Op}).Burial()
	arrived := false
	if burial {
		arrived, err = s.isBuried(d)
	} else {
		arrived = s.isCopied(d) || s.verdict == stands && s.provable(d)
	}
	if err != nil {
		return err
	}
	switch {
	case arrived && d.Op == wire.OpBuried && d.Entry != nil:
		return s.tellKilled(now, d)
	case arrived:
		s.delivered++
		return s.ledger.Record(now, settlement(wire.TypeDelivered, d), at)
	case burial && d.Entry != nil:
		return s.dispatcher.takeBack(now, d)
	case s.ledger.Suspects()[at] >= maxKills && d.Entry != nil:
		return s.dispatcher.refuse(now, d.Entry, s.dispatcher.kills(at))
	case s.ledger.Suspects()[at] >= maxKills:
		return s.showOnly(now, d, s.dispatcher.kills(at))
	}
	if !burial {
		s.noteRepeated(d)
	}
	return s.refire(now, d, burial)
}

// settlement is the record that says what became of a doubtful fire or burial.
func settlement(what string, d *tracker.Doubt) wire.JournalRecord {
	return wire.JournalRecord{Type: what, Stream: d.Place.Stream, Offset: d.Place.Offset, JID: d.JID, FiredEpoch: d.Epoch, Seq: d.Seq}
}

// tellKilled journals that an entry was killed, in place of a leader that died between the burial and that: without it the entry is no part of
// its operation, and nobody can take it back.
func (s *settling) tellKilled(now time.Time, d *tracker.Doubt) error {
	r := settlement(wire.TypeDelivered, d)
	_, e, err := s.load(spotOf(d))
	if err != nil && !errors.Is(err, errFetch) {
		return err
	}
	if e != nil {
		r = killed(spotOf(d), d.JID, e)
		r.Actor, r.Command, r.InOperation = d.Actor, d.Command, d.Bulk
		dead, err := s.amongDead(e.JID, madeBy(wire.Through{Epoch: d.Epoch, Through: d.Seq}))
		if err != nil {
			return err
		}
		if dead != nil { // or somebody has done something to it already
			r.DiedAt = wire.Seconds(dead.At)
		}
	}
	return s.ledger.Record(now, r, spotOf(d))
}

func spotOf(d *tracker.Doubt) spot { return ledger.ID(d.Place.Stream, d.Place.Offset) }

// showOnly gives up a job that the broker cannot take and that only the journal has: its stream has forgotten it.
func (s *settling) showOnly(now time.Time, d *tracker.Doubt, reason string) error {
	const kept = 64 << 10
	s.counters.Refused++
	r := wire.JournalRecord{Type: wire.TypeRejected, Queue: wire.Journal, Reason: reason, Count: int64(len(d.Body)),
		Body: d.Body[:min(len(d.Body), kept)]}
	if err := s.ledger.Record(now, r, spot{}); err != nil {
		return err
	}
	return s.ledger.Record(now, settlement(wire.TypeDelivered, d), spotOf(d))
}

// isBuried tells whether a doubtful burial arrived: its stream has been folded to its end.
func (s *settling) isBuried(d *tracker.Doubt) (bool, error) {
	jid := ""
	if d.Entry != nil {
		jid = d.Entry.JID
	} else if e, err := wire.ParseEntry(wire.DeadJobs, 0, d.Body); err == nil {
		jid = e.JID
	}
	if s.retried[dispatchInDoubt(d)] {
		return true, nil
	}
	dead, err := s.amongDead(jid, madeBy(wire.Through{Epoch: d.Epoch, Through: d.Seq}))
	return dead != nil, err
}

// refire fires or buries again what may not have arrived.
func (s *settling) refire(now time.Time, d *tracker.Doubt, burial bool) error {
	o := order{op: wire.OpRefired, command: d.Command, doubt: d} // which it was to carry out: if it comes back that is not done
	if d.Entry != nil {
		old, e, err := s.load(spotOf(d))
		if errors.Is(err, errFetch) { // left in doubt it would pass for delivered as soon as a new witness stands
			return s.dispatcher.takeBack(now, d)
		}
		if err != nil || old == nil {
			return err
		}
		if e == nil {
			return s.dispatcher.refuse(now, old, "its record cannot be read any more")
		}
		return s.dispatcher.fire(now, old, e, o)
	}
	job, err := wire.ParseJob(d.Body)
	if burial {
		o.op = d.Op
		var e wire.Entry
		e, err = wire.ParseEntry(wire.DeadJobs, 0, d.Body)
		job = e.Job
	}
	if err != nil { // it was read when it was fired; a body that cannot be read now was no job then either
		return s.ledger.Record(now, settlement(wire.TypeDelivered, d), spotOf(d))
	}
	return s.refireBody(now, d, &job, o, burial)
}

// refireBody publishes again a job that only the journal has. A fire counts in its queue's lane, so that
// a queue that does not answer stops only itself.
func (s *settling) refireBody(now time.Time, d *tracker.Doubt, job *wire.Job, o order, burial bool) error {
	again := &dispatched{tag: d.JID, doubt: d, buries: burial, Publish: &ledger.Publish{Entry: spotOf(d), Build: func(seq, confirmed int64) wire.Message {
		deed := wire.Deed{Op: o.op, Stream: d.Place.Stream, Offset: d.Place.Offset, JIDTag: d.JID, Epoch: s.ledger.Epoch(), Seq: seq, Confirmed: confirmed}
		if burial {
			return wire.Bury(job, deed, d.Body, now)
		}
		return wire.Fire(job, deed, d.Body, now)
	}}}
	if !burial {
		again.lane = s.dispatcher.lanes.of(job.Queue)
	}
	err := s.dispatcher.send(again)
	if errors.Is(err, broker.ErrUnpublishable) {
		return s.showOnly(now, d, err.Error())
	}
	return err
}

// queueOf is the queue that a doubtful fire went to.
func queueOf(d *tracker.Doubt) string {
	if d.Entry != nil {
		return d.Entry.Queue
	}
	job, err := wire.ParseJob(d.Body)
	if err != nil {
		return ""
	}
	return job.Queue
}

// isCopied reports whether a fire in doubt found no queue, and so arrived in jobs.gated.
func (s *settling) isCopied(d *tracker.Doubt) bool {
	return s.copied[dispatchInDoubt(d)]
}

// dropSuspects forgets those that are neither pending nor in doubt any more.
func (s *settling) dropSuspects(time.Time) error {
	for at := range s.ledger.Suspects() {
		pending, err := s.entries.Get(at.Stream, at.Offset)
		if err != nil {
			return err
		}
		if pending == nil && s.ledger.Busy(at) == nil {
			delete(s.ledger.Suspects(), at)
		}
	}
	return nil
}
