package scheduler

import (
	"context"
	"errors"
	"math"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/streams"
	"github.com/millrace-jobs/millrace/wire"
)

// leadership is one epoch of this sidecar: what the loop needs beside the core.
type leadership struct {
	s        *Scheduler
	conn     *broker.Conn
	pub      *broker.Publisher
	lock     *candidate
	core     *core
	trace    *trace // nil unless the log has debug lines
	watchdog *watchdog
	prober   *prober
	queueWork
	mover    *mover
	oldQueue *oldQueue
	evidence
	background
	reportedAt time.Time // when the status was last updated
	rolledBack int       // how often the view had been, when this leadership began
}

// queueWork is what works on queues beside the loop.
type queueWork struct {
	binder   *binder
	governor *governor
	unserved *unservedWatch
}

// evidence is what the broker says about whether jobs arrived.
type evidence struct {
	witness    *witness
	decided    chan decision // about what earlier epochs left in doubt
	renewed    chan string   // a new witness, to be journaled
	oldWitness string        // of an older version, to be deleted
	proof      proof
	newer      newerProof
	silent     silentQueues
	slots      *slotAudit
}

// errResigned ends an epoch in which the leader could not do its work.
var errResigned = errors.New("scheduler: resigned")

func newLeadership(s *Scheduler, conn *broker.Conn, lock *candidate) *leadership {
	l := &leadership{s: s, conn: conn, pub: lock.claim.Publisher, lock: lock, queueWork: queueWork{newBinder(s, conn), newGovernor(s, conn), newUnservedWatch(conn, s.isBound)},
		watchdog: newWatchdog(time.Now, s.claimPatience(conn.Features())), rolledBack: s.view.RolledBack()}
	l.evidence = evidence{decided: make(chan decision), renewed: make(chan string), newer: newNewerProof(), silent: newSilentQueues(),
		witness: &witness{conn: conn, mgmt: s.mgmt, singleNode: s.cfg.SingleNode, log: s.log}}
	l.slots = &slotAudit{entries: s.entries, gone: make(chan []wire.HeldSlot), between: slotAuditPause}
	if s.mgmt != nil {
		l.slots.queues = s.mgmt.Queues
	}
	l.prober, l.mover, l.oldQueue = newProber(l), newMover(l), newOldQueue(l)
	return l
}

// setup returns the configuration of the core.
func (l *leadership) setup(ctx context.Context) setup {
	s := l.s
	return setup{
		identity: s.cfg.Identity + "/" + random(), onGap: s.cfg.OnGap, base: l.conn.Features().StreamOffsetBase, known: s.known, suspects: s.suspects,
		left:    l.lock.left,
		deadMax: int64(s.cfg.DeadMax), deadAge: s.cfg.DeadAge, pace: usualPace,
		window:       func(queue string) int { return l.proof.window(queue) },
		certain:      func(queue string) bool { return l.proof.alone && l.proof.of(queue) },
		probeTimeout: l.prober.timeout, probeQueue: l.prober.queue, follow: l.prober.followed.Store,
		journal: func(from, below int64, each func(*wire.Record) error) error {
			return l.readJournal(ctx, from, below, each)
		},
		readLater: func(from int64, each func(*wire.Record) error) *reading { return l.readLater(from, each) },
		isBound:   s.isBound, bind: l.binder.bind, hasRead: s.view.HasRead, govern: l.governor.govern, tryAlternate: l.governor.tryAlternate, slotsOf: s.cfg.Slots, watchUnserved: l.unserved.watch,
		answer: l.lock.responder.send,
		fetch:  func(stream string, offset int64) ([]byte, error) { return l.body(ctx, stream, offset) },
	}
}

// lead leads one epoch.
func (s *Scheduler) lead(ctx context.Context, conn *broker.Conn, lock *candidate) error {
	s.checkKnown()
	lock.asked = time.Time{}
	l := newLeadership(s, conn, lock)
	if err := conn.Probes().Declare(ctx, l.prober.queue); err != nil { // the record opened names it
		return err
	}
	port := ledger.Port(l.pub)
	if l.trace = newTrace(ctx, l.pub, s.log); l.trace != nil {
		port = l.trace
	}
	l.core = newCore(s.entries, port, l.setup(ctx))
	s.setStatus(func(st *Status) { st.Counters.Epochs++ })
	s.log.Info("scheduler: elected", "identity", s.cfg.Identity)
	ctx, resign := context.WithCancelCause(ctx)
	defer resign(nil)
	s.inEpoch(lock.lease, resign)
	defer s.inEpoch(nil, nil)
	defer s.entries.FollowGroups(false)
	defer s.entries.FollowKeys(false)
	err := l.run(ctx, resign)
	lock.left = l.core.leftovers()
	if cause := context.Cause(ctx); err == nil && (errors.Is(cause, errSmallLock) || errors.Is(cause, errHole)) {
		err = cause
	}
	if errors.Is(err, errSmallLock) {
		s.remakeLock(ctx, conn)
	}
	s.unanswered.note(l.core.phase, err)
	if l.core.ledger.Epoch() >= 0 {
		s.knownBy, s.knownAt = l.core.setup.identity, l.rolledBack
	}
	s.remember(l.core, provoked(err) || provoked(l.pub.Err()) || provoked(conn.Err()))
	s.setStatus(func(st *Status) {
		st.Leader, st.Epoch, st.Held, st.Unconfirmed, st.Silent, st.InDoubt = false, -1, nil, 0, 0, 0
	})
	s.log.Info("scheduler: no longer the leader", "epoch", l.core.ledger.Epoch(), "reason", err)
	return err
}

// run runs the loop and everything beside it until the epoch ends.
func (l *leadership) run(ctx context.Context, resign context.CancelCauseFunc) error {
	ended, cancel := context.WithCancel(ctx)
	g, gctx := errgroup.WithContext(ended)
	l.background = l.newBackground(gctx, g)
	g.Go(func() error { return l.watch(gctx, resign) })
	g.Go(func() error {
		defer cancel()
		err := l.loop(ctx, func() {
			for _, part := range l.parts() {
				g.Go(func() error { return part(gctx) })
			}
			l.beside(func(ctx context.Context) { l.witness.watch(ctx, l.renewed) })
			l.beside(l.dropOldWitness)
			l.mover.undoOthers()
		})
		switch {
		case errors.Is(err, broker.ErrLost):
			l.drainConfirms()
		case errors.Is(err, ledger.ErrLost):
			if fault := l.retire(retireLost); fault != nil {
				l.s.log.Warn("scheduler: cannot journal what is confirmed", "error", fault)
			}
			l.drainUnrouted()
		}
		return err
	})
	return g.Wait()
}

// parts returns what runs beside the loop while it leads.
func (l *leadership) parts() []func(context.Context) error {
	parts := []func(context.Context) error{l.prober.watchProbes, l.binder.run, l.governor.run, l.governor.alternate.run, l.unserved.run, l.slots.run}
	if l.core.copies.held {
		parts = append(parts, l.oldQueue.takeOver)
	}
	for _, part := range []func(context.Context, *broker.Conn) error{l.s.consumeDeadLetters, l.s.migrateDeadLetters, l.s.maintain, l.s.rollUp} {
		parts = append(parts, func(ctx context.Context) error { return part(ctx, l.conn) })
	}
	return parts
}

// provoked reports whether a message may be why the broker closed a channel or connection. A
// missing exchange is not.
func provoked(err error) bool { return broker.CausedByClient(err) && !broker.IsMissing(err) }

// lastWordsWithin is how long it may take until it is known why a channel or connection ended.
const lastWordsWithin = time.Second

// drainConfirms takes in what the broker had confirmed before it closed the channel, so that it is
// not in doubt. A publish that failed does not know yet why.
func (l *leadership) drainConfirms() {
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

// unroutedWithin is how long a fire that found no queue may take to come back, at the end of an
// epoch that another one of the same claim follows.
const unroutedWithin = 200 * time.Millisecond

// drainUnrouted takes in the fires that find no queue, for the next epoch.
func (l *leadership) drainUnrouted() {
	for limit := time.After(unroutedWithin); ; {
		select {
		case all := <-l.prober.unrouted:
			l.cameBack(all)
		case <-limit:
			return
		}
	}
}

// remember keeps what the next epoch of this process can use. If the broker ended this one over a
// message, one of the entries in flight may be why.
func (p *past) remember(c *core, provoked bool) {
	p.known = c.confirmedNow()
	if c.ledger.Epoch() >= 0 {
		p.unsaid.Store(true)
	}
	p.suspects = c.ledger.Suspects()
	if !provoked {
		return
	}
	for _, at := range c.ledger.Dispatched() {
		p.suspects[at]++
	}
}

// background runs things beside the loop, until the epoch ends.
type background struct {
	beside func(do func(ctx context.Context))
	// readLater reads the journal from an offset on, until each returns errRead.
	readLater func(from int64, each func(*wire.Record) error) *reading
}

// newBackground returns the background of an epoch. One part of the journal is read after the
// other, so that what is read ahead takes memory once.
func (l *leadership) newBackground(ctx context.Context, group *errgroup.Group) background {
	beside := func(do func(context.Context)) {
		group.Go(func() error {
			do(ctx)
			return nil
		})
	}
	turn := make(chan struct{}, 1)
	readLater := func(from int64, each func(*wire.Record) error) *reading {
		r := newReading()
		beside(func(ctx context.Context) {
			select {
			case turn <- struct{}{}:
				err := l.readJournal(ctx, from, math.MaxInt64, each)
				<-turn
				if err != nil && ctx.Err() == nil {
					l.s.log.Warn("scheduler: an undo of an operation waits", "error", err)
				}
				r.end(err)
			case <-ctx.Done():
				r.end(ctx.Err())
			}
		})
		return r
	}
	return background{beside, readLater}
}

// fetchWithin is how long one large body may take to come.
const fetchWithin = 10 * time.Second

// body returns the body of a record, nil if retention removed it.
func (l *leadership) body(ctx context.Context, stream string, offset int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchWithin)
	defer cancel()
	r, err := l.s.records.Fetch(ctx, stream, offset)
	if errors.Is(err, streams.ErrNotFound) {
		// A slow broker proves nothing: the record is gone only if its stream begins behind it.
		if first, ok, err := l.s.records.First(ctx, stream); err == nil && ok && first > offset {
			return nil, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return wire.EntryBody(&r)
}
