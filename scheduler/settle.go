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
	begun   bool
	verdict verdict
	proof   proof
	from    wire.Through      // the witness tells only of what was fired after this
	lone    []*tracker.Stored // dead jobs whose burials the journal does not have
	open    []tracker.Doubt
	astray  []stray           // what may not have arrived although it was confirmed
	waiting []tracker.Doubt   // fires that arrived if the verdict is that the witness stands: nobody waits for it
	copies  map[dispatch]bool // fires that found no queue and stand in jobs.gated: they arrived
	retried map[dispatch]bool // burials whose dead job was acted upon already: they arrived

	entering int     // of what went astray, what is on its way
	astrayAt float64 // when that was noticed

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

// witnessed takes in whether the witness of earlier epochs still stands, and which queues it
// speaks for. If that is undecided, decided is called later.
func (c *core) witnessed(v verdict, p proof) {
	c.settling.verdict, c.settling.proof = v, p
	c.phase = phaseSettling
}

// decided takes in a verdict that was not known when the epoch began.
func (c *core) decided(v verdict) { c.settling.verdict = v }

// settle settles every doubtful entry of every earlier epoch, each with a record, so that a leader that dies here leaves the rest
// doubtful.
func (c *core) settle(now time.Time) error {
	if !c.settling.begun {
		if err := c.beginSettling(); err != nil {
			return err
		}
	}
	if err := c.settleLone(now); err != nil || len(c.settling.lone) > 0 {
		return err
	}
	if err := c.settleOpen(now); err != nil || len(c.settling.open) > 0 {
		return err
	}
	done, err := c.enterAstray()
	if done {
		c.phase = phaseSettled
	}
	return err
}

// inDoubt counts the fires and burials of earlier leaders that are not settled yet.
func (c *core) inDoubt() int {
	return len(c.settling.lone) + len(c.settling.open) + len(c.settling.waiting) + len(c.settling.astray) + len(c.lateFires.open)
}

// isUnsettled reports whether a fire of an entry by an earlier leader waits to be settled: it may yet be
// fired again, and refused.
func (c *core) isUnsettled(at spot) bool {
	isOf := func(d tracker.Doubt) bool { return spotOf(&d) == at }
	return slices.ContainsFunc(c.settling.waiting, isOf) || slices.ContainsFunc(c.settling.open, isOf)
}

// settleWaiting settles, while the epoch leads, the fires that had to wait for the verdict.
func (c *core) settleWaiting(now time.Time) error {
	if c.settling.verdict == undecided || len(c.settling.open)+len(c.settling.waiting) == 0 {
		return nil
	}
	if len(c.settling.waiting) > 0 {
		var err error
		if c.settling.copies, err = c.copies.readCopies(); err != nil { // some may have come meanwhile
			return err
		}
		c.settling.open = append(c.settling.open, c.settling.waiting...)
		c.settling.waiting = nil
	}
	return c.settleOpen(now)
}

// settleOpen settles what is in doubt, as far as the window allows.
func (c *core) settleOpen(now time.Time) error {
	for len(c.settling.open) > 0 && c.ledger.Room() {
		d := c.settling.open[0]
		if c.settling.verdict == undecided && c.provable(&d) && !c.isCopied(&d) {
			c.settling.open = c.settling.open[1:]
			c.settling.waiting = append(c.settling.waiting, d)
			continue
		}
		if c.ledger.Alone() || c.ledger.Suspects()[spotOf(&d)] > 0 && !c.ledger.Drained() {
			return nil // a confirm comes first
		}
		c.settling.open = c.settling.open[1:]
		if err := c.settleOne(now, &d); err != nil {
			return err
		}
	}
	return nil
}

// provable reports whether a fire in doubt certainly arrived if the witness stands.
func (c *core) provable(d *tracker.Doubt) bool { return c.unprovable(d) == "" }

// unprovable returns why a fire in doubt may not have arrived although the witness stands; empty if
// it certainly did.
func (c *core) unprovable(d *tracker.Doubt) string {
	fired := wire.Through{Epoch: d.Epoch, Through: d.Seq}
	switch {
	case (wire.Deed{Op: d.Op}).Burial():
		return "burial"
	case d.Returned:
		return "misrouted"
	case fired.Compare(c.settling.from) <= 0:
		return "fired before the nodes or links changed"
	case !c.settling.proof.of(queueOf(d)):
		return "queue gives no proof"
	}
	return ""
}

// settledFires returns what became of the fires that earlier leaders left in doubt, once it is known
// of all of them. It returns it once.
func (c *core) settledFires() (delivered int, repeated map[string]int, known bool) {
	s := &c.settling
	if c.phase != phaseLeading || len(s.open)+len(s.waiting) > 0 || s.delivered+len(s.repeated) == 0 {
		return 0, nil, false
	}
	delivered, repeated = s.delivered, s.repeated
	s.delivered, s.repeated = 0, nil
	return delivered, repeated, true
}

// noteRepeated counts a fire that is dispatched again.
func (c *core) noteRepeated(d *tracker.Doubt) {
	why := c.unprovable(d)
	if why == "" {
		why = "nodes or links changed"
	}
	if c.settling.repeated == nil {
		c.settling.repeated = map[string]int{}
	}
	c.settling.repeated[why]++
}

func (c *core) beginSettling() error {
	all, err := c.entries.Doubtful() // all of earlier epochs: in this one nothing has been fired yet
	if err != nil {
		return err
	}
	if c.settling.lone, err = c.entries.Lone(); err != nil {
		return err
	}
	if c.settling.copies, err = c.copies.readCopies(); err != nil {
		return err
	}
	c.settling.begun, c.settling.retried, c.settling.from = true, map[dispatch]bool{}, c.entries.State().WitnessFrom
	for _, d := range all {
		c.settling.open = append(c.settling.open, d)
		if d.Entry != nil && d.Place.Stream == wire.DeadJobs {
			c.settling.retried[dispatchOf(d.Entry)] = true
		}
	}
	return c.findAstray()
}

// settleOne settles a fire or burial, unless the journal has settled it meanwhile: the leader that fired
// it may live on, and say that it was confirmed, or that it came back.
func (c *core) settleOne(now time.Time, d *tracker.Doubt) error {
	if open, err := c.entries.InDoubt(d.Epoch, d.Seq); err != nil || !open {
		return err
	}
	returned, err := c.entries.HasReturned(d.Epoch, d.Seq)
	if err != nil {
		return err
	}
	d.Returned = d.Returned || returned
	at := spotOf(d)
	burial := (wire.Deed{Op: d.Op}).Burial()
	arrived := false
	if burial {
		arrived, err = c.isBuried(d)
	} else {
		arrived = c.isCopied(d) || c.settling.verdict == stands && c.provable(d)
	}
	if err != nil {
		return err
	}
	switch {
	case arrived && d.Op == wire.OpBuried && d.Entry != nil:
		return c.tellKilled(now, d)
	case arrived:
		c.settling.delivered++
		return c.ledger.Record(now, settlement(wire.TypeDelivered, d), at)
	case burial && d.Entry != nil:
		return c.dispatcher.takeBack(now, d)
	case c.ledger.Suspects()[at] >= maxKills && d.Entry != nil:
		return c.dispatcher.refuse(now, d.Entry, c.dispatcher.kills(at))
	case c.ledger.Suspects()[at] >= maxKills:
		return c.showOnly(now, d, c.dispatcher.kills(at))
	}
	if !burial {
		c.noteRepeated(d)
	}
	return c.refire(now, d, burial)
}

// settlement is the record that says what became of a doubtful fire or burial.
func settlement(what string, d *tracker.Doubt) wire.JournalRecord {
	return wire.JournalRecord{Type: what, Stream: d.Place.Stream, Offset: d.Place.Offset, JID: d.JID, FiredEpoch: d.Epoch, Seq: d.Seq}
}

// tellKilled journals that an entry was killed, in place of a leader that died between the burial and that: without it the entry is no part of
// its operation, and nobody can take it back.
func (c *core) tellKilled(now time.Time, d *tracker.Doubt) error {
	r := settlement(wire.TypeDelivered, d)
	_, e, err := c.load(spotOf(d))
	if err != nil && !errors.Is(err, errFetch) {
		return err
	}
	if e != nil {
		r = killed(spotOf(d), d.JID, e)
		r.Actor, r.Command, r.InOperation = d.Actor, d.Command, d.Bulk
		dead, err := c.amongDead(e.JID, madeBy(wire.Through{Epoch: d.Epoch, Through: d.Seq}))
		if err != nil {
			return err
		}
		if dead != nil { // or somebody has done something to it already
			r.DiedAt = wire.Seconds(dead.At)
		}
	}
	return c.ledger.Record(now, r, spotOf(d))
}

func spotOf(d *tracker.Doubt) spot { return ledger.ID(d.Place.Stream, d.Place.Offset) }

// showOnly gives up a job that the broker cannot take and that only the journal has: its stream has forgotten it.
func (c *core) showOnly(now time.Time, d *tracker.Doubt, reason string) error {
	const kept = 64 << 10
	c.counters.Refused++
	r := wire.JournalRecord{Type: wire.TypeRejected, Queue: wire.Journal, Reason: reason, Count: int64(len(d.Body)),
		Body: d.Body[:min(len(d.Body), kept)]}
	if err := c.ledger.Record(now, r, spot{}); err != nil {
		return err
	}
	return c.ledger.Record(now, settlement(wire.TypeDelivered, d), spotOf(d))
}

// isBuried tells whether a doubtful burial arrived: its stream has been folded to its end.
func (c *core) isBuried(d *tracker.Doubt) (bool, error) {
	jid := ""
	if d.Entry != nil {
		jid = d.Entry.JID
	} else if e, err := wire.ParseEntry(wire.DeadJobs, 0, d.Body); err == nil {
		jid = e.JID
	}
	if c.settling.retried[dispatchInDoubt(d)] {
		return true, nil
	}
	dead, err := c.amongDead(jid, madeBy(wire.Through{Epoch: d.Epoch, Through: d.Seq}))
	return dead != nil, err
}

// refire fires or buries again what may not have arrived.
func (c *core) refire(now time.Time, d *tracker.Doubt, burial bool) error {
	o := order{op: wire.OpRefired, command: d.Command, doubt: d} // which it was to carry out: if it comes back that is not done
	if d.Entry != nil {
		s, e, err := c.load(ledger.ID(d.Place.Stream, d.Place.Offset))
		if errors.Is(err, errFetch) { // left in doubt it would pass for delivered as soon as a new witness stands
			return c.dispatcher.takeBack(now, d)
		}
		if err != nil || s == nil {
			return err
		}
		if e == nil {
			return c.dispatcher.refuse(now, s, "its record cannot be read any more")
		}
		return c.dispatcher.fire(now, s, e, o)
	}
	job, err := wire.ParseJob(d.Body)
	if burial {
		o.op = d.Op
		var e wire.Entry
		e, err = wire.ParseEntry(wire.DeadJobs, 0, d.Body)
		job = e.Job
	}
	if err != nil { // it was read when it was fired; a body that cannot be read now was no job then either
		return c.ledger.Record(now, settlement(wire.TypeDelivered, d), spotOf(d))
	}
	return c.refireBody(now, d, &job, o, burial)
}

// refireBody publishes again a job that only the journal has. A fire counts in its queue's lane, so that
// a queue that does not answer stops only itself.
func (c *core) refireBody(now time.Time, d *tracker.Doubt, job *wire.Job, o order, burial bool) error {
	again := &dispatched{tag: d.JID, doubt: d, buries: burial, Publish: &ledger.Publish{Entry: spotOf(d), Build: func(seq, confirmed int64) wire.Message {
		deed := wire.Deed{Op: o.op, Stream: d.Place.Stream, Offset: d.Place.Offset, JIDTag: d.JID, Epoch: c.ledger.Epoch(), Seq: seq, Confirmed: confirmed}
		if burial {
			return wire.Bury(job, deed, d.Body, now)
		}
		return wire.Fire(job, deed, d.Body, now)
	}}}
	if !burial {
		again.lane = c.lanes.of(job.Queue)
	}
	err := c.dispatcher.send(again)
	if errors.Is(err, broker.ErrUnpublishable) {
		return c.showOnly(now, d, err.Error())
	}
	return err
}

// settled takes in the witness that stands from now on; empty if there is none. The epoch leads from here on, and the record
// says so, be the witness new or not: an epoch that led left a barrier in every entry stream. Nothing is fired before that is confirmed: a
// leader that died then would have left fires and no witness, and they would be fired again.
func (c *core) settled(now time.Time, witness string) error {
	r := wire.JournalRecord{Type: wire.TypeWitness, Witness: witness}
	begun := c.ledger.NewRecord(now, r, spot{})
	begun.Confirmed = func() { c.phase = phaseLeading }
	if err := c.ledger.Send(begun); err != nil {
		return err
	}
	c.phase = phaseBeginning
	if err := c.dropSuspects(); err != nil {
		return err
	}
	if err := c.tellOfOthers(now); err != nil {
		return err
	}
	c.opened = c.ledger.Seq() // what earlier leaders had not told is told up to here
	if err := c.resumeOperations(now); err != nil {
		return err
	}
	if err := c.pauses.tellAgain(now); err != nil {
		return err
	}
	c.entries.TakeReady()
	c.entries.TakeCopies()
	var err error
	if c.copies.undecided, err = c.entries.Copies(); err != nil {
		return err
	}
	for _, queue := range c.entries.Queues() {
		c.lanes.look(c.lanes.of(queue), tracker.DueKey{})
	}
	return c.decideGap(now)
}

// rewitnessed journals another witness: the broker's nodes or links have changed. What was fired
// before has none any more.
func (c *core) rewitnessed(now time.Time, witness string) error {
	return c.ledger.Record(now, wire.JournalRecord{Type: wire.TypeWitness, Witness: witness}, spot{})
}

// dropSuspects forgets those that are neither pending nor in doubt any more.
func (c *core) dropSuspects() error {
	for at := range c.ledger.Suspects() {
		s, err := c.entries.Get(at.Stream, at.Offset)
		if err != nil {
			return err
		}
		if s == nil && c.ledger.Busy(at) == nil {
			delete(c.ledger.Suspects(), at)
		}
	}
	return nil
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
