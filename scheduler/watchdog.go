package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

const (
	// maxStuck is how long a leader may take for its next step, unless the broker prevents it.
	maxStuck = 30 * time.Second
	// openWithin is how long the broker may leave a publish unanswered before the epoch fires. What
	// it lost while a link between two nodes was broken is never answered. openWithinAtFirst is
	// that for the first publishes of an epoch, unless those of the epoch before were not answered
	// in time either.
	openWithin        = 10 * time.Second
	openWithinAtFirst = time.Second
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
	oldestAt  time.Time // when last.oldest changed
	awaits    bool      // the leader takes answers as they come
	busyAt    time.Time // since when it did not, otherwise
}

func newWatchdog(clock func() time.Time, open time.Duration) *watchdog {
	return &watchdog{clock: clock, open: open, steppedAt: clock(), oldestAt: clock()}
}

// unanswered counts the epochs in a row whose first publishes were not answered in time.
type unanswered struct {
	epochs int
	last   time.Time
}

// forgetUnanswered is when they are forgotten: another sidecar may have led since.
const forgetUnanswered = time.Minute

// patience returns how long the first publishes of the next epoch may take. It doubles each time:
// the broker may be slow.
func (u *unanswered) patience(now time.Time) time.Duration {
	if now.Sub(u.last) > forgetUnanswered {
		u.epochs = 0
	}
	return min(openWithinAtFirst<<min(u.epochs, 4), openWithin)
}

func (u *unanswered) note(now time.Time, err error) {
	if errors.Is(err, errUnanswered) {
		u.epochs, u.last = u.epochs+1, now
	}
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
	if now := w.clock(); w.last.phase <= phaseCatchingUp && now.Sub(w.busyAt) >= stuckEvery {
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
	case w.last.phase <= phaseCatchingUp && w.awaits:
		patience = w.open
	case w.last.phase != phaseLeading:
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
func (w *watchdog) Hesitates() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last.phase != phaseLeading && w.clock().Sub(w.steppedAt) >= stuckEvery
}

// askEndsEvery is how often a leader asks where the streams end. If its readers are cut off, it
// hears of nothing new.
const askEndsEvery = 5 * time.Second

// progress returns how far this leader is. A view that lags but reads on makes progress: a failover
// would not make it faster.
func (l *leadership) progress() progress {
	c := l.core
	_, folded := c.entries.Progress()
	p := progress{phase: c.phase, folded: folded, waits: c.phase != phaseLeading || folded < c.ledger.Watermark()}
	p.oldest, _ = c.ledger.Oldest()
	streams := []string{wire.Journal}
	if c.phase == phaseCatchingUp {
		streams = leaderStreams
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
	asked := time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
			if err := l.checkStuck(); err != nil {
				resign(err)
				return nil
			}
			if l.watchdog.Hesitates() || time.Since(asked) >= askEndsEvery {
				asked = time.Now()
				l.beside(func(ctx context.Context) { l.s.view.AskEnds(ctx, leaderStreams...) })
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
	if stuck := l.s.view.StuckOf(leaderStreams...); stuck > maxStuck {
		return fmt.Errorf("%w: the view is behind, and has read nothing for %s", errResigned, stuck.Round(time.Second))
	}
	return nil
}
