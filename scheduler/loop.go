package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// loop drives the core. It calls leading once the core leads.
func (l *leadership) loop(ctx context.Context, leading func()) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	led := false
	for ctx.Err() == nil {
		changed := l.s.view.Changed()
		if err := l.noteRecreated(); err != nil {
			return err
		}
		phase := l.core.phase
		var wake time.Time
		err := l.steadily(func() (err error) {
			if now := time.Now(); l.s.carryDue(now) {
				if err := l.core.beginCarry(l.s.linger(now)); err != nil {
					return err
				}
			}
			wake, err = l.step()
			return err
		})
		if err != nil {
			return err
		}
		if err := l.steadily(func() error { return l.assist(ctx) }); err != nil {
			return err
		}
		if l.core.phase != phase { // the next phase can begin now
			l.s.log.Debug("scheduler: next step of the epoch", "epoch", l.core.ledger.Epoch(), "step", l.core.phase)
			wake = time.Now()
		}
		if delivered, repeated, known := l.core.reconciled(); known {
			l.s.log.Info("scheduler: jobs were in flight when the last leader ended", "delivered", delivered, "dispatched_again", repeated)
		}
		if l.core.phase == phaseReconciled { // it awaits a ping
			wake = time.Now().Add(leaseLookEvery)
		}
		l.watchdog.Note(l.progress())
		l.report()
		if l.core.phase == phaseLeading && !led {
			led = true
			leading()
		}
		timer.Reset(max(0, time.Until(wake)))
		l.watchdog.Awaits()
		err = l.await(ctx, changed, l.commands(), timer)
		if l.watchdog.Acts(); err != nil {
			return err
		}
	}
	if err := context.Cause(ctx); errors.Is(err, errResigned) {
		return err
	}
	return l.retire(retireWithin)
}

// steadily has the core act on what the view shows. If the view was rolled back, it shows entries
// as pending that this leader has fired, and the epoch ends.
func (l *leadership) steadily(act func() error) error { return l.s.view.Steadily(l.rolledBack, act) }

// step has the core do what can be done now: nothing while the connection is blocked or the lock
// may be another's.
func (l *leadership) step() (wake time.Time, err error) {
	if !l.lock.mayPublish() {
		return time.Now().Add(leaseLookEvery), nil
	}
	if l.blocked() {
		l.core.routing.since = 0 // it is not known why a probe does not arrive
		return time.Now().Add(maxSleep), nil
	}
	l.pub.Batch(func() { wake, err = l.core.step(time.Now()) })
	return wake, err
}

// commands returns the channel of the commands, once they can be carried out: a delete must not
// overtake what the last leader did.
func (l *leadership) commands() <-chan wire.Delivery {
	if !l.mayAct() {
		return nil
	}
	return l.lock.commands
}

// mayAct reports whether the core can carry out a command now.
func (l *leadership) mayAct() bool {
	return l.core.phase == phaseLeading && l.core.ledger.Room() && !l.blocked() && l.lock.mayPublish()
}

func (l *leadership) blocked() bool {
	_, _, blocked := l.conn.Blocked()
	return blocked
}

// await waits for what comes next, and passes it to the core.
func (l *leadership) await(ctx context.Context, changed <-chan struct{}, commands <-chan wire.Delivery, timer *time.Timer) error {
	select {
	case <-ctx.Done():
	case <-l.conn.Done():
		return fmt.Errorf("scheduler: connection lost: %w", l.conn.Err())
	case <-l.prober.failed:
		return errMisrouted
	case d := <-l.decided:
		l.core.reconciler.decided(d.verdict, d.proof)
	case id := <-l.renewed:
		return l.core.rewitnessed(time.Now(), id)
	case gone := <-l.slots.gone:
		return l.steadily(func() error { return l.core.limits.freeGone(time.Now(), gone) })
	case v := <-l.silent.verdicts:
		return l.silentVerdict(v)
	case number := <-l.prober.arrivals:
		l.core.routing.arrived(number)
	case all := <-l.prober.unrouted:
		l.cameBack(all)
	case <-l.pub.Done():
		return fmt.Errorf("scheduler: the channel for deliveries is lost: %w", l.pub.Err())
	case <-l.lock.claim.Inbox.Done():
		return fmt.Errorf("scheduler: the lock is lost: %w", l.lock.claim.Inbox.Err())
	case confirms := <-l.pub.Confirms():
		err := l.steadily(func() error { return l.confirmed(confirms) })
		if errors.Is(err, view.ErrRolledBack) {
			l.acknowledged(confirms)
		}
		return err
	case d := <-commands:
		return l.steadily(func() error { return l.carryOut(d, commands) })
	case <-l.oldHold():
		l.core.copies.endHold()
	case b := <-l.binder.bound:
		l.core.queues.bound(time.Now(), b.queue, b.err)
		if b.err == nil {
			l.newer.ask(l, b.queue)
		}
	case r := <-l.governor.found:
		return l.steadily(func() error { return l.core.governed.found(time.Now(), r) })
	case fault := <-l.governor.tried:
		return l.steadily(func() error { return l.core.governed.tried(time.Now(), fault) })
	case u := <-l.unserved.found:
		l.core.limits.ahead.checked(time.Now(), u)
	case known := <-l.newer.found:
		l.newer.take(l, known)
	case do := <-l.mover.steps():
		return l.steadily(do)
	case <-changed:
	case <-timer.C:
	}
	return nil
}

// oldHold returns a channel that is closed when what is in jobs.gated may be fired, nil if it may.
func (l *leadership) oldHold() <-chan struct{} {
	if !l.core.copies.held {
		return nil
	}
	return l.oldQueue.ends
}

// confirmed passes confirms to the core.
func (l *leadership) confirmed(confirms []broker.Confirm) error {
	now := time.Now()
	for i, c := range confirms {
		l.trace.answered(c)
		if err := l.core.ledger.Confirmed(now, c.Tag, c.Ack); err != nil {
			l.acknowledged(confirms[i+1:])
			return err
		}
	}
	return nil
}

// cameBack passes fires that found no queue to the core. None: no more come back.
func (l *leadership) cameBack(fires []wire.Message) {
	if len(fires) == 0 {
		l.core.unrouted.off()
	}
	for _, m := range fires {
		l.core.unrouted.cameBack(m)
	}
}

// acknowledged passes acks to the core of an epoch that ends. An ack publishes nothing.
func (l *leadership) acknowledged(confirms []broker.Confirm) {
	for _, c := range confirms {
		l.trace.answered(c)
		if c.Ack {
			_ = l.core.ledger.Confirmed(time.Now(), c.Tag, true)
		}
	}
}

// assist does on the broker what the core needs between its phases.
func (l *leadership) assist(ctx context.Context) error {
	switch l.core.phase {
	case phaseRouting:
		return l.prober.verifyRouting(ctx)
	case phaseWitness:
		return l.checkWitness(ctx)
	case phaseReconciled:
		if !l.lock.stillHolds() {
			return nil
		}
		id, err := l.witness.renew(ctx)
		if err != nil {
			return err
		}
		l.s.readBindings(ctx)
		l.core.copies.held = l.oldQueue.exists(ctx)
		return l.core.begin(time.Now(), id)
	case phaseLeading:
		if l.core.ledger.Worn() {
			l.s.resignFor(errHole)
		}
		l.silent.ask(l)
	}
	return nil
}

var (
	// errRecreated ends an epoch: the next one begins with a barrier in the new stream.
	errRecreated = errors.New("scheduler: an entry stream was deleted and created again")
	// errEmptied ends an epoch: the next barrier shows whether the stream is another one.
	errEmptied = errors.New("scheduler: a stream has nothing any more")
	// errDeleted ends an epoch: the next one declares the stream. Nothing may fire without a
	// journal.
	errDeleted = errors.New("scheduler: a stream was deleted")
)

// noteRecreated passes on which streams were declared again, and ends the epoch if only the barrier
// of another one can show that.
func (l *leadership) noteRecreated() error {
	for _, stream := range l.s.view.Missing() {
		if stream == wire.Journal || slices.Contains(wire.EntryStreams, stream) {
			return fmt.Errorf("%w: %s", errDeleted, stream)
		}
	}
	for _, stream := range l.s.view.Emptied() {
		if l.core.phase > phaseCatchingUp && slices.Contains(leaderStreams, stream) {
			return fmt.Errorf("%w: %s", errEmptied, stream)
		}
	}
	for _, stream := range l.s.view.Recreated() {
		if l.core.phase > phaseCatchingUp && slices.Contains(wire.EntryStreams, stream) {
			return fmt.Errorf("%w: %s", errRecreated, stream)
		}
		if err := l.core.opening.isRecreated(time.Now(), stream); err != nil {
			return err
		}
	}
	return nil
}

// retireWithin is how long an orderly stop waits for confirms. After half of it, what is confirmed
// is journaled although the window has not drained: some publishes are never answered.
const retireWithin = 3 * time.Second

// retireLost is the same where the journal has lost records.
const retireLost = 500 * time.Millisecond

// retire waits for confirms and journals what is confirmed, so that the next leader finds nothing
// else in doubt. It returns when the view has read that: if the journal loses these records later,
// that is noticed.
func (l *leadership) retire(within time.Duration) error {
	deadline, says := time.NewTimer(within), time.NewTimer(within/2)
	defer deadline.Stop()
	defer says.Stop()
	say := l.core.announcer.announce
	for {
		changed := l.s.view.Changed()
		if l.core.ledger.Epoch() >= 0 {
			if err := say(time.Now()); err != nil {
				return err
			}
		}
		if l.core.ledger.Open() == 0 && l.core.announcer.hasReadBack() {
			return nil
		}
		select {
		case <-changed:
		case confirms := <-l.pub.Confirms():
			if err := l.confirmed(confirms); err != nil {
				return err
			}
		case all := <-l.prober.unrouted:
			l.cameBack(all)
		case <-l.pub.Done(): // and all that it knew has been read
			return l.pub.Err()
		case <-says.C:
			say = l.core.announcer.announceAll
			l.core.announcer.passes = -1 // the record that said it may have no answer
		case <-deadline.C:
			return nil
		}
	}
}

// commandsAtOnce is how many commands are carried out before the core continues.
const commandsAtOnce = 64

// carryOut carries out a command, and those that wait behind it. What they publish is sent together.
func (l *leadership) carryOut(d wire.Delivery, more <-chan wire.Delivery) (err error) {
	l.pub.Batch(func() {
		for n := 1; ; n++ {
			if err = l.command(d); err != nil || n == commandsAtOnce || !l.mayAct() {
				return
			}
			select {
			case d = <-more:
			default:
				return
			}
		}
	})
	return err
}

// command parses a command, and answers it when the core knows what became of it.
func (l *leadership) command(d wire.Delivery) error {
	answer := func(r wire.Reply) { l.lock.responder.send(d, r) }
	cmd, err := wire.ParseCommand(d.Body)
	if err == nil && cmd.Command == wire.CommandNote && !l.core.entries.Trusts(&wire.Record{UserID: d.UserID}) {
		err = fmt.Errorf("command %s is for sidecars only", cmd.Command) // others could forge notes
	}
	if err != nil {
		answer(badRequest(err.Error()))
		return nil
	}
	cmd.Actor = l.actor(d, cmd)
	l.s.log.Debug("scheduler: command", "jid", cmd.JID, "command", cmd.Command, "stream", cmd.Stream, "queue", cmd.Queue, "actor", cmd.Actor, "id", cmd.ID)
	if cmd.Command == wire.CommandMoveType {
		l.mover.command(cmd, answer)
		return nil
	}
	return l.core.command(time.Now(), cmd, answer)
}

// actor returns the user that the broker names as the sender. The sidecar's own account may name
// another: the user of the REST API.
func (l *leadership) actor(d wire.Delivery, cmd wire.Command) string {
	switch {
	case d.UserID == "":
		return "unverified"
	case d.UserID == l.conn.User() && cmd.Actor != "":
		return cmd.Actor
	}
	return d.UserID
}

// reportEvery bounds how often the status is updated.
const reportEvery = 50 * time.Millisecond

// report updates the status.
func (l *leadership) report() {
	c := l.core
	if time.Since(l.reportedAt) < reportEvery && c.phase == phaseLeading {
		return
	}
	l.reportedAt = time.Now()
	reason, _, _ := l.conn.Blocked()
	held, silent, inDoubt := c.queues.heldQueues(), c.queues.silentQueues(), c.inDoubt()
	l.s.phase(c.phase.String())
	l.s.setStatus(func(st *Status) {
		st.Leader, st.Epoch, st.Unconfirmed, st.Overdue = c.phase == phaseLeading, c.ledger.Epoch(), c.ledger.Open(), len(c.queues.ring)
		st.Blocked, st.Held, st.LastLate = reason, held, c.dispatcher.late
		st.Silent, st.InDoubt = silent, inDoubt
		n := &st.Counters
		n.Fired, n.Returned, n.Refused, n.Commands = n.Fired+c.counters.Fired, n.Returned+c.counters.Returned,
			n.Refused+c.counters.Refused, n.Commands+c.counters.Commands
		n.FireDelays.add(&c.counters.FireDelays)
		n.Confirms.add(&c.counters.Confirms)
		n.Ticks.add(&c.counters.Ticks)
		n.SlotsFreed.add(&c.counters.SlotsFreed)
		n.Decided.add(&c.counters.Decided)
		n.Claims.Run, n.Claims.Dropped = n.Claims.Run+c.counters.Claims.Run, n.Claims.Dropped+c.counters.Claims.Dropped
	})
	if lost := c.counters.CopiesLost; lost > 0 {
		l.s.log.Warn("scheduler: the broker had confirmed jobs without a queue, and has lost them; they are published again", "stream", wire.Gated, "jobs", lost)
	}
	*c.counters = Counters{}
}
