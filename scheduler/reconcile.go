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

// reconciler decides what became of the fires and burials that earlier leaders left in doubt.
type reconciler struct {
	base
	dispatcher *dispatcher
	copies     *copies
	reentry    reentry

	begun   bool
	verdict verdict
	proof   proof
	from    wire.Through // the witness speaks only for what was fired after this

	unjournaled []*tracker.Stored // dead jobs whose burials the journal lacks
	open        []tracker.Doubt   // what is to be decided
	waiting     []tracker.Doubt   // fires that arrived if the witness stands, while the epoch leads
	copied      map[dispatch]bool // fires that found no queue: they arrived in jobs.gated
	retried     map[dispatch]bool // burials whose dead job was acted upon: they arrived

	delivered int            // fires that were found to have arrived
	repeated  map[string]int // fires that are dispatched again, by reason
}

// dispatchInDoubt returns what a doubt is about.
func dispatchInDoubt(d *tracker.Doubt) dispatch {
	return dispatch{wire.Through{Epoch: d.Epoch, Through: d.Seq}, d.JID}
}

// decided takes in a verdict that was not known when the epoch began, and what queues can prove.
func (r *reconciler) decided(v verdict, p proof) { r.verdict, r.proof = v, p }

// step settles what is in doubt, each with a record, and reports whether that is done. If the
// leader ends here, the rest stays in doubt for the next one.
func (r *reconciler) step(now time.Time) (done bool, err error) {
	if !r.begun {
		if err := r.begin(); err != nil {
			return false, err
		}
	}
	if err := r.journalBurials(now); err != nil || len(r.unjournaled) > 0 {
		return false, err
	}
	if err := r.reconcileOpen(now); err != nil || len(r.open) > 0 {
		return false, err
	}
	return r.reentry.step(r.retried)
}

// inDoubt returns how much is not settled yet.
func (r *reconciler) inDoubt() int {
	return len(r.unjournaled) + len(r.open) + len(r.waiting) + len(r.reentry.left)
}

// mayRefire reports whether a fire of an entry is not settled yet: it may be fired again, and be
// refused then.
func (r *reconciler) mayRefire(at ledger.EntryID) bool {
	isOf := func(d tracker.Doubt) bool { return entryOf(&d) == at }
	return slices.ContainsFunc(r.waiting, isOf) || slices.ContainsFunc(r.open, isOf)
}

// stepWaiting settles, while the epoch leads, the fires that waited for the verdict.
func (r *reconciler) stepWaiting(now time.Time) error {
	if r.verdict == undecided || len(r.open)+len(r.waiting) == 0 {
		return nil
	}
	if len(r.waiting) > 0 {
		var err error
		if r.copied, err = r.copies.readCopies(); err != nil { // some may have come meanwhile
			return err
		}
		r.open = append(r.open, r.waiting...)
		r.waiting = nil
	}
	return r.reconcileOpen(now)
}

// reconcileOpen settles what is in doubt, as far as the window allows.
func (r *reconciler) reconcileOpen(now time.Time) error {
	for len(r.open) > 0 && r.ledger.Room() {
		d := r.open[0]
		if r.verdict == undecided && r.provable(&d) && !r.isCopied(&d) {
			r.open = r.open[1:]
			r.waiting = append(r.waiting, d)
			continue
		}
		if r.ledger.Alone() || r.ledger.Suspects()[entryOf(&d)] > 0 && !r.ledger.Drained() {
			return nil // a confirm comes first
		}
		r.open = r.open[1:]
		if err := r.reconcileOne(now, &d); err != nil {
			return err
		}
	}
	return nil
}

// provable reports whether a fire in doubt certainly arrived if the witness stands.
func (r *reconciler) provable(d *tracker.Doubt) bool { return r.unprovable(d) == "" }

// unprovable returns why a fire in doubt may not have arrived although the witness stands, or an
// empty string if it did.
func (r *reconciler) unprovable(d *tracker.Doubt) string {
	fired := wire.Through{Epoch: d.Epoch, Through: d.Seq}
	switch {
	case (wire.Dispatch{Op: d.Op}).Burial():
		return "burial"
	case d.Returned:
		return "misrouted"
	case fired.Compare(r.from) <= 0:
		return "delivered before the nodes or links changed"
	case r.verdict == undecided && r.proof.unread: // it is read again for the verdict
		return ""
	case !r.proof.of(queueOf(d)):
		return "queue gives no proof"
	}
	return ""
}

// outcome returns, once, what became of the fires in doubt, when it is known of all of them.
func (r *reconciler) outcome() (delivered int, repeated map[string]int, known bool) {
	if len(r.open)+len(r.waiting) > 0 || r.delivered+len(r.repeated) == 0 {
		return 0, nil, false
	}
	delivered, repeated = r.delivered, r.repeated
	r.delivered, r.repeated = 0, nil
	return delivered, repeated, true
}

// noteRepeated counts a fire that is sent again.
func (r *reconciler) noteRepeated(d *tracker.Doubt) {
	why := r.unprovable(d)
	if why == "" {
		why = "nodes or links changed"
	}
	if r.repeated == nil {
		r.repeated = map[string]int{}
	}
	r.repeated[why]++
}

func (r *reconciler) begin() error {
	if err := r.dispatcher.unrouted.open(); err != nil {
		return err
	}
	all, err := r.entries.Doubts() // of earlier epochs: this one has fired nothing
	if err != nil {
		return err
	}
	if r.unjournaled, err = r.entries.UnjournaledBurials(); err != nil {
		return err
	}
	if r.copied, err = r.copies.readCopies(); err != nil {
		return err
	}
	r.begun, r.retried, r.from = true, map[dispatch]bool{}, r.entries.State().WitnessFrom
	for _, d := range all {
		r.open = append(r.open, d)
		if d.Entry != nil && d.ID.Stream == wire.DeadJobs {
			r.retried[dispatchOf(d.Entry.Burial)] = true
		}
	}
	return r.reentry.find(r.open, r.copied, r.dispatcher.unrouted)
}

// reconcileOne settles a fire or burial, unless the journal settled it meanwhile: its leader may
// live on, and journal that it was confirmed or returned.
func (r *reconciler) reconcileOne(now time.Time, d *tracker.Doubt) error {
	if open, err := r.entries.InDoubt(d.Epoch, d.Seq); err != nil || !open {
		return err
	}
	returned, err := r.entries.HasReturned(d.Epoch, d.Seq)
	if err != nil {
		return err
	}
	d.Returned = d.Returned || returned
	at := entryOf(d)
	burial := (wire.Dispatch{Op: d.Op}).Burial()
	arrived := false
	if burial {
		arrived, err = r.isBuried(d)
	} else {
		arrived = r.isCopied(d) || r.verdict == stands && r.provable(d)
		if !arrived {
			arrived, err = r.isReported(d)
		}
	}
	if err != nil {
		return err
	}
	if !arrived {
		r.dispatcher.unrouted.needsNoCopy(dispatchInDoubt(d))
	}
	switch {
	case arrived && d.Op == wire.OpBuried && d.Entry != nil:
		return r.journalKilled(now, d)
	case arrived:
		r.delivered++
		return r.ledger.Record(now, settlement(wire.TypeDelivered, d), at)
	case burial && d.Entry != nil:
		return r.dispatcher.takeBack(now, d)
	case r.ledger.Suspects()[at] >= maxKills && d.Entry != nil:
		return r.dispatcher.park(now, d.Entry, r.dispatcher.deathReason(at))
	case r.ledger.Suspects()[at] >= maxKills:
		return r.listAsRejected(now, d, r.dispatcher.deathReason(at))
	}
	if !burial {
		r.noteRepeated(d)
	}
	return r.refire(now, d, burial)
}

// settlement returns the record that says what became of a fire or burial in doubt.
func settlement(what string, d *tracker.Doubt) wire.JournalRecord {
	return wire.JournalRecord{Type: what, Stream: d.ID.Stream, Offset: d.ID.Offset, JID: d.JID, FiredEpoch: d.Epoch, Seq: d.Seq}
}

// journalKilled journals that an entry was killed, for a leader that ended between the burial and
// this record. Without it the entry is no part of its operation, and the kill cannot be undone.
func (r *reconciler) journalKilled(now time.Time, d *tracker.Doubt) error {
	record := settlement(wire.TypeDelivered, d)
	_, e, err := r.load(entryOf(d))
	if err != nil && !errors.Is(err, errFetch) {
		return err
	}
	if e != nil {
		record = killed(entryOf(d), d.JID, e)
		record.Actor, record.Command, record.InOperation = d.Actor, d.Command, d.Bulk
		dead, err := r.amongDead(e.JID, madeBy(wire.Through{Epoch: d.Epoch, Through: d.Seq}))
		if err != nil {
			return err
		}
		if dead != nil { // else it was acted upon already
			record.DiedAt = wire.Seconds(dead.At)
		}
	}
	return r.ledger.Record(now, record, entryOf(d))
}

func entryOf(d *tracker.Doubt) ledger.EntryID { return ledger.ID(d.ID.Stream, d.ID.Offset) }

// listAsRejected gives up a job that the broker does not accept and of which only the journal has
// the body.
func (r *reconciler) listAsRejected(now time.Time, d *tracker.Doubt, reason string) error {
	const kept = 64 << 10
	r.counters.Refused++
	record := wire.JournalRecord{Type: wire.TypeRejected, Queue: wire.Journal, Reason: reason, Count: int64(len(d.Body)),
		Body: d.Body[:min(len(d.Body), kept)]}
	if err := r.ledger.Record(now, record, ledger.EntryID{}); err != nil {
		return err
	}
	return r.ledger.Record(now, settlement(wire.TypeDelivered, d), entryOf(d))
}

// isBuried reports whether a burial in doubt arrived. The view has read its stream to the end.
func (r *reconciler) isBuried(d *tracker.Doubt) (bool, error) {
	jid := ""
	if d.Entry != nil {
		jid = d.Entry.JID
	} else if e, err := wire.ParseEntry(wire.DeadJobs, 0, d.Body); err == nil {
		jid = e.JID
	}
	if r.retried[dispatchInDoubt(d)] {
		return true, nil
	}
	dead, err := r.amongDead(jid, madeBy(wire.Through{Epoch: d.Epoch, Through: d.Seq}))
	return dead != nil, err
}

// refire sends again what may not have arrived.
func (r *reconciler) refire(now time.Time, d *tracker.Doubt, burial bool) error {
	o := purpose{op: wire.OpRefired, command: d.Command, doubt: d}
	if d.Entry != nil {
		old, e, err := r.load(entryOf(d))
		if errors.Is(err, errFetch) { // a new witness would take it for delivered
			return r.dispatcher.takeBack(now, d)
		}
		if err != nil || old == nil {
			return err
		}
		if e == nil {
			return r.dispatcher.park(now, old, "its record cannot be read any more")
		}
		return r.dispatcher.fire(now, old, e, o)
	}
	job, err := wire.ParseJob(d.Body)
	if burial {
		o.op = d.Op
		var e wire.Entry
		e, err = wire.ParseEntry(wire.DeadJobs, 0, d.Body)
		job = e.Job
	}
	if err != nil { // its body was not readable when it was fired either: it is no job
		return r.ledger.Record(now, settlement(wire.TypeDelivered, d), entryOf(d))
	}
	return r.refireBody(now, d, &job, o, burial)
}

// refireBody sends again a job of which only the journal has the body.
func (r *reconciler) refireBody(now time.Time, d *tracker.Doubt, job *wire.Job, o purpose, burial bool) error {
	entry := &tracker.Stored{Stream: d.ID.Stream, Offset: d.ID.Offset, Queue: job.Queue, Class: job.Class}
	if !burial {
		entry.Gated, entry.LimitKey = r.entries.Governed.Gates(job)
		entry.HoldsKeyOf(job)
	}
	counts := r.dispatcher.limits.take(now, entry)
	again := &dispatched{tag: d.JID, doubt: d, buries: burial, Publish: &ledger.Publish{Entry: entryOf(d), Build: func(seq, confirmed int64) wire.Message {
		headers := wire.Dispatch{Op: o.op, Stream: d.ID.Stream, Offset: d.ID.Offset, JIDTag: d.JID, Epoch: r.ledger.Epoch(), Seq: seq, Confirmed: confirmed}
		if burial {
			return wire.Bury(job, headers, d.Body, now)
		}
		return wire.Fire(job, counts.addTo(headers), d.Body, now)
	}}}
	if !burial {
		again.queue = r.dispatcher.queues.of(job.Queue)
	}
	err := r.dispatcher.send(again)
	if errors.Is(err, broker.ErrUnpublishable) {
		return r.listAsRejected(now, d, err.Error())
	}
	return err
}

// isCopied reports whether a fire in doubt found no queue, and so arrived in jobs.gated.
func (r *reconciler) isCopied(d *tracker.Doubt) bool {
	return r.copied[dispatchInDoubt(d)]
}

// dropSuspects forgets the suspects that are neither pending nor in doubt.
func (r *reconciler) dropSuspects(time.Time) error {
	for at := range r.ledger.Suspects() {
		pending, err := r.entries.Get(at.Stream, at.Offset)
		if err != nil {
			return err
		}
		if pending == nil && r.ledger.Busy(at) == nil {
			delete(r.ledger.Suspects(), at)
		}
	}
	return nil
}

// journalBurials journals the burials that the journal lacks. Their entries would be pending beside
// the dead jobs that they became.
func (r *reconciler) journalBurials(now time.Time) error {
	for len(r.unjournaled) > 0 && r.ledger.Room() {
		dead := r.unjournaled[0]
		r.unjournaled = r.unjournaled[1:]
		if err := r.journalBurial(now, dead); err != nil {
			return err
		}
	}
	return nil
}

// journalBurial journals of which entry a dead job was made.
func (r *reconciler) journalBurial(now time.Time, dead *tracker.Stored) error {
	d := dead.Burial
	at := ledger.ID(d.Stream, d.Offset)
	_, e, err := r.load(at)
	if err != nil && !errors.Is(err, errFetch) {
		return err
	}
	if r.ledger.Busy(at) != nil {
		return nil // it was buried twice, and the first burial is journaled
	}
	// A fire of it that is in doubt was returned before.
	r.open = slices.DeleteFunc(r.open, func(o tracker.Doubt) bool { return entryOf(&o) == at })
	record := wire.JournalRecord{Type: wire.TypeExpired, Stream: at.Stream, Offset: at.Offset, JID: d.JIDTag}
	if d.Op == wire.OpBuried {
		record.Type, record.DiedAt = wire.TypeKilled, wire.Seconds(dead.At)
		record.Actor, record.Command, record.InOperation = d.Actor, d.Command, d.Operation
		if e != nil {
			record.Entry = e.Raw
		}
	}
	return r.ledger.Record(now, record, at)
}
