package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/wire"
)

// term of one leadership: what the loop needs beside the core.
type leadership struct {
	s        *Scheduler
	conn     *broker.Conn
	pub      *broker.Publisher
	inbox    *broker.Consumer
	replier  *replier
	core     *core
	moved    time.Time // when something was last confirmed or folded
	oldest   uint64    // tag of the publish that has waited longest for its confirm
	oldestAt time.Time
	told     time.Time // when the status was last updated
	lookout  *lookout

	readLater func(from int64, each func(*wire.Record) error) *reading
}

// errResigned says that a leader gave up because it could not do its work.
var errResigned = errors.New("scheduler: resigned")

// lead is one epoch.
func (s *Scheduler) lead(ctx context.Context, conn *broker.Conn, inbox *broker.Consumer) error {
	pub, err := conn.Publisher(ctx)
	if err != nil {
		return err
	}
	if journals := s.entries.State().Journals; journals != s.journals {
		s.known, s.journals = nil, journals // it was about a journal that is gone
	}
	l := &leadership{s: s, conn: conn, pub: pub, replier: newReplier(s.cfg.Broker, s.log), inbox: inbox, moved: time.Now(), lookout: newLookout()}
	l.core = newCore(s.entries, pub, setup{
		identity: s.cfg.Identity + "/" + random(), onGap: s.cfg.OnGap, base: conn.Features().StreamOffsetBase, known: s.known, suspects: s.suspects,
		deadMax: int64(s.cfg.DeadMax), deadAge: s.cfg.DeadAge, pace: usualPace,
		patience: l.patience, probed: l.lookout.queue,
		journal: func(from, below int64, each func(*wire.Record) error) error {
			return l.readJournal(ctx, from, below, each)
		},
		readLater: func(from int64, each func(*wire.Record) error) *reading { return l.readLater(from, each) },
		mayRefuse: s.mayRefuse, fetch: func(stream string, offset int64) ([]byte, error) { return l.body(ctx, stream, offset) },
	})
	s.setStatus(func(st *Status) { st.Counters.Epochs++ })
	s.log.Info("scheduler: elected", "identity", s.cfg.Identity)
	ended, cancel := context.WithCancel(ctx)
	g, gctx := errgroup.WithContext(ended)
	l.readLater = l.background(gctx, g)
	g.Go(func() error {
		defer cancel()
		err := l.loop(ctx, func() {
			g.Go(func() error { return l.replier.run(gctx) })
			g.Go(func() error { return l.watchProbes(gctx) })
			g.Go(func() error { return s.reroute(gctx, conn, l.lookout.alarm) })
			g.Go(func() error { return s.bury(gctx, conn) })
			g.Go(func() error { return s.maintain(gctx, conn) })
			g.Go(func() error { return s.rollUp(gctx, conn) })
		})
		if errors.Is(err, broker.ErrLost) {
			l.lastWords()
		}
		return err
	})
	err = g.Wait()
	s.remember(l.core, provoked(err) || provoked(pub.Err()) || provoked(conn.Err()))
	s.setStatus(func(st *Status) { st.Leader, st.Epoch, st.Held, st.Unconfirmed = false, -1, nil, 0 })
	s.log.Info("scheduler: no longer the leader", "epoch", l.core.epoch, "reason", err)
	return err
}

// provoked tells whether a message may be why the broker ended a channel or connection. That an exchange is missing is no message's fault.
func provoked(err error) bool { return broker.Provoked(err) && !broker.IsMissing(err) }

// lastWordsWithin bounds how long it may take until it is known why a channel or connection ended.
const lastWordsWithin = time.Second

// lastWords reads what the broker had confirmed before it ended the channel, so that nobody need doubt it. Whoever published just then
// has learnt that it ended, and not yet why.
func (l *leadership) lastWords() {
	limit := time.NewTimer(lastWordsWithin)
	defer limit.Stop()
	for {
		select {
		case confirms := <-l.pub.Confirms():
			l.acknowledged(confirms)
		case <-l.pub.Done():
			return
		case <-limit.C:
			return
		}
	}
}

// remember keeps what the next epoch of this process can use. If the broker ended this one over something that was sent, one of the
// entries in flight may be why.
func (s *Scheduler) remember(c *core, provoked bool) {
	s.known = c.through()
	s.suspects = c.suspects
	if !provoked {
		return
	}
	for _, at := range c.inFlight() {
		s.suspects[at]++
	}
}

// loop drives the core. leading is called once it leads.
func (l *leadership) loop(ctx context.Context, leading func()) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	led := false
	for ctx.Err() == nil {
		changed := l.s.view.Changed()
		if err := l.noteRecreated(); err != nil {
			return err
		}
		if now := time.Now(); l.s.carryDue(now) {
			if err := l.core.beginCarry(l.s.linger(now)); err != nil {
				return err
			}
		}
		phase := l.core.phase
		wake, err := l.step()
		if err != nil {
			return err
		}
		if err := l.assist(ctx); err != nil {
			return err
		}
		if l.core.phase != phase { // nothing else need happen before the next has its turn
			wake = time.Now()
		}
		l.report()
		if l.core.phase == phaseLeading && !led {
			led = true
			leading()
		}
		timer.Reset(max(0, time.Until(wake)))
		if err := l.await(ctx, changed, l.commands(), timer); err != nil {
			return err
		}
	}
	return l.retire()
}

// step has the core do what can be done now. While the broker takes no publishes that is nothing.
func (l *leadership) step() (wake time.Time, err error) {
	if l.blocked() {
		l.core.way.since = 0 // nobody can tell why a probe does not arrive
		return time.Now().Add(maxSleep), nil
	}
	l.pub.Together(func() { wake, err = l.core.step(time.Now()) })
	return wake, err
}

// commands is where commands come from, once they can be carried out: a delete must not overtake what the last leader did.
func (l *leadership) commands() <-chan wire.Delivery {
	if l.core.phase != phaseLeading || !l.core.room() || l.blocked() {
		return nil
	}
	return l.inbox.Deliveries()
}

func (l *leadership) blocked() bool {
	_, _, blocked := l.conn.Blocked()
	return blocked
}

// await waits for whatever comes next, and hands it to the core.
func (l *leadership) await(ctx context.Context, changed <-chan struct{}, commands <-chan wire.Delivery, timer *time.Timer) error {
	select {
	case <-ctx.Done():
	case <-l.conn.Done():
		return fmt.Errorf("scheduler: connection lost: %w", l.conn.Err())
	case <-l.lookout.astray:
		return errAstray
	case number := <-l.lookout.proven:
		l.core.proven(number)
	case <-l.pub.Done():
		return fmt.Errorf("scheduler: firing channel lost: %w", l.pub.Err())
	case <-l.inbox.Done():
		return fmt.Errorf("scheduler: the lock is lost: %w", l.inbox.Err())
	case confirms := <-l.pub.Confirms():
		return l.confirmed(confirms)
	case d, open := <-commands:
		if open {
			return l.command(d)
		}
	case <-changed:
		l.moved = time.Now()
	case <-timer.C:
		return l.checkStuck()
	}
	return nil
}

// confirmed hands confirms to the core.
func (l *leadership) confirmed(confirms []broker.Confirm) error {
	l.moved = time.Now()
	for i, c := range confirms {
		if err := l.core.confirmed(l.moved, c.Tag, c.Ack); err != nil {
			l.acknowledged(confirms[i+1:])
			return err
		}
	}
	return nil
}

// acknowledged hands to the core of an epoch that ends what need not be doubted. An ack publishes nothing.
func (l *leadership) acknowledged(confirms []broker.Confirm) {
	for _, c := range confirms {
		if c.Ack {
			_ = l.core.confirmed(time.Now(), c.Tag, true)
		}
	}
}

// assist does what the core needs done on the broker between its phases.
func (l *leadership) assist(ctx context.Context) error {
	switch l.core.phase {
	case phaseWay:
		return l.checkWay(ctx)
	case phaseWitness:
		l.s.readQueues(ctx) // it may have stood by for days, and what may have been refused is fired again
		intact, err := l.witnessStands(ctx)
		if err != nil {
			return err
		}
		l.core.witnessed(intact)
	case phaseSettled:
		name, err := l.newWitness(ctx)
		if err != nil {
			return err
		}
		return l.core.settled(time.Now(), name)
	default:
		return nil
	}
	return nil
}

func (l *leadership) witnessStands(ctx context.Context) (bool, error) {
	name := l.s.entries.State().Witness
	if name == "" {
		return false, nil
	}
	return l.conn.QueueExists(ctx, name)
}

// newWitness declares a witness, where the one there was is gone.
func (l *leadership) newWitness(ctx context.Context) (string, error) {
	if l.core.settling.intact {
		return l.s.entries.State().Witness, nil
	}
	name := witnessName()
	err := l.conn.DeclareWitness(ctx, name)
	if errors.Is(err, broker.ErrRefused) {
		l.s.log.Warn("scheduler: the broker takes no non-durable queues: after a crash of the leader doubtful jobs are fired again", "error", err)
		return "", nil
	}
	return name, err
}

var (
	// errRecreated ends an epoch: the next begins with a barrier in the stream that was made anew.
	errRecreated = errors.New("scheduler: an entry stream was deleted and made anew")
	// errDeleted ends an epoch: the next begins with the topology. Without a journal nothing must be fired.
	errDeleted = errors.New("scheduler: a stream was deleted")
)

// noteRecreated tells the core of streams that the view found to be made anew.
func (l *leadership) noteRecreated() error {
	for _, stream := range l.s.view.Missing() {
		if stream == wire.Journal || slices.Contains(wire.EntryStreams, stream) {
			return fmt.Errorf("%w: %s", errDeleted, stream)
		}
	}
	for _, stream := range l.s.view.Recreated() {
		if l.core.phase > phaseCatching && slices.Contains(wire.EntryStreams, stream) {
			return fmt.Errorf("%w: %s", errRecreated, stream)
		}
		if err := l.core.isRecreated(time.Now(), stream); err != nil {
			return err
		}
	}
	return nil
}

// maxStuck is how long a leader may get nothing done that the broker does not prevent.
const maxStuck = 30 * time.Second

// checkStuck resigns where nothing moves: another sidecar may be better off.
func (l *leadership) checkStuck() error {
	if _, _, blocked := l.conn.Blocked(); blocked {
		l.moved, l.oldestAt = time.Now(), time.Now()
		return nil
	}
	if tag, any := l.core.oldest(); !any || tag != l.oldest {
		l.oldest, l.oldestAt = tag, time.Now()
	} else if time.Since(l.oldestAt) > maxStuck { // RabbitMQ forgets to answer when a stream's process dies
		return fmt.Errorf("%w: a publish was neither confirmed nor refused within %s", errResigned, maxStuck)
	}
	waiting := l.core.phase != phaseLeading || len(l.core.flight) > 0 || len(l.core.folding) > 0
	if !waiting {
		l.moved = time.Now()
	}
	if waiting && time.Since(l.moved) > maxStuck {
		return fmt.Errorf("%w: nothing was confirmed or read for %s while %s", errResigned, maxStuck, l.core.phase)
	}
	// A view that is far behind but reads on is no reason: another's would be no better, and what is due waits while they change.
	if stuck := l.s.view.StuckOf(ledBy...); stuck > maxStuck {
		return fmt.Errorf("%w: the view is behind, and has read nothing for %s", errResigned, stuck.Round(time.Second))
	}
	return nil
}

// retireWithin bounds how long an orderly stop waits for what is unconfirmed.
const retireWithin = 3 * time.Second

// retire waits for what is in flight, so that the next leader finds nothing doubtful.
func (l *leadership) retire() error {
	deadline := time.NewTimer(retireWithin)
	defer deadline.Stop()
	for len(l.core.flight) > 0 {
		select {
		case confirms := <-l.pub.Confirms():
			if err := l.confirmed(confirms); err != nil {
				return err
			}
			if len(l.core.flight) == 0 {
				if err := l.core.announce(time.Now()); err != nil {
					return err
				}
			}
		case <-l.pub.Done(): // and all that it knew has been read
			return l.pub.Err()
		case <-deadline.C:
			return nil
		}
	}
	return nil
}

// command reads a command and answers it when the core knows what became of it.
func (l *leadership) command(d wire.Delivery) error {
	answer := func(r wire.Reply) { l.replier.send(d, r) }
	cmd, err := wire.ParseCommand(d.Body)
	if err == nil && cmd.Command == wire.CommandNote && !l.core.entries.Trusts(&wire.Record{UserID: d.UserID}) {
		err = fmt.Errorf("command %s is for sidecars only", cmd.Command) // anybody else would have the journal say what was not done
	}
	if err != nil {
		answer(wire.Reply{Status: wire.StatusBad, Error: "bad_request", Reason: err.Error()})
	} else {
		cmd.Actor = l.actor(d, cmd)
		err = l.core.command(time.Now(), cmd, answer)
		if err != nil {
			return err
		}
	}
	return l.inbox.Ack(d.Tag, false)
}

// actor is who the broker says sent a command. The sidecar's own account may name another: the REST API's user.
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

// report shows what the core is doing.
func (l *leadership) report() {
	c := l.core
	if time.Since(l.told) < reportEvery && c.phase == phaseLeading {
		return
	}
	l.told = time.Now()
	reason, _, _ := l.conn.Blocked()
	held := c.lanes.heldQueues()
	l.s.phase(c.phase.String())
	l.s.setStatus(func(st *Status) {
		st.Leader, st.Epoch, st.Unconfirmed, st.Overdue = c.phase == phaseLeading, c.epoch, len(c.flight), len(c.lanes.ring)
		st.Blocked, st.Held, st.LastLate = reason, held, c.late
		n := &st.Counters
		n.Fired, n.Returned, n.Refused, n.Commands = n.Fired+c.counters.Fired, n.Returned+c.counters.Returned,
			n.Refused+c.counters.Refused, n.Commands+c.counters.Commands
		n.FireDelays.add(&c.counters.FireDelays)
		n.Confirms.add(&c.counters.Confirms)
	})
	c.counters = Counters{}
}
