package scheduler

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/wire"
)

// governor switches queues on the broker beside the loop that fires: see governed. It asserts each
// step again at the begin of an epoch and from time to time, because a client may bind a queue,
// and because another leader may have been switching it.
type governor struct {
	s     *Scheduler
	conn  *broker.Conn
	found chan restated
	tried chan error // whether the alternate exchange works
	try   chan struct{}
	more  chan struct{} // what is wanted has changed

	mu     sync.Mutex
	wanted []governing

	at    map[string]governing // what was done, by queue
	drain map[string]time.Time // since when a queue has had no messages from before

	beside map[string]time.Time // when a queue was found bound although it is governed
	next   time.Time            // when everything is asserted again
}

const (
	governAgain  = time.Minute
	governLook   = 10 * time.Second // looking whether a client has bound a queue
	bypassedFor  = time.Minute      // a queue is shown as bypassed after that
	governSoon   = 5 * time.Second  // while a queue is switching, draining or full
	drainPause   = 10 * time.Second // between two looks at a queue that find no messages from before
	governWithin = 5 * time.Second  // for one step
)

func newGovernor(s *Scheduler, conn *broker.Conn) *governor {
	return &governor{s: s, conn: conn, found: make(chan restated), tried: make(chan error), try: make(chan struct{}, 1), more: make(chan struct{}, 1),
		at: map[string]governing{}, drain: map[string]time.Time{}, beside: map[string]time.Time{}}
}

// govern sets what is wanted.
func (g *governor) govern(wanted []governing) {
	g.mu.Lock()
	g.wanted = wanted
	g.mu.Unlock()
	wakeUp(g.more)
}

// tryAlternate has it tried whether the alternate exchange works.
func (g *governor) tryAlternate() { wakeUp(g.try) }

func wakeUp(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run switches queues until the epoch ends. Without governed queues it only waits.
func (g *governor) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-g.try:
			err := g.hasAlternate(ctx)
			select {
			case g.tried <- err:
			case <-ctx.Done():
			}
			continue
		case <-g.more:
		case <-timer.C:
		}
		g.mu.Lock()
		wanted := g.wanted
		g.mu.Unlock()
		if len(wanted) == 0 {
			continue
		}
		timer.Reset(g.look(ctx, wanted))
	}
}

// look brings all queues into the states that are wanted, and returns when to look again.
func (g *governor) look(ctx context.Context, wanted []governing) time.Duration {
	all, directed := time.Now().After(g.next), map[string][]string(nil)
	if g.s.mgmt != nil && len(g.at) > 0 {
		within, cancel := context.WithTimeout(ctx, governWithin)
		directed, _ = g.s.mgmt.Directed(within) // without it, all is asserted later
		cancel()
	}
	if all {
		g.next = time.Now().Add(governAgain)
	}
	soon := false
	for _, w := range wanted {
		done := g.at[w.queue]
		waits := w.state == wire.QueueSwitching || w.state == wire.QueueDraining || w.full || w.leaves
		if slices.Contains(directed[w.queue], wire.QueuePrefix+w.queue) && w.state != wire.QueueSwitching && !w.leaves {
			g.beside[w.queue] = time.Now()
			g.s.log.Warn("scheduler: a governed queue was bound to jobs.direct: jobs that were published meanwhile may run twice", "queue", w.queue)
			waits = true
		}
		if soon = soon || waits; !all && !waits && done == w && w.state != wire.QueueBypassed {
			continue
		}
		state, err := g.bring(ctx, w)
		if err != nil {
			if ctx.Err() == nil {
				g.s.log.Warn("scheduler: cannot switch a governed queue", "queue", w.queue, "state", w.state, "error", err)
			}
			soon = true
			continue
		}
		g.at[w.queue] = w
		select {
		case g.found <- restated{w.queue, w.turn, state}:
		case <-ctx.Done():
			return governAgain
		}
	}
	switch {
	case soon:
		return governSoon
	case g.s.mgmt != nil:
		return governLook
	}
	return governAgain
}

// bring asserts where the jobs for a queue go, and returns in which state the queue is then.
func (g *governor) bring(ctx context.Context, w governing) (state string, err error) {
	ctx, cancel := context.WithTimeout(ctx, governWithin)
	defer cancel()
	destination, state := wire.Gated, wire.QueueGoverned
	switch {
	case w.leaves:
		destination, state = wire.QueuePrefix+w.queue, ""
	case w.full:
		destination, state = wire.Full, wire.QueueFull
		if fault := g.conn.Topology().EnsureFull(ctx); fault != nil {
			g.s.log.Warn("scheduler: a full queue takes jobs, or no one can publish for it, because jobs.full cannot be reached", "queue", w.queue, "error", fault)
			return wire.QueueSuspended, nil // what is published goes through the alternate exchange, or is refused
		}
	}
	if g.changes(w) {
		if err := g.hasAlternate(ctx); err != nil {
			return "", err
		}
	}
	if err := g.s.direct(ctx, g.conn, w, destination); err != nil {
		return "", err
	}
	switch w.state {
	case wire.QueueSwitching:
		return wire.QueueDraining, nil
	case wire.QueueDraining:
		if drained, err := g.drained(ctx, w.queue); err != nil || !drained {
			return wire.QueueDraining, err
		}
	}
	if time.Since(g.beside[w.queue]) < bypassedFor && !w.leaves {
		return wire.QueueBypassed, nil
	}
	return state, nil
}

// changes reports whether a queue is to be switched, as far as is known.
func (g *governor) changes(w governing) bool {
	if done, known := g.at[w.queue]; known {
		return done.leaves != w.leaves || done.full != w.full
	}
	return w.leaves || w.state == wire.QueueSwitching || w.full != (w.state == wire.QueueFull)
}

// hasAlternate returns an error unless the alternate exchange of jobs.direct works.
func (g *governor) hasAlternate(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, governWithin)
	defer cancel()
	pub, err := g.conn.Publisher(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = pub.Close() }()
	has, err := pub.HasAlternate(ctx, "millrace.probe."+random())
	if err == nil && !has {
		err = errNoAlternate
	}
	return err
}

// drained reports whether a queue has no messages any more that came before it was governed: at
// two times it had at most as many as jobs hold slots. The figures of the management API are late.
// Without it, jobs that workers have are not seen.
func (g *governor) drained(ctx context.Context, queue string) (bool, error) {
	slots := 0
	err := g.s.entries.Slots.Held(func(h *wire.HeldSlot) bool {
		if h.Queue == queue {
			slots++
		}
		return true
	})
	if err != nil {
		return false, err
	}
	n, counted, err := g.messages(ctx, wire.QueuePrefix+queue)
	if err != nil {
		return false, err
	}
	if !counted || n > slots {
		delete(g.drain, queue)
		return false, nil
	}
	since, known := g.drain[queue]
	if !known {
		since = time.Now()
		g.drain[queue] = since
	}
	if time.Since(since) < drainPause {
		return false, nil
	}
	delete(g.drain, queue)
	return true, nil
}

// messages returns how many messages a queue has. A queue that does not exist has none.
func (g *governor) messages(ctx context.Context, queue string) (n int, counted bool, err error) {
	ready, _, err := g.conn.Queues().Depth(ctx, queue)
	var refusal *broker.QueueError
	if errors.As(err, &refusal) && refusal.Reason == broker.ReasonMissing {
		return 0, true, nil
	}
	if err != nil || g.s.mgmt == nil {
		return ready, err == nil, err
	}
	info, counted, err := g.s.mgmt.Queue(ctx, queue)
	return max(ready, int(info.Messages)), counted, err
}
