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
	soon   time.Time            // when the queues are that wait for something

	failed map[string]bool // queues that could not be switched

	alternate *alternate
}

const (
	governAgain  = time.Minute
	governLook   = time.Second           // between two looks whether a client has bound a queue
	governEach   = 10 * time.Millisecond // the same for each queue, if there are many
	bypassedFor  = time.Minute           // a queue is shown as bypassed after that
	governSoon   = 5 * time.Second       // while a queue is switching, draining or full
	drainPause   = 10 * time.Second      // between two looks at a queue that find no messages from before
	governWithin = 5 * time.Second       // for one step
)

func newGovernor(s *Scheduler, conn *broker.Conn) *governor {
	g := &governor{s: s, conn: conn, found: make(chan restated), tried: make(chan error), try: make(chan struct{}, 1), more: make(chan struct{}, 1),
		at: map[string]governing{}, drain: map[string]time.Time{}, beside: map[string]time.Time{}, failed: map[string]bool{}}
	g.alternate = newAlternate(conn, s.mgmt, s.log, g.hasAlternate)
	return g
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
		case <-g.alternate.changed:
		case <-timer.C:
		}
		g.mu.Lock()
		wanted := g.wanted
		g.mu.Unlock()
		g.alternate.watch(ctx, len(wanted) > 0)
		if len(wanted) == 0 {
			continue
		}
		g.look(ctx, wanted)
		timer.Reset(max(governLook, time.Duration(len(wanted))*governEach))
	}
}

// look removes the bindings that clients have made, and brings all queues into the states that are
// wanted.
func (g *governor) look(ctx context.Context, wanted []governing) {
	all, soon := time.Now().After(g.next), time.Now().After(g.soon)
	if all {
		g.next = time.Now().Add(governAgain)
	}
	if soon {
		g.soon = time.Now().Add(governSoon)
	}
	gated, _ := g.alternate.boundTo(ctx, wire.Gated) // by an older version, or by a leader that this one has followed
	for _, w := range wanted {
		bound := g.unbind(ctx, w)
		waits := w.state == wire.QueueSwitching || w.state == wire.QueueDraining || w.state == wire.QueueBypassed || w.full || w.leaves || g.failed[w.queue]
		changes := g.at[w.queue] != w && !g.failed[w.queue] || g.strays(w, gated)
		if !all && !bound && !changes && (!waits || !soon) {
			continue
		}
		state, err := g.bring(ctx, w)
		if g.failed[w.queue] = err != nil; err != nil {
			if ctx.Err() == nil {
				g.s.log.Warn("scheduler: cannot switch a governed queue", "queue", w.queue, "state", w.state, "error", err)
			}
			continue
		}
		g.at[w.queue] = w
		select {
		case g.found <- restated{w.queue, w.turn, state}:
		case <-ctx.Done():
			return
		}
	}
}

// strays reports whether it is not as it should be whether jobs.gated is bound for a queue.
func (g *governor) strays(w governing, gated []string) bool {
	free := g.alternate.isFree(w.queue)
	return !w.leaves && !w.full && (free != g.alternate.isSafe() || free && slices.Contains(gated, w.queue))
}

// unbind removes the binding of a governed queue to jobs.direct, which workers make when they
// start. It reports whether the management API shows that there was one.
func (g *governor) unbind(ctx context.Context, w governing) (bound bool) {
	if w.leaves || w.state == wire.QueueSwitching {
		return false
	}
	queue := wire.QueuePrefix + w.queue
	keys, known := g.alternate.boundTo(ctx, queue)
	if bound = slices.Contains(keys, w.queue); known && !bound {
		return false
	}
	within, cancel := context.WithTimeout(ctx, governWithin)
	defer cancel()
	if err := g.conn.Queues().Undirect(within, w.queue, queue); err != nil && ctx.Err() == nil && !isMissing(err) {
		g.s.log.Warn("scheduler: cannot remove the binding of a governed queue to jobs.direct", "queue", w.queue, "error", err)
	}
	if bound {
		g.beside[w.queue] = time.Now()
		g.s.log.Warn("scheduler: a client had bound a governed queue to jobs.direct: jobs came to it without limits", "queue", w.queue,
			"twice", !g.alternate.isFree(w.queue))
	}
	return bound
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
	if err := g.direct(ctx, w, destination); err != nil {
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

// direct sends jobs for a queue to a destination, or leaves them to the alternate exchange if they
// come to jobs.gated so.
func (g *governor) direct(ctx context.Context, w governing, destination string) error {
	route := broker.Route{Queue: w.queue, To: destination, Capped: w.capped}
	if destination == wire.Gated && g.alternate.leave(w.queue) {
		err := g.s.direct(ctx, g.conn, broker.Route{Queue: w.queue, Capped: w.capped})
		return errors.Join(err, g.alternate.left(ctx, w.queue))
	}
	if !g.alternate.isSafe() {
		err := g.alternate.works(ctx)
		if route.Bare = errors.Is(err, errNoAlternate); err != nil && !route.Bare {
			return err
		}
	}
	err := g.s.direct(ctx, g.conn, route)
	if err == nil {
		g.alternate.taken(w.queue)
	}
	return err
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
	has, err := pub.HasAlternate(ctx)
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
	if isMissing(err) {
		return 0, true, nil
	}
	if err != nil || g.s.mgmt == nil {
		return ready, err == nil, err
	}
	info, counted, err := g.s.mgmt.Queue(ctx, queue)
	return max(ready, int(info.Messages)), counted, err
}
