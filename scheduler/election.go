package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

var errLockGone = errors.New("scheduler: the queue of the lock is gone")

const (
	// lockEvery is how often a sidecar asks for a lock that another connection has exclusively.
	lockEvery = time.Second
	// orphanAfter is after how long without the lock a sidecar checks whether any sidecar leads.
	orphanAfter = time.Minute
	// predecessorEvery is how often a new leader looks whether the one before is gone.
	predecessorEvery = 100 * time.Millisecond
	// fitWithin is how long a sidecar that has the lock waits for its readers.
	fitWithin = 10 * time.Second
	// fitEvery is how often it looks at its view, at least.
	fitEvery = 100 * time.Millisecond
	// leaseLookEvery is how often a leader that fell silent looks whether a ping came back.
	leaseLookEvery = 50 * time.Millisecond
)

// stand waits for the lock, and leads once it is had.
func (s *Scheduler) stand(ctx context.Context, conn *broker.Conn) error {
	claim, err := s.claim(ctx, conn)
	if err != nil {
		return err
	}
	lock := newCandidate(claim, conn.User(), newResponder(s.cfg.Broker, s.log), s.log)
	running, stop := context.WithCancel(context.WithoutCancel(ctx)) // it waits for what is in flight
	var parts sync.WaitGroup
	defer parts.Wait()
	defer stop()
	parts.Go(func() { lock.run(running) })
	parts.Go(func() { _ = lock.responder.run(running) })
	if err := s.waitInLine(ctx, conn, lock); err != nil {
		return err
	}
	if err := s.awaitEligible(ctx, conn, lock); err != nil {
		return err
	}
	if err := s.waitForPredecessor(ctx, conn, lock.activeAt); err != nil {
		return err
	}
	lock.leads.Store(true)
	for {
		// Where the journal has lost records, the same sidecar leads on. Another one would wait for
		// it, because a node has just died.
		if err := s.lead(ctx, conn, lock); !errors.Is(err, ledger.ErrLost) || ctx.Err() != nil {
			return err
		}
	}
}

// claim asks for the lock until no other connection has it exclusively.
func (s *Scheduler) claim(ctx context.Context, conn *broker.Conn) (*broker.Lock, error) {
	watch := s.watchLeader(ctx, conn)
	defer watch.stop()
	for {
		lock, err := lockWithin(ctx, conn, lockPatience)
		if err == nil {
			return lock, nil
		}
		if !errors.Is(err, broker.ErrLocked) && !errors.Is(err, broker.ErrForeignLock) {
			return nil, err
		}
		watch.look(err)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-conn.Done():
			return nil, conn.Err()
		case <-time.After(lockEvery):
		}
	}
}

// lockPatience is how long a claim may take. Without a majority of the nodes it is never answered.
// While a node is frozen, RabbitMQ may take fourteen seconds for each stream.
const lockPatience = 90 * time.Second

func lockWithin(ctx context.Context, conn *broker.Conn, limit time.Duration) (*broker.Lock, error) {
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	lock, err := conn.Lock(within)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("scheduler: %s does not answer: most of the nodes that have it are away, or its member on one of them has not started", wire.LeaderInbox)
	}
	return lock, err
}

// waitInLine waits until the lock is the sidecar's.
func (s *Scheduler) waitInLine(ctx context.Context, conn *broker.Conn, lock *candidate) error {
	watch := s.watchLeader(ctx, conn)
	defer watch.stop()
	for {
		select {
		case <-lock.active:
			s.foundLeader("", "")
			return nil
		case <-lock.claim.Inbox.Done():
			return fmt.Errorf("%w: %w", errLockGone, lock.claim.Inbox.Err())
		case <-ctx.Done():
			return ctx.Err()
		case <-conn.Done():
			return conn.Err()
		case <-time.After(lockEvery):
			watch.look(nil)
		}
	}
}

// awaitEligible waits a moment for the view, which may lag since the sidecar waited for the lock.
// If the broker has cut off its readers, those of the other sidecars are cut off too, and another
// leader would only take time.
func (s *Scheduler) awaitEligible(ctx context.Context, conn *broker.Conn, lock *candidate) error {
	late := time.NewTimer(fitWithin)
	defer late.Stop()
	for waited := false; ; waited = true {
		changed := s.view.Changed()
		if s.eligible(time.Now()) {
			if waited && !lock.mayPublish() { // another may have had the lock meanwhile
				return errUnfit
			}
			return nil
		}
		if s.view.CaughtUp(leaderStreams...) { // it reads, but too slowly
			return errUnfit
		}
		select {
		case <-changed:
		case <-time.After(fitEvery):
		case <-late.C:
			return errUnfit
		case <-lock.claim.Inbox.Done():
			return fmt.Errorf("%w: %w", errLockGone, lock.claim.Inbox.Err())
		case <-ctx.Done():
			return ctx.Err()
		case <-conn.Done():
			return conn.Err()
		}
	}
}

// waitForPredecessor waits until the leader before can no longer act. A broker that DelaysNodeLoss
// ensures that itself. Others pass the lock on as soon as they lose sight of a node, while the
// leader that is connected there may live. It falls silent after leaseLasts, because its pings do
// not come back. One that lost its connection says so as soon as it has another.
func (s *Scheduler) waitForPredecessor(ctx context.Context, conn *broker.Conn, activeAt time.Time) error {
	if !s.waitsForPredecessor(conn.Features()) {
		return nil
	}
	until, cancel := context.WithDeadline(ctx, activeAt.Add(wire.LeaderWait))
	defer cancel()
	for !s.predecessorGone(until, conn) {
		if pause.For(until, predecessorEvery) != nil {
			return ctx.Err() // nil if it is only the wait that is over
		}
	}
	return nil
}

// waitsForPredecessor reports whether a new leader may have to wait until the leader before can no
// longer act.
func (s *Scheduler) waitsForPredecessor(f broker.Features) bool {
	return !f.ExclusiveLock && (!f.DelaysNodeLoss || s.olderNodes.Load())
}

// predecessorGone reports whether the leader before has certainly ended. A leader of an older
// version held the lock exclusively, and ended before the lock was free.
func (s *services) predecessorGone(ctx context.Context, conn *broker.Conn) bool {
	state := s.entries.State()
	queue := state.ProbeQueue
	if queue == "" && (state.Epoch < 0 || state.Identity != "") { // no sidecar has led, or one of an older version
		return true
	}
	if s.cfg.SingleNode { // it has seen the end of the channel that had the lock
		return true
	}
	if state.Ended && s.hasReadJournal(ctx) && s.entries.State().Ended {
		return true
	}
	if s.mgmt == nil {
		return false
	}
	nodes, err := s.mgmt.Nodes(ctx)
	if err != nil || len(nodes) == 0 {
		return false
	}
	if len(nodes) == 1 {
		return true
	}
	for _, n := range nodes {
		if !n.Running || len(n.Partitions) > 0 {
			return false
		}
	}
	if queue == "" { // the journal does not go back to the record in which the leader named it
		return false
	}
	stands, err := conn.Queues().Exists(ctx, queue)
	return err == nil && !stands && s.hasReadJournal(ctx) && s.entries.State().ProbeQueue == queue
}

// hasReadJournal reports whether the view knows the whole journal, and so which leader came last.
func (s *services) hasReadJournal(ctx context.Context) bool {
	last, ok, err := s.records.Last(ctx, wire.Journal)
	if err != nil {
		return false
	}
	read, err := s.entries.Position(wire.Journal)
	if !ok { // right after a failover a stream may look empty
		return err == nil && read < 0
	}
	return err == nil && read >= last
}

// leaderWatch looks, in the background and once in a while, whether any sidecar leads.
type leaderWatch struct {
	s     *Scheduler
	conn  *broker.Conn
	ctx   context.Context
	stop  context.CancelFunc
	asked time.Time
}

func (s *Scheduler) watchLeader(ctx context.Context, conn *broker.Conn) *leaderWatch {
	w := &leaderWatch{s: s, conn: conn, asked: time.Now()}
	w.ctx, w.stop = context.WithCancel(ctx)
	return w
}

// look begins to look for a leader if that is due. refused is why the lock cannot be claimed, nil
// if the claim waits in line.
func (w *leaderWatch) look(refused error) {
	if time.Since(w.asked) <= w.s.orphanAfter {
		return
	}
	w.asked = time.Now()
	go w.s.lookForLeader(w.ctx, w.conn, refused) // meanwhile the lock may become free
}

// lookForLeader finds out whether a sidecar leads that has the lock: a client may have taken it.
func (s *Scheduler) lookForLeader(ctx context.Context, conn *broker.Conn, refused error) {
	reply := askOnce(ctx, s.cfg.Broker, wire.Command{Command: wire.CommandPing})
	_, _, blocked := conn.Blocked()
	opened := time.UnixMicro(int64(s.entries.State().OpenedAt * 1e6))
	orphaned := reply.Status == wire.StatusUnknown && !blocked && time.Since(opened) > s.orphanAfter
	if ctx.Err() != nil {
		return
	}
	if !orphaned {
		s.foundLeader("", "")
		return
	}
	cause, remedy := orphanWords(conn.Features(), conn.VHost(), refused)
	s.foundLeader(cause, remedy)
	s.log.Error("scheduler: no sidecar leads, no jobs are dispatched", "cause", cause, "remedy", remedy)
}

// foundLeader shows why no sidecar can lead; an empty cause says that one can.
func (b *board) foundLeader(cause, remedy string) {
	b.setStatus(func(st *Status) { st.Orphaned, st.OrphanCause, st.OrphanCure = cause != "", cause, remedy })
}

// orphanWords says who has the lock that does not lead, and what to do about it.
func orphanWords(f broker.Features, vhost string, refused error) (cause, remedy string) {
	const permissions = "; then take the permission to configure jobs.* from clients"
	deletes := fmt.Sprintf("delete the queue: %s delete_queue --vhost %s %s", f.Ctl, vhost, wire.LeaderInbox)
	switch {
	case errors.Is(refused, broker.ErrForeignLock):
		return "another program has declared the queue " + wire.LeaderInbox, deletes + permissions
	case errors.Is(refused, broker.ErrLocked) && f.ExclusiveLock:
		return "a client has " + wire.LeaderInbox + " as its exclusive queue, or consumes it",
			"close its connection, which the management pages show with the queue" + permissions
	case errors.Is(refused, broker.ErrLocked):
		return "a client has " + wire.LeaderInbox + " as its exclusive queue",
			fmt.Sprintf("close its connection (%s list_queues --vhost %s name owner_pid), or, if that is gone with its node, %s%s",
				f.Ctl, vhost, deletes, permissions)
	}
	return "a client consumes " + wire.LeaderInbox + ", and answers no pings",
		fmt.Sprintf("close its connection (%s list_consumers --vhost %s queue_name channel_pid active); "+
			"then take the permission to read jobs.* from clients", f.Ctl, vhost)
}
