package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/streams"
	"github.com/millrace-jobs/millrace/wire"
)

const (
	// maxStuck is how long a leader may take for its next step, unless the broker prevents it.
	maxStuck = 30 * time.Second
	// openWithin is how long the broker may leave a publish unanswered before the epoch fires. What
	// it lost while a link between two nodes was broken is never answered.
	openWithin = 10 * time.Second
	// claimWithin is that for the claim, the first publishes of an epoch, if the next leader begins
	// immediately. If it waits for this one, giving up costs more: claimWithinSlowly.
	claimWithin       = time.Second
	claimWithinSlowly = 3 * time.Second
	// stuckEvery is how often that is checked.
	stuckEvery = 500 * time.Millisecond
)

// progress is what a leader has done and what it waits for. Two values differ if it made a step in
// between.
type progress struct {
	phase  phase
	read   int64  // how far the streams are read that the phase waits for
	folded int64  // the newest record of the epoch that the view has folded
	oldest uint64 // tag of the oldest unconfirmed publish, 0 if there is none
	waits  bool   // a next phase, or a record to be read back, is waited for
}

// watchdog notices a leader that makes no progress, so that it resigns and another sidecar tries.
// It is safe for concurrent use.
type watchdog struct {
	clock func() time.Time
	open  time.Duration // for the first publishes of the epoch

	mu        sync.Mutex
	last      progress
	steppedAt time.Time // when last changed
	phasedAt  time.Time // when last.phase changed
	oldestAt  time.Time // when last.oldest changed
	awaits    bool      // the leader takes answers as they come
	busyAt    time.Time // when it last stopped taking them
}

func newWatchdog(clock func() time.Time, open time.Duration) *watchdog {
	now := clock()
	return &watchdog{clock: clock, open: open, steppedAt: now, phasedAt: now, oldestAt: now}
}

// unanswered counts the epochs in a row whose claims were not answered in time, since any sidecar
// led.
type unanswered struct {
	epochs int
	led    int64 // the newest epoch in which anything was done, as far as was known
}

// patience returns how long the next claim may take, if the first may take so long. It doubles each
// time: the broker may be slow. led is the newest epoch in which anything was done: a broker that
// has answered another sidecar answers in time.
func (u *unanswered) patience(first time.Duration, led int64) time.Duration {
	if led != u.led {
		u.epochs, u.led = 0, led
	}
	return min(first<<min(u.epochs, 4), openWithin)
}

// note takes in why an epoch ended, and in which phase.
func (u *unanswered) note(p phase, err error) {
	if p <= phaseCatchingUp && errors.Is(err, errUnanswered) {
		u.epochs++
	}
}

// claimPatience returns how long the broker may leave the claim of the next epoch unanswered. Only
// RabbitMQ forgets one. If one node serves, another claim would wait for the same disk.
func (s *Scheduler) claimPatience(f broker.Features) time.Duration {
	state, first := s.entries.State(), claimWithin
	switch {
	case f.OneNodeServes:
		first = openWithin
	case s.waitsForPredecessor(f):
		first = claimWithinSlowly
	}
	led := state.LastLed
	if state.Led {
		led = state.Epoch
	}
	return s.unanswered.patience(first, led)
}

// errUnanswered ends an epoch: the broker has forgotten a publish, or is slow.
var errUnanswered = fmt.Errorf("%w: a publish was neither confirmed nor refused", errResigned)

// Note takes in how far the leader is.
func (w *watchdog) Note(p progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock()
	if p != w.last || !p.waits {
		w.steppedAt = now
	}
	if p.phase != w.last.phase {
		w.phasedAt = now
	}
	if p.oldest != w.last.oldest || p.oldest == 0 {
		w.oldestAt = now
	}
	w.last = p
}

// Acts notes that the leader does something that may take long, such as a question to the broker.
// It takes no answers meanwhile.
func (w *watchdog) Acts() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.awaits, w.busyAt = false, w.clock()
}

// Awaits notes that the leader takes answers again.
func (w *watchdog) Awaits() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := w.clock(); w.last.phase < phaseLeading && now.Sub(w.busyAt) >= stuckEvery {
		w.oldestAt = now
	}
	w.awaits = true
}

// Check returns errResigned if the leader has been stuck for longer than maxStuck. A leader whose
// connection is blocked is not stuck: no other sidecar could publish either.
func (w *watchdog) Check(blocked bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, patience := w.clock(), maxStuck
	switch {
	case w.last.phase == phaseLeading || !w.awaits: // its answers wait
	case w.last.phase <= phaseCatchingUp:
		patience = w.open
	default:
		patience = openWithin
	}
	switch {
	case blocked:
		w.steppedAt, w.oldestAt = now, now
	case w.last.oldest != 0 && now.Sub(w.oldestAt) > patience: // RabbitMQ may forget to answer
		return fmt.Errorf("%w within %s", errUnanswered, patience)
	case w.last.waits && now.Sub(w.steppedAt) > maxStuck:
		return fmt.Errorf("%w: no progress for %s while %s", errResigned, maxStuck, w.last.phase)
	}
	return nil
}

// Hesitates reports whether an epoch that does not fire yet has made no step since the last check.
// What it reads while it catches up is none: its own records may not be among that.
func (w *watchdog) Hesitates() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	since := w.steppedAt
	if w.last.phase <= phaseCatchingUp {
		since = w.phasedAt
	}
	return w.last.phase != phaseLeading && w.clock().Sub(since) >= stuckEvery
}

// askEndsEvery is how often a leader that fires asks where the streams end. If its readers are cut
// off, it hears of nothing new. The connections for that are kept from one time to the next.
const askEndsEvery = streams.KeepLink - time.Second

// progress returns how far this leader is. A view that lags but reads on makes progress: a failover
// would not make it faster.
func (l *leadership) progress() progress {
	c := l.core
	_, folded := c.entries.Progress()
	p := progress{phase: c.phase, folded: folded, waits: c.phase != phaseLeading || folded < c.ledger.Watermark()}
	p.oldest, _ = c.ledger.Oldest()
	streams := []string{wire.Journal}
	if c.phase == phaseCatchingUp && len(c.opening.unseen) > 0 {
		streams = c.opening.unseen // records of other streams are no progress
	}
	for _, stream := range streams {
		if at, err := c.entries.Position(stream); err == nil {
			p.read += at
		}
	}
	return p
}

// watch ends the epoch of a leader that makes no progress or no longer hears from the lock, also
// while the loop is stuck.
func (l *leadership) watch(ctx context.Context, resign context.CancelCauseFunc) error {
	ticks := time.NewTicker(stuckEvery)
	defer ticks.Stop()
	asked, canMove := time.Now(), !l.conn.Features().OneNodeServes
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
			if err := l.checkStuck(); err != nil {
				resign(err)
				return nil
			}
			switch {
			case !canMove:
			case l.watchdog.Hesitates():
				asked = time.Now()
				l.beside(func(ctx context.Context) { l.s.view.AskEnds(ctx, leaderStreams...) })
			case time.Since(asked) >= askEndsEvery:
				asked = time.Now()
				l.beside(func(ctx context.Context) {
					for _, stream := range leaderStreams { // by one connection to each node
						l.s.view.AskEnds(ctx, stream)
					}
				})
			}
		}
	}
}

// checkStuck returns an error if this leader is stuck: another sidecar may fare better.
func (l *leadership) checkStuck() error {
	blocked := l.blocked()
	if l.lock.lost(blocked) {
		return fmt.Errorf("%w: no ping came back through %s for %s", errResigned, wire.LeaderInbox, leaseEnds)
	}
	if err := l.watchdog.Check(blocked); err != nil || blocked {
		return err
	}
	if stuck := l.s.view.StalledFor(leaderStreams...); stuck > maxStuck {
		return fmt.Errorf("%w: the view is behind, and has read nothing for %s", errResigned, stuck.Round(time.Second))
	}
	return nil
}
