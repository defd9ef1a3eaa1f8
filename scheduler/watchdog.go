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
	// maxStuck is how long a leader may take for its next step, if the broker does not prevent it.
	maxStuck = 30 * time.Second
	// openWithin is how long the broker may leave a publish unanswered before the epoch fires: what it lost while a link between two
	// nodes was broken is never answered, and nothing is fired meanwhile. openWithinAtFirst is that for the first publishes of an epoch,
	// unless those of the one before were not answered in time either.
	openWithin        = 10 * time.Second
	openWithinAtFirst = time.Second
	// stuckEvery is how often that is looked at.
	stuckEvery = 500 * time.Millisecond
)

// progress is what a leader has done and what it waits for. Two values differ if a step was made in between.
type progress struct {
	phase  phase
	read   int64  // how far the streams are read that the phase waits for
	folded int64  // the newest record of the epoch that the view has folded
	oldest uint64 // tag of the oldest unconfirmed publish, 0 if there is none
	waits  bool   // a next phase, or a record to be read back, is waited for
}

// watchdog notices a leader that makes no progress, so that it can resign and let another sidecar try. It is safe for concurrent use.
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

// forgetUnanswered is when those are forgotten: another sidecar may have led since.
const forgetUnanswered = time.Minute

// patience is how long the first publishes of the next epoch may take. It grows: a broker may be slow.
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

// Acts notes that the leader does something which may take long, as a question to the broker does. It takes no answers meanwhile.
func (w *watchdog) Acts() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.awaits, w.busyAt = false, w.clock()
}

// Awaits notes that the leader takes answers again.
func (w *watchdog) Awaits() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := w.clock(); w.last.phase <= phaseCatchingUp && now.Sub(w.busyAt) >= stuckEvery { // the answers may have come long ago
		w.oldestAt = now
	}
	w.awaits = true
}

// Check returns errResigned if the leader has been stuck for longer than maxStuck. One whose connection is blocked is not: no other
// sidecar could publish either.
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
	case w.last.oldest != 0 && now.Sub(w.oldestAt) > patience: // RabbitMQ forgets to answer when a stream's process dies
		return fmt.Errorf("%w within %s", errUnanswered, patience)
	case w.last.waits && now.Sub(w.steppedAt) > maxStuck:
		return fmt.Errorf("%w: no progress for %s while %s", errResigned, maxStuck, w.last.phase)
	}
	return nil
}

// Hesitates reports whether an epoch that does not fire yet has made no step since the last look.
func (w *watchdog) Hesitates() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last.phase != phaseLeading && w.clock().Sub(w.steppedAt) >= stuckEvery
}

// askEndsEvery is how often a leader that fires asks where the streams end. One whose readers are cut off learns of nothing new.
const askEndsEvery = 5 * time.Second

// progress is how far this leader is. A view that is behind but reads on makes progress: a failover would not make it faster.
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

// watch ends the epoch of a leader that makes no progress, or hears nothing of the lock any more, also while the loop is stuck.
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
			if l.watchdog.Hesitates() || time.Since(asked) >= askEndsEvery { // what it waits for may be written, and not come to its readers
				asked = time.Now()
				l.beside(func(ctx context.Context) { l.s.view.AskEnds(ctx, leaderStreams...) })
			}
		}
	}
}

// checkStuck resigns where nothing moves: another sidecar may be better off.
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
