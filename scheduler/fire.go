package scheduler

import (
	"errors"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// purpose is what a fire or burial is for.
type purpose struct {
	op        string
	key       tracker.DueKey
	actor     string
	command   string
	operation string
	refused   func()                // is called if it is refused
	folded    func() error          // is called when the view has read it back
	confirmed func(*ledger.Publish) // is called when it is confirmed; its number stays open
	doubt     *tracker.Doubt        // of a fire that is sent again
}

// dispatched is a fire or burial on its way.
type dispatched struct {
	*ledger.Publish
	queue     *dueQueue      // where it counts, if anywhere
	buries    bool           // it is a burial: the queue is not what answers it
	due       tracker.DueKey // where the queue has its entry
	tag       string         // wire.JIDTag of the entry
	command   string         // the id of the command that asked for it
	operation string         // of a fire: the operation that it belongs to
	refused   func()         // is called if it comes back
	doubt     *tracker.Doubt // of a fire that is sent again: what an earlier leader left
	again     func()         // has its entry looked up again, where something fires it when it is due
}

// fire publishes an entry's job to its queue and the journal.
func (d *dispatcher) fire(now time.Time, s *tracker.Stored, e *wire.Entry, o purpose) error {
	body, err := e.Body(now)
	if err != nil {
		return d.unpublishable(now, s, o, err)
	}
	q := d.queues.of(e.Job.Queue)
	counts := d.limits.take(now, s)
	it := d.newDispatch(s, o, func(seq, confirmed int64) wire.Message {
		m := wire.Fire(&e.Job, counts.addTo(d.headers(s, o, seq, confirmed)), body, now)
		s.Provenance.AddTo(m.Headers)
		return m
	})
	it.queue, it.operation, it.Folded, it.doubt = q, o.operation, o.folded, o.doubt
	err = d.send(it)
	if errors.Is(err, broker.ErrUnpublishable) {
		d.limits.free(now, it.Entry)
		return d.unpublishable(now, s, o, err)
	}
	d.counters.Fired++
	q.trying = false
	return err
}

// bury publishes an entry's job to the dead jobs and the journal.
func (d *dispatcher) bury(now time.Time, s *tracker.Stored, e *wire.Entry, o purpose, class, message string) error {
	body, err := e.Dead(now, class, message)
	if err != nil {
		return d.unpublishable(now, s, o, err)
	}
	it := d.newDispatch(s, o, func(seq, confirmed int64) wire.Message {
		m := wire.Bury(&e.Job, d.headers(s, o, seq, confirmed), body, now)
		s.Provenance.AddTo(m.Headers)
		return m
	})
	it.buries = true
	if o.confirmed != nil {
		it.KeepOpen, it.Confirmed = true, func() { o.confirmed(it.Publish) }
	}
	if o.op == wire.OpExpired { // it is tried again in its queue's turn
		it.queue = d.queues.of(s.Queue)
	}
	if err = d.send(it); errors.Is(err, broker.ErrUnpublishable) {
		return d.unpublishable(now, s, o, err)
	}
	return err
}

// newDispatch returns a fire or burial that is not sent yet.
func (d *dispatcher) newDispatch(s *tracker.Stored, o purpose, build func(seq, confirmed int64) wire.Message) *dispatched {
	return &dispatched{Publish: &ledger.Publish{Entry: ledger.ID(s.Stream, s.Offset), Build: build}, due: o.key,
		tag: wire.JIDTag(s.JID), command: o.command, refused: o.refused, again: func() { d.lookFrom(s, o.key) }}
}

// headers returns what the headers of a fire or burial say.
func (d *dispatcher) headers(s *tracker.Stored, o purpose, seq, confirmed int64) wire.Dispatch {
	return wire.Dispatch{Op: o.op, Stream: s.Stream, Offset: s.Offset, JIDTag: wire.JIDTag(s.JID),
		Epoch: d.ledger.Epoch(), Seq: seq, Confirmed: confirmed, Actor: o.actor, Command: o.command, Operation: o.operation}
}

// unpublishable parks an entry whose message the broker does not accept.
func (d *dispatcher) unpublishable(now time.Time, s *tracker.Stored, o purpose, why error) error {
	if o.refused != nil {
		o.refused()
	}
	return d.park(now, s, why.Error())
}

// park parks an entry: it is shown with the reason, and not tried again by itself.
func (d *dispatcher) park(now time.Time, s *tracker.Stored, reason string) error {
	d.counters.Refused++
	delete(d.ledger.Suspects(), ledger.ID(s.Stream, s.Offset))
	r := recordOf(wire.TypeRefused, s)
	r.Error = reason
	return d.ledger.Record(now, r, ledger.ID(s.Stream, s.Offset))
}

// expire ends a job that is due too late.
func (d *dispatcher) expire(now time.Time, s *tracker.Stored, e *wire.Entry) error {
	if e.Job.Dead {
		key := tracker.DueKey{At: s.At, Stream: s.Stream, Offset: s.Offset}
		return d.bury(now, s, e, purpose{op: wire.OpExpired, key: key}, "expired", "the job was due after its expires_at")
	}
	return d.ledger.Record(now, recordOf(wire.TypeExpired, s), ledger.ID(s.Stream, s.Offset))
}

// send publishes a fire or burial.
func (d *dispatcher) send(it *dispatched) error {
	it.Dispatch = true
	if it.queue != nil && !it.buries {
		it.Queue = &it.queue.Queue
	}
	confirmed := it.Confirmed
	it.Confirmed = func() {
		if it.queue != nil {
			d.queues.accepted(it.queue)
		}
		if confirmed != nil {
			confirmed()
		}
	}
	it.Returned = func(now time.Time, why string, journaled bool) error { return d.returned(now, it, why, journaled) }
	it.Freed = func() {
		if it.queue != nil && it.again != nil {
			it.again()
		}
	}
	err := d.ledger.Send(it.Publish)
	if err != nil {
		return err
	}
	d.routing.sent(it.Seq(), it.Size, it.buries)
	if it.queue != nil {
		it.queue.unconfirmed++
	}
	return nil
}

// heldBecause is the reason why a queue is held, by what became of its fire.
var heldBecause = map[string]string{
	ledger.Nack:     "refused: the queue is full or down",
	ledger.NoAnswer: "no answer: the queue's node may be down",
}

// returned journals that a fire or burial was refused or had no answer. Its entry is pending again.
// Its queue is held, unless it has answered later fires. If the journal lacks the fire, it is not
// taken off what its operation has done.
func (d *dispatcher) returned(now time.Time, it *dispatched, why string, journaled bool) error {
	d.counters.Returned++
	d.instant.forget()
	d.routing.returned(it.Seq())
	d.unrouted.needsNoCopy(dispatch{wire.Through{Epoch: d.ledger.Epoch(), Through: it.Seq()}, it.tag})
	d.limits.free(now, it.Entry)
	if it.queue != nil {
		it.queue.unconfirmed--
		if why == ledger.NoAnswer && it.PassedOver() { // its queue answers
			it.queue.full = false
			d.queues.wakeAt(it.queue, time.Time{})
		} else {
			it.queue.bound, it.queue.recheck = false, true // it may be gone, or its node away
			d.queues.hold(it.queue, now, heldBecause[why], maxHold)
		}
	}
	r := wire.JournalRecord{Type: wire.TypeReturned, Seq: it.Seq(), Reason: why, Stream: it.Entry.Stream, Offset: it.Entry.Offset, JID: it.tag}
	if journaled {
		r.TookBack, r.InOperation = it.command, it.operation
	}
	err := d.ledger.TakeBack(now, it.Publish, r)
	if it.refused != nil {
		it.refused()
	}
	if err == nil && it.doubt != nil && !journaled { // the older fire is in doubt again
		err = d.takeBack(now, it.doubt)
	}
	return err
}

// takeBack journals that the entry of a fire or burial in doubt is pending again.
func (d *dispatcher) takeBack(now time.Time, doubt *tracker.Doubt) error {
	d.instant.forget()
	r := settlement(wire.TypeUnburied, doubt)
	r.TookBack = doubt.Command
	return d.ledger.Record(now, r, entryOf(doubt))
}

// dropRepeats journals which other pending entries repeat the publish of an entry.
func (d *dispatcher) dropRepeats(now time.Time, entries tracker.Lookup, s *tracker.Stored, e *wire.Entry) error {
	if repeated, err := d.repeated(entries, s); err != nil || !repeated {
		return err
	}
	twins, err := d.entries.Near(s.Stream, s.JID, s.Offset, maxTwins)
	if err != nil {
		return err
	}
	for _, twin := range twins {
		at := ledger.ID(twin.Stream, twin.Offset)
		if twin.Offset == s.Offset || d.ledger.Busy(at) != nil || twin.Parked != "" || !mayRepeat(s, twin) {
			continue
		}
		_, other, err := d.load(at)
		if err != nil && !errors.Is(err, errFetch) {
			return err
		}
		if other == nil || !wire.SamePublish(*e, *other) {
			continue
		}
		if err := d.ledger.Record(now, recordOf(wire.TypeDuplicate, twin), at); err != nil {
			return err
		}
	}
	return nil
}

// maxTwins is how many entries with one jid are compared, the nearest first. A publish is repeated
// soon after; a jid may stand for any number of entries.
const maxTwins = 32

// mayRepeat reports whether two entries may be the same publish, as far as the view knows.
func mayRepeat(a, b *tracker.Stored) bool {
	if a.Stream == wire.Gated { // two fires may find no queue for equal jobs of two entries
		return a.Queue == b.Queue && !a.IsCopy() && !b.IsCopy() || a.IsCopy() && a.Burial.Stream != "" &&
			a.Burial.Stream == b.Burial.Stream && a.Burial.Offset == b.Burial.Offset
	}
	return a.At.Equal(b.At) || a.Stream == wire.Retries && a.Attempt == b.Attempt
}

// withoutRepeats journals which entries repeat the first, and returns the others.
func (d *dispatcher) withoutRepeats(now time.Time, found []*tracker.Stored) (rest []*tracker.Stored, err error) {
	first := found[0]
	e, err := d.read(first)
	if err != nil && !errors.Is(err, errFetch) {
		return nil, err
	}
	if e != nil && d.ledger.Busy(ledger.ID(first.Stream, first.Offset)) == nil && first.Parked == "" {
		if err := d.dropRepeats(now, d.entries.Lookup, first, e); err != nil {
			return nil, err
		}
	}
	for _, s := range found {
		if it := d.ledger.Busy(ledger.ID(s.Stream, s.Offset)); it == nil || it.Dispatch || s == first {
			rest = append(rest, s)
		}
	}
	return rest, nil
}

// repeated reports whether several pending entries seem to have the jid of an entry.
func (d *dispatcher) repeated(entries tracker.Lookup, s *tracker.Stored) (bool, error) {
	if s.Stream != wire.ScheduledJobs || s.Leased != "" {
		return entries.Repeated(s.Stream, s.JID)
	}
	if err := d.instant.read(entries, s.At, d.steps); err != nil {
		return false, err
	}
	if d.instant.unknown {
		return entries.Repeated(s.Stream, s.JID)
	}
	return d.instant.repeated[s.JID], nil
}
