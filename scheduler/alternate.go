package scheduler

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/wire"
)

// alternate watches the alternate exchange of jobs.direct while queues are governed.
//
// While it can be relied on, nothing is bound for a governed queue: its jobs go to jobs.gated
// through the alternate exchange. A worker that binds the queue takes them to one other place, and
// not to two. It can be relied on if two policies set it, so that a user has to remove both, and
// if a message has shown that the broker applies them. As soon as one of them is missing,
// jobs.gated is bound for each queue.
type alternate struct {
	conn *broker.Conn
	mgmt *broker.Management // nil without the management API: then nothing relies on it
	log  *slog.Logger
	try  func(context.Context) error // whether a message that no binding takes is kept

	changed chan struct{} // whether it can be relied on

	mu   sync.Mutex
	on   bool            // queues are governed
	safe bool            // it can be relied on
	seen time.Time       // when the management API has last said so
	free map[string]bool // queues for which nothing is bound

	tried time.Time // when a message was sent last, and what came of it
	fault error
}

const (
	alternateEvery  = time.Second
	alternateWithin = 2 * time.Second       // for one question to the management API
	alternateBegins = 2 * time.Second       // how long a broker may take to apply a policy
	alternateSoon   = 50 * time.Millisecond // between two looks meanwhile
	alternateUnseen = time.Minute           // how long messages alone show that it works
)

func newAlternate(conn *broker.Conn, mgmt *broker.Management, log *slog.Logger, try func(context.Context) error) *alternate {
	return &alternate{conn: conn, mgmt: mgmt, log: log, try: try, changed: make(chan struct{}, 1), free: map[string]bool{}}
}

// run looks after the alternate exchange until the epoch ends.
func (a *alternate) run(ctx context.Context) error {
	for pause.For(ctx, alternateEvery) == nil {
		a.mu.Lock()
		on := a.on
		a.mu.Unlock()
		if on {
			a.look(ctx)
		}
	}
	return nil
}

// watch says whether queues are governed.
func (a *alternate) watch(ctx context.Context, on bool) {
	a.mu.Lock()
	was := a.on
	a.on = on
	a.mu.Unlock()
	switch {
	case on && !was:
		a.begin(ctx)
	case was && !on && a.mgmt != nil:
		if err := broker.AlternateOf(a.mgmt).Drop(ctx); err != nil && ctx.Err() == nil {
			a.log.Warn("scheduler: cannot remove the policy millrace-governed, which is not needed any more", "error", err)
		}
	}
}

// begin looks until the broker applies the policies, which the first look has set. While jobs.gated
// is bound instead, jobs double that a worker's binding takes too.
func (a *alternate) begin(ctx context.Context) {
	for until := time.Now().Add(alternateBegins); ; {
		if a.look(ctx); a.mgmt == nil || a.isSafe() || time.Now().After(until) || pause.For(ctx, alternateSoon) != nil {
			return
		}
	}
}

// look asks whether the alternate exchange can be relied on.
func (a *alternate) look(ctx context.Context) {
	if a.mgmt == nil {
		return
	}
	within, cancel := context.WithTimeout(ctx, alternateWithin)
	defer cancel()
	safe, err := broker.AlternateOf(a.mgmt).Keep(within)
	a.mu.Lock()
	was, seen := a.safe, a.seen
	a.mu.Unlock()
	switch {
	case err != nil && seen.IsZero(): // a leader of before may have found out, and all is as it was then
		seen, safe = time.Now(), a.try(ctx) == nil
	case err != nil:
		safe = was && time.Since(seen) < alternateUnseen && a.try(ctx) == nil
	case safe:
		seen = time.Now()
		safe = was || a.try(ctx) == nil
	}
	a.set(ctx, safe, seen)
	if was != safe && ctx.Err() == nil {
		a.log.Info("scheduler: whether governed queues rely on the alternate exchange of jobs.direct", "safe", safe, "error", err)
		wakeUp(a.changed)
	}
}

// set takes in whether the alternate exchange can be relied on. If not, it catches the jobs of all
// queues for which nothing is bound.
func (a *alternate) set(ctx context.Context, safe bool, seen time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.safe, a.seen = safe, seen
	if safe {
		return
	}
	for queue := range a.free {
		_ = a.catch(ctx, queue) // if that fails, it is done again
	}
}

// catch binds jobs.gated for a queue.
func (a *alternate) catch(ctx context.Context, queue string) error {
	within, cancel := context.WithTimeout(ctx, alternateWithin)
	defer cancel()
	err := a.conn.Queues().Catch(within, queue)
	if err == nil {
		delete(a.free, queue)
	} else if ctx.Err() == nil {
		a.log.Error("scheduler: cannot bind jobs.gated for a governed queue: its jobs may be lost", "queue", queue, "error", err)
	}
	return err
}

// isSafe reports whether the alternate exchange can be relied on.
func (a *alternate) isSafe() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.safe
}

// isFree reports whether nothing is bound for a queue.
func (a *alternate) isFree(queue string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.free[queue]
}

// leave notes that all bindings of a queue are about to be removed, and reports whether they may
// be. left has to be called afterwards.
func (a *alternate) leave(queue string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.safe {
		a.free[queue] = true
	}
	return a.safe
}

// left catches the jobs of a queue if its bindings should not have been removed.
func (a *alternate) left(ctx context.Context, queue string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.safe {
		return nil
	}
	return a.catch(ctx, queue)
}

// works returns an error unless the alternate exchange has kept a message in the last second.
func (a *alternate) works(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Since(a.tried) > alternateEvery {
		a.fault, a.tried = a.try(ctx), time.Now()
	}
	return a.fault
}

// taken notes that something is bound for a queue.
func (a *alternate) taken(queue string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.free, queue)
}

// boundTo returns the governed queues whose jobs jobs.direct leads to a queue, by its full name.
// known is false if the management API does not say.
func (a *alternate) boundTo(ctx context.Context, destination string) (keys []string, known bool) {
	if a.mgmt == nil {
		return nil, false
	}
	within, cancel := context.WithTimeout(ctx, alternateWithin)
	defer cancel()
	keys, err := a.mgmt.BoundKeys(within, wire.ExchangeDirect, destination)
	return keys, err == nil
}

func wakeUp(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
