package scheduler

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

const (
	// maxStuck is how long a leader may take for its next step, if the broker does not prevent it.
	maxStuck = 30 * time.Second
	// openWithin is how long the broker may leave a publish unanswered before the epoch fires, and openWithinAtFirst how long where the
	// epochs before did fire: what it lost while a link between two nodes was broken is never answered, and nothing is fired meanwhile.
	openWithin        = 10 * time.Second
	openWithinAtFirst = 3 * time.Second
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
	open  time.Duration // for the publishes before the epoch fires

	mu        sync.Mutex
	last      progress
	steppedAt time.Time // when last changed
	oldestAt  time.Time // when last.oldest changed
}

func newWatchdog(clock func() time.Time, open time.Duration) *watchdog {
	return &watchdog{clock: clock, open: open, steppedAt: clock(), oldestAt: clock()}
}

// openPatience is how long the publishes of an epoch may take before it fires, when so many epochs before it did not come to fire. It
// grows: a broker may be slow.
func openPatience(failed int) time.Duration {
	return min(openWithinAtFirst<<min(failed, 2), openWithin)
}

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

// Check returns errResigned if the leader has been stuck for longer than maxStuck. One whose connection is blocked is not: no other
// sidecar could publish either.
func (w *watchdog) Check(blocked bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, patience := w.clock(), maxStuck
	if w.last.phase != phaseLeading {
		patience = w.open
	}
	switch {
	case blocked:
		w.steppedAt, w.oldestAt = now, now
	case w.last.oldest != 0 && now.Sub(w.oldestAt) > patience: // RabbitMQ forgets to answer when a stream's process dies
		return fmt.Errorf("%w: a publish was neither confirmed nor refused within %s", errResigned, patience)
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

// progress is how far this leader is. A view that is behind but reads on makes progress: a failover would not make it faster.
func (l *leadership) progress() progress {
	c := l.core
	_, folded := c.entries.Progress()
	p := progress{phase: c.phase, folded: folded, waits: c.phase != phaseLeading || folded < c.watermark}
	p.oldest, _ = c.oldest()
	streams := []string{wire.Journal}
	if c.phase == phaseCatching {
		streams = ledBy
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
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
			if err := l.checkStuck(); err != nil {
				resign(err)
				return nil
			}
			if l.watchdog.Hesitates() { // what it waits for may be written, and not come to its readers
				l.beside(func(ctx context.Context) { l.s.view.AskEnds(ctx, ledBy...) })
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
	if stuck := l.s.view.StuckOf(ledBy...); stuck > maxStuck {
		return fmt.Errorf("%w: the view is behind, and has read nothing for %s", errResigned, stuck.Round(time.Second))
	}
	return nil
}
