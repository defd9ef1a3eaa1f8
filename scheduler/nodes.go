package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/wire"
)

// Each sidecar watches the nodes of its cluster, so that messages about a loss can name the node.
// The leader also keeps Millrace's queues fit for a cluster that has grown, or that has lost a node
// for good.

const (
	nodesEvery   = 5 * time.Second // how often the nodes are looked at
	nodesSoon    = 500 * time.Millisecond
	membersEvery = time.Minute // how often the queues are, while nothing changes or is missing
	missingEvery = 10 * time.Second
	nodesWithin  = 5 * time.Second // how long the management API may take
	remakeEvery  = time.Hour       // how often a leader makes the lock again, at most
)

// errSmallLock ends an epoch: jobs.leader has fewer members than the cluster has nodes for.
var errSmallLock = errors.New("scheduler: " + wire.LeaderInbox + " is made again, with more members: the cluster has grown")

// errIsolated ends a term: the sidecar's node sees no majority of the cluster.
var errIsolated = fmt.Errorf("%w: the broker's node is cut off from most of the others; another one is tried", errResigned)

// clusterWatch is what a sidecar last saw of the nodes.
type clusterWatch struct {
	running []string           // names of the nodes that ran
	left    bool               // those were no majority, and this sidecar has left their node
	queues  []broker.QueueInfo // when they could last be listed
	looked  time.Time          // when that was
	again   time.Duration      // how long it may be ago
	remade  time.Time          // when this process last made the lock again
}

// watchNodes looks at the nodes again and again, until ctx ends.
func (s *Scheduler) watchNodes(ctx context.Context) {
	if s.mgmt == nil {
		return
	}
	var w clusterWatch
	for ctx.Err() == nil {
		if err := s.lookAtNodes(ctx, &w, time.Now()); err != nil && ctx.Err() == nil {
			s.log.Debug("scheduler: cannot look at the broker's nodes", "error", err)
		}
		s.pauseNodes(ctx)
	}
}

// pauseNodes waits until the nodes are due: sooner if a leader does not hear from its lock.
func (s *Scheduler) pauseNodes(ctx context.Context) {
	for begun := time.Now(); time.Since(begun) < nodesEvery; {
		if pause.For(ctx, nodesSoon) != nil || s.leaseLapsed() {
			return
		}
	}
}

// leaseLapsed reports whether this sidecar leads, and may not act because no ping comes back.
func (s *Scheduler) leaseLapsed() bool {
	st, _ := s.shown()
	lease := s.epochLease()
	return lease != nil && st.Leader && !lease.Fresh()
}

// leaveNode ends this sidecar's term, so that the next begins on another node, and reports whether
// it does. A leader leaves only a node that does not show it the lock either.
func (s *Scheduler) leaveNode() bool {
	if !s.cfg.Broker.HasSeveralHosts() {
		return false
	}
	return s.endTerm(errIsolated)
}

func (s *Scheduler) lookAtNodes(ctx context.Context, w *clusterWatch, now time.Time) error {
	if s.mgmt.Features().OneNodeServes {
		s.degraded.set(now, clusterPart, silentHosts(s.mgmt.SilentHosts(ctx)))
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, nodesWithin)
	defer cancel()
	nodes, err := s.mgmt.Nodes(ctx)
	if err != nil {
		return err
	}
	s.olderNodes.Store(slices.ContainsFunc(nodes, passesLockAtOnce))
	running := runningNodes(nodes)
	w.left = !isMajority(nodes) && (w.left || s.leaveNode())
	if slices.Equal(running, w.running) && now.Sub(w.looked) < w.again {
		return nil
	}
	queues, err := s.mgmt.Queues(ctx)
	if err == nil {
		w.queues = queues
	}
	s.degraded.set(now, clusterPart, clusterFaults(s.mgmt.Features(), s.mgmt.VHost(), nodes, w.queues))
	if err != nil { // as while a stream has no leader
		w.running = nil // list them next time too, if the same ones run
		return err
	}
	w.running, w.looked, w.again = running, now, membersEvery
	missing := map[string]int{}
	if len(nodes) > 1 {
		for _, q := range queues {
			if q.OfMillrace() && len(q.Members) > 0 {
				if missing[q.Name] = q.MissingOnline(nodes); missing[q.Name] > 0 {
					w.again = missingEvery
				}
			}
		}
	}
	s.setStatus(func(st *Status) { st.MissingReplicas = missing })
	if !wholeCluster(nodes) {
		return nil
	}
	lock := slices.IndexFunc(queues, func(q broker.QueueInfo) bool { return q.Name == wire.LeaderInbox })
	small := lock >= 0 && (queues[lock].MissingMembers(nodes) > 0 || len(queues[lock].StrayMembers(nodes)) > 0)
	if small && now.Sub(w.remade) > remakeEvery && s.resignFor(errSmallLock) {
		w.remade = now
	}
	return nil
}

// passesLockAtOnce reports whether a node has a version that passes the lock on as soon as it loses
// sight of the leader's node, as nodes have during an upgrade.
func passesLockAtOnce(n broker.Node) bool {
	return n.Version != "" && !broker.FeaturesOf(broker.RabbitMQ, n.Version).DelaysNodeLoss
}

// runningNodes is sorted.
func runningNodes(nodes []broker.Node) (names []string) {
	for _, n := range nodes {
		if n.Running {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return names
}

// isMajority reports whether most nodes run, as one of them sees it.
func isMajority(nodes []broker.Node) bool { return 2*len(runningNodes(nodes)) > len(nodes) }

// wholeCluster reports whether a queue that is made now can have a member on each of several nodes.
func wholeCluster(nodes []broker.Node) bool {
	return len(nodes) > 1 && !slices.ContainsFunc(nodes, func(n broker.Node) bool {
		return !n.Running || n.Drained || len(n.Partitions) > 0
	})
}

// clusterFaults lists what fails, or will fail with the next node that is lost.
func clusterFaults(f broker.Features, vhost string, nodes []broker.Node, queues []broker.QueueInfo) []Degraded {
	failing := awayNodes(nodes, queues)
	if len(nodes) == 2 && f.QuorumQueues {
		failing = append(failing, Degraded{Subject: "cluster of two nodes", Costs: "when either node is away, no jobs are delivered",
			Problem: "streams and quorum queues have no majority without both; add a third node"})
	}
	if len(nodes) > 1 {
		failing = append(failing, fewMembers(vhost, nodes, queues)...)
	}
	return failing
}

// silentHosts says what each host costs that does not answer, where one node serves and the others
// follow it.
func silentHosts(hosts []string) (failing []Degraded) {
	for _, host := range hosts {
		failing = append(failing, Degraded{Subject: "node " + host, Node: host, Problem: "its management API does not answer",
			Costs: "everything has one copy less"})
	}
	return failing
}

// awayNodes says what each node that is away costs.
func awayNodes(nodes []broker.Node, queues []broker.QueueInfo) (failing []Degraded) {
	for _, n := range nodes {
		if n.Running {
			continue
		}
		d := Degraded{Subject: "node " + n.Name, Node: n.Name, Problem: "the broker says that it does not run",
			Costs: "streams and quorum queues have one replica less"}
		if names := homedOn(n.Name, queues); len(names) > 0 {
			d.Costs = "jobs for " + wire.Counted(int64(len(names)), "classic queue") + " wait"
			d.Problem += "; it has " + someOf(names)
		}
		if !isMajority(nodes) {
			d.Costs = "the nodes that run are no majority, and no jobs are delivered"
		}
		failing = append(failing, d)
	}
	return failing
}

// homedOn lists the classic job queues of a node.
func homedOn(node string, queues []broker.QueueInfo) (names []string) {
	for _, q := range queues {
		if q.Type == "classic" && q.Node == node && strings.HasPrefix(q.Name, wire.QueuePrefix) {
			names = append(names, q.Name)
		}
	}
	slices.Sort(names)
	return names
}

func someOf(names []string) string {
	const shown = 5
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
}

// fewMembers returns the streams and quorum queues of Millrace that have too few members, except
// for the lock, which its leader declares again.
func fewMembers(vhost string, nodes []broker.Node, queues []broker.QueueInfo) (failing []Degraded) {
	for _, q := range queues {
		commands := q.MemberCommands(vhost, nodes)
		if !q.OfMillrace() || q.Name == wire.LeaderInbox || len(commands) == 0 {
			continue
		}
		failing = append(failing, Degraded{Subject: "replicas of " + q.Name, Costs: "it may be lost, or away, with a node",
			Problem: fmt.Sprintf("%s on %d nodes; run %s", wire.Counted(int64(len(q.Members)), "replica"), len(nodes), strings.Join(commands, "; "))})
	}
	return failing
}

// remakeWithin is how long the broker may take to delete jobs.leader.
const remakeWithin = 15 * time.Second

// remakeLock deletes jobs.leader, so that all sidecars declare it again. This one fires nothing
// more.
func (s *services) remakeLock(ctx context.Context, conn *broker.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), remakeWithin)
	defer cancel()
	if err := conn.Queues().Delete(ctx, wire.LeaderInbox, false, false); err != nil {
		s.log.Warn("scheduler: cannot delete "+wire.LeaderInbox+", to make it again", "error", err)
		return
	}
	s.log.Info("scheduler: deleted " + wire.LeaderInbox + ", which is made again with a member on each node")
}

// dropStrayWitnesses deletes the witnesses of nodes that have left the cluster, and those of older
// versions.
func (s *services) dropStrayWitnesses(ctx context.Context, conn *broker.Conn) error {
	if s.mgmt == nil || conn.Features().OneNodeServes {
		return nil
	}
	nodes, err := s.mgmt.Nodes(ctx)
	if err != nil {
		return err
	}
	queues, err := s.mgmt.Queues(ctx)
	if err != nil {
		return err
	}
	for _, name := range strayWitnesses(nodes, queues) {
		if err := conn.Queues().Delete(ctx, name, true, false); err != nil {
			return err
		}
		s.log.Info("scheduler: deleted a witness that is not used any more", "queue", name)
	}
	return nil
}

// strayWitnesses returns the witnesses that belong to no node of the cluster. Those of older
// versions are not durable, which keeps a RabbitMQ 4.3 with its defaults from starting.
func strayWitnesses(nodes []broker.Node, queues []broker.QueueInfo) (stray []string) {
	for _, q := range queues {
		ofNode := func(n broker.Node) bool { return broker.WitnessQueue(n.Name) == q.Name }
		old := strings.HasPrefix(q.Name, wire.WitnessPrefix) && !q.Durable
		if old || broker.IsWitnessQueue(q.Name) && !slices.ContainsFunc(nodes, ofNode) {
			stray = append(stray, q.Name)
		}
	}
	return stray
}

// terms are how this sidecar's term and epoch are ended. They are safe for concurrent use.
type terms struct {
	mu     sync.Mutex
	leave  context.CancelCauseFunc // ends the term; nil if there is none
	resign context.CancelCauseFunc // ends the epoch in order; nil if there is none
	lease  *lease                  // of the epoch; nil if it has none
}

// inTerm notes how the term is ended, nil if there is none.
func (t *terms) inTerm(leave context.CancelCauseFunc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave = leave
}

// resignFor ends the epoch in order, if there is one, and reports whether it does.
func (t *terms) resignFor(why error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.resign == nil {
		return false
	}
	t.resign(why)
	return true
}

// inEpoch notes the lease of the epoch and how it is ended in order, nil if there is none.
func (t *terms) inEpoch(l *lease, resign context.CancelCauseFunc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lease, t.resign = l, resign
}

// epochLease returns the lease of the epoch; nil if there is none.
func (t *terms) epochLease() *lease {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lease
}

// endTerm ends the term, unless its lease is fresh, and reports whether it does.
func (t *terms) endTerm(why error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.leave == nil || t.lease != nil && t.lease.Fresh() {
		return false
	}
	t.leave(why)
	return true
}
