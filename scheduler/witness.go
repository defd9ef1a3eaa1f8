package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/wire"
)

// verdict is what is known of a witness.
type verdict int

const (
	undecided verdict = iota // nothing shows that something has restarted, or that no link has broken
	gone                     // something has restarted, or there is no witness
	stands                   // nothing has, and no link has broken
)

// witness finds out whether the broker has restarted, in part or as a whole, since a leader wrote
// down what identifies its run. On RabbitMQ that is a fingerprint of the nodes and of the links
// between them, on LavinMQ the name of a queue that a restart removes.
type witness struct {
	conn       *broker.Conn
	mgmt       *broker.Management // nil if there is none
	singleNode bool               // the settings say that the broker is one
	log        *slog.Logger

	mu       sync.Mutex // held while witnesses are checked: two concurrent checks find one gone
	known    string     // what the last leader wrote down
	standing string     // what identifies the broker's run, by the newest check; empty: nothing
}

const (
	decideWithin  = 2 * time.Minute         // an overloaded broker may say nothing for so long
	usualPatience = 2 * time.Second         // how long a node may take to return its witness
	morePatience  = 6 * time.Second         // the same for a leader that has waited for long
	leadsWithin   = 10 * time.Second        // for how long a leader that waits may not lead yet
	freshEvery    = 500 * time.Millisecond  // how often it is asked whether it has
	freshLag      = 2500 * time.Millisecond // a node notes its uptime before its links
	witnessWithin = 5 * time.Second         // how long the queue of a witness may take to answer
	placeWithin   = 2 * time.Second         // how long a node may take to get a witness
	absentWithin  = 2 * time.Second         // how long a witness may be missing: another sidecar may hold it
	heldFor       = time.Second             // for how long a leader that begins looks for one
	seldomHeld    = 100 * time.Millisecond  // the same where it matters less
	watchLinks    = 5 * time.Second         // how often a leader checks whether nodes and links changed
)

// alone reports whether the broker is one node, or works as one.
func (w *witness) alone(ctx context.Context) bool {
	if w.conn.Features().OneNodeServes {
		return true
	}
	nodes, err := w.nodes(ctx)
	return err == nil && len(nodes) == 1 || err != nil && w.singleNode
}

var errNoManagement = errors.New("scheduler: there is no management API")

// nodes lists the broker's nodes. A sidecar can lead without its answer.
func (w *witness) nodes(ctx context.Context) ([]broker.Node, error) {
	switch {
	case w.mgmt != nil:
		ctx, cancel := context.WithTimeout(ctx, nodesWithin)
		defer cancel()
		return w.mgmt.Nodes(ctx)
	case w.singleNode:
		return []broker.Node{{Running: true}}, nil
	}
	return nil, errNoManagement
}

// check compares the broker with what a leader wrote down.
func (w *witness) check(ctx context.Context, known string) (verdict, error) {
	v, _, err := w.look(ctx, known, usualPatience)
	return v, err
}

// look is check that also says what it saw of the witnesses if there is no verdict.
func (w *witness) look(ctx context.Context, known string, patience time.Duration) (verdict, sight, error) {
	if known == "" {
		return gone, allSeen, nil
	}
	if strings.HasPrefix(known, wire.WitnessPrefix) { // LavinMQ; and RabbitMQ before format 2
		v, err := w.lookForQueue(ctx, known)
		return v, allSeen, err
	}
	return w.lookAtNodes(ctx, known, patience)
}

// lookForQueue looks for a witness that is a queue.
func (w *witness) lookForQueue(ctx context.Context, known string) (verdict, error) {
	asking, cancel := context.WithTimeout(ctx, witnessWithin)
	defer cancel()
	exists, err := w.conn.Queues().Exists(asking, known)
	if broker.IsAway(err) { // one that cannot be reached shows nothing
		return gone, nil
	}
	if err != nil || !exists || !w.alone(ctx) {
		return gone, err
	}
	if w.conn.Features().OneNodeServes {
		w.mu.Lock()
		w.standing = known
		w.mu.Unlock()
	}
	return stands, nil
}

// lookAtNodes compares nodes, links and witnesses. Two things decide nothing yet: a management API
// that does not answer, because it may answer again; and a witness alone that is not seen, because
// its node may be overloaded, or another sidecar holds it.
func (w *witness) lookAtNodes(ctx context.Context, known string, patience time.Duration) (verdict, sight, error) {
	nodes, err := w.nodes(ctx)
	switch {
	case err != nil && w.mgmt != nil:
		return undecided, noAnswer, nil
	case err != nil:
		w.log.Warn("scheduler: cannot list the broker's nodes; jobs in flight are delivered again", "error", err)
		return gone, allSeen, nil
	}
	now := broker.FingerprintOf(nodes)
	if !now.Linked() {
		w.log.Warn("scheduler: the broker does not report the links between its nodes; jobs in flight are delivered again")
		return gone, allSeen, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known = known
	_, silent, err := w.identify(ctx, now, seldomHeld, patience)
	switch {
	case err != nil:
		return gone, allSeen, err
	case now.String() == known && len(nodes) > 1:
		return undecided, allSeen, nil
	case now.String() == known:
		return stands, allSeen, nil
	case !sameNodes(now, known):
		w.known = ""
		w.log.Info("scheduler: the broker's nodes or the links between them have changed since the last leader; jobs in flight are delivered again",
			"before", known, "now", now.String())
		return gone, allSeen, nil
	case silent:
		return undecided, noAnswer, nil
	}
	return undecided, oneGone, nil
}

// wait is check that waits for a verdict: until all witnesses were seen, and after that all nodes
// have reported their links again.
func (w *witness) wait(ctx context.Context, known string) (verdict, error) {
	within, cancel := context.WithTimeout(ctx, decideWithin)
	defer cancel()
	var seen looks
	for began := time.Now(); ; {
		nodes, err := w.nodes(within)
		fresh := err == nil && seen.fresh(time.Now(), nodes)
		if fresh { // a node's links follow its uptime by a moment
			_ = pause.For(within, freshLag)
		}
		allowed := usualPatience
		if time.Since(began) > leadsWithin {
			allowed = morePatience
		}
		v, saw, err := w.look(within, known, allowed)
		if err != nil && (ctx.Err() != nil || within.Err() == nil) {
			return gone, err
		}
		if err == nil && v == undecided {
			if v = seen.take(time.Now(), saw, fresh); v == gone {
				w.log.Info("scheduler: a node of the broker has lost its witness; jobs in flight are delivered again")
				w.lost(known)
			}
		}
		if err == nil && v != undecided {
			return v, nil
		}
		if pause.For(within, freshEvery) != nil {
			if ctx.Err() == nil {
				w.log.Warn("scheduler: the broker does not say whether its nodes or the links between them have changed; jobs in flight are delivered again",
					"after", decideWithin, "because", seen.missing())
			}
			return gone, ctx.Err()
		}
	}
}

// lost forgets what a leader wrote down. If this leader repeated it, watch renews it.
func (w *witness) lost(known string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known = ""
	if w.standing == known {
		w.standing = ""
	}
}

// identify completes a fingerprint with the ids of the nodes' witnesses. A node without a witness
// has an empty id, and so has a silent one, which does not answer. It looks for a missing one for a
// while.
func (w *witness) identify(ctx context.Context, f broker.Fingerprint, while, patience time.Duration) (missing, silent bool, err error) {
	names := slices.Collect(maps.Keys(f.Nodes))
	ids, errs := make([]string, len(names)), make([]error, len(names))
	var all sync.WaitGroup
	for i, node := range names {
		all.Go(func() { ids[i], errs[i] = w.conn.Witnesses().ID(ctx, node, while, patience) })
	}
	all.Wait()
	for i, node := range names {
		f.Nodes[node] = ids[i]
		switch {
		case errors.Is(errs[i], broker.ErrSilent):
			silent = true
		case errs[i] != nil:
			return missing, silent, errs[i]
		case ids[i] == "":
			missing = true
		}
	}
	return missing, silent, nil
}

// renew sees to it that every node has a witness, and returns what identifies the broker's run from
// now on; empty if nothing can.
func (w *witness) renew(ctx context.Context) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn.Features().OneNodeServes {
		return w.renewQueue(ctx)
	}
	nodes, err := w.nodes(ctx)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		w.log.Warn("scheduler: jobs in flight when a sidecar dies are delivered again: without the management API nothing shows that they arrived (a broker that is one node needs --single-node)", "error", err)
		w.standing = ""
		return "", nil
	}
	f := broker.FingerprintOf(nodes)
	if !f.Linked() {
		w.log.Warn("scheduler: jobs in flight when a sidecar dies are delivered again: the broker does not report the links between its nodes")
		w.standing = ""
		return "", nil
	}
	while, unchanged := seldomHeld, w.known != "" && sameLinks(f, w.known)
	if unchanged {
		while = heldFor
	}
	missing, silent, err := w.identify(ctx, f, while, usualPatience)
	switch {
	case err != nil:
		return "", err
	case silent && !missing && unchanged && sameNodes(f, w.known):
		// A leader that sees these witnesses later knows that nothing has restarted since they
		// were made.
		w.standing = w.known
		return w.standing, nil
	}
	for _, node := range slices.Sorted(maps.Keys(f.Nodes)) {
		if f.Nodes[node] != "" {
			continue
		}
		id := random()
		if err := w.place(ctx, node, id, len(nodes) == 1); err != nil {
			if errors.Is(err, broker.ErrLost) || ctx.Err() != nil {
				return "", err
			}
			w.log.Warn("scheduler: jobs in flight when a sidecar dies are delivered again: a node takes no witness", "node", node, "error", err)
			w.standing = ""
			return "", nil
		}
		f.Nodes[node] = id
	}
	w.standing = f.String()
	return w.standing, nil
}

// place gives a node a witness.
func (w *witness) place(ctx context.Context, node, id string, alone bool) error {
	ctx, cancel := context.WithTimeout(ctx, placeWithin)
	defer cancel()
	var err error
	if alone {
		err = w.conn.Witnesses().DeclareQueue(ctx, node)
	} else {
		err = w.mgmt.DeclareQueueOn(ctx, broker.WitnessQueue(node), node)
	}
	if err != nil {
		return err
	}
	return w.conn.Witnesses().Make(ctx, node, id)
}

// renewQueue is renew on a broker whose witness is a queue that a restart removes.
func (w *witness) renewQueue(ctx context.Context) (string, error) {
	if w.standing != "" {
		return w.standing, nil
	}
	name := wire.WitnessPrefix + random()
	err := w.conn.Witnesses().DeclareTransient(ctx, name)
	if errors.Is(err, broker.ErrRefused) {
		w.log.Warn("scheduler: the broker takes no queues that are not durable: jobs in flight when a sidecar dies are delivered again", "error", err)
		return "", nil
	}
	w.standing = name
	return name, err
}

// changed reports whether the broker's nodes or links are others than the ones it was renewed with,
// or are known now and were not then.
func (w *witness) changed(ctx context.Context) bool {
	nodes, err := w.nodes(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	now := broker.FingerprintOf(nodes)
	if err != nil || w.conn.Features().OneNodeServes || !now.Linked() {
		return false
	}
	return w.standing == "" || len(nodes) > 1 && !sameLinks(now, w.standing)
}

// current returns what identified the broker's run when that was last looked at.
func (w *witness) current() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.standing
}

// watch renews the witness when the broker's nodes or links have changed, and hands on what then
// identifies its run, until ctx ends.
func (w *witness) watch(ctx context.Context, renewed chan<- string) {
	for pause.For(ctx, watchLinks) == nil {
		if !w.changed(ctx) {
			continue
		}
		before := w.current()
		id, err := w.renew(ctx)
		if err != nil || id == before {
			continue
		}
		w.log.Info("scheduler: the broker's nodes or the links between them have changed")
		select {
		case renewed <- id:
		case <-ctx.Done():
		}
	}
}
