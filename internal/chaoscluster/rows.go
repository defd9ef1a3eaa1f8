package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/wire"
)

// The brokers with clusters under test.
const (
	rabbit310 = "3.10"
	rabbit43  = "4.3"
	lavinMQ   = "lavinmq"
)

var brokers = []string{rabbit310, rabbit43, lavinMQ}

// scope says which jobs may be doubled in a row.
type scope int

const (
	none     scope = iota
	quorums        // open fires of quorum queues, because nothing proves that they arrived
	affected       // open fires of the affected queues; of all queues, if the journal was affected
	open           // all open fires
)

// row is one fault, with the promises of Millrace for it.
type row struct {
	number  int
	name    string
	do      func(context.Context, *world) error
	doubled scope
	// still is the longest standstill in seconds, by broker, on a machine that is not overloaded. A
	// broker that is not in the map is left out.
	still map[string]float64
	// failover is set if a node goes away that may be LavinMQ's leader. Then open fires may be
	// doubled on LavinMQ, and still begins when LavinMQ serves again.
	failover bool
	// follows is set if RabbitMQ's streams may stand still for longer than the bound. Then firing
	// must begin within this many seconds after they are served again.
	follows float64
	// own means that the affected queues get jobs within five seconds after the end of the fault.
	own        bool
	undeclared bool // the queues are declared by Millrace
	upgrades   bool // the sidecars begin with an older version, which takes one host
	// nodesStay means that no node goes away, so the broker knows which jobs it has delivered
	// before.
	nodesStay bool
	// silent means that the management API does not answer while the fault lasts. A leader that
	// begins then does not know which queues are quorum queues.
	silent bool
	// quorumByDefault makes quorum queues the default queue type of the virtual host.
	quorumByDefault bool
	messages        bool // the jobs are delayed messages
	flow            func(*world) flow
}

// addedToFailover is what Millrace may add to a failover of LavinMQ, or to the return of its node.
const addedToFailover = 3

func every(seconds float64) map[string]float64 {
	return map[string]float64{rabbit310: seconds, rabbit43: seconds, lavinMQ: seconds}
}

func cluster(seconds, lavin float64) map[string]float64 {
	return map[string]float64{rabbit310: seconds, rabbit43: seconds, lavinMQ: lavin}
}

func rabbits(seconds float64) map[string]float64 {
	return map[string]float64{rabbit310: seconds, rabbit43: seconds}
}

// unbounded is the standstill of a row in which the broker itself serves no client until its nodes
// are back.
const unbounded = math.MaxFloat64

// frozenNode is the latest time at which RabbitMQ's other nodes consider a frozen node dead, and
// the time that the streams then need.
const frozenNode = 1.25*15 + 5

func rows() []row {
	return []row{
		{number: 1, name: "sidecar killed", do: sidecarKilled, doubled: quorums, still: every(1.5), nodesStay: true},
		{number: 2, name: "sidecar frozen", do: sidecarFrozen, doubled: quorums, still: every(16), nodesStay: true},
		{number: 3, name: "node of the leader's connection killed", do: leadersNodeKilled, doubled: open, failover: true, still: cluster(5, addedToFailover), own: true, follows: claimed},
		{number: 4, name: "node of a stream's leader killed", do: streamsNodeKilled, doubled: affected, still: rabbits(5), own: true, follows: claimed},
		{number: 5, name: "home of a classic queue killed", do: homeKilled, doubled: affected, failover: true, still: cluster(1, addedToFailover), own: true, follows: 1},
		{number: 6, name: "leader of a quorum queue killed", do: quorumKilled, doubled: affected, still: rabbits(5), follows: claimed},
		{number: 7, name: "home and leading sidecar killed together", do: homeAndSidecarKilled,
			// On a cluster with a dead node, nothing proves a delivery.
			doubled: open, failover: true,
			still: cluster(5, addedToFailover), own: true, follows: claimed},
		{number: 8, name: "each node stopped in turn", do: rolling(5*time.Second, 15*time.Second), doubled: open, failover: true, still: cluster(5, addedToFailover), follows: claimed},
		{number: 9, name: "leader's node cut off", do: cutOff, doubled: open,
			// RabbitMQ 4 passes the lock on when the node has been silent for a while. A node of
			// RabbitMQ 3 closes its connections.
			still: map[string]float64{rabbit310: 5, rabbit43: 5 + wire.LeaderWait.Seconds()}},
		{number: 10, name: "link broken for 100 ms, sidecar killed meanwhile", do: linkBroken, doubled: open,
			// pause_minority restarts two of the three nodes. After 10 s, the leader gives up a
			// publish that was lost on the link.
			still: map[string]float64{rabbit310: unbounded, rabbit43: 15}},
		{number: 11, name: "leader's node frozen", do: nodeFrozen, doubled: open, failover: true, silent: true, still: cluster(frozenNode, addedToFailover), follows: afterBack},
		{number: 12, name: "node of the dead letters away", do: deadLettersAway, doubled: affected, still: rabbits(1), follows: 1},
		{number: 13, name: "new queue, leader killed in its first seconds", do: newQueue, doubled: quorums, still: every(5), nodesStay: true},
		{number: 14, name: "quorum queues by default", do: nothing, nodesStay: true, undeclared: true, quorumByDefault: true, still: map[string]float64{rabbit43: 1.5}},
		{number: 15, name: "two nodes of three away", do: twoAway, doubled: open, still: rabbits(unbounded), own: true},
		{number: 16, name: "each node stopped for 15 s in turn", do: rolling(15*time.Second, 15*time.Second), doubled: open, failover: true, still: cluster(5, addedToFailover), follows: claimed},
		{number: 17, name: "rolling upgrade from an older version", do: upgrade, doubled: open, nodesStay: true, upgrades: true, still: every(5)},
		{number: 18, name: "delayed messages, sidecars and nodes killed", do: inTurn(sidecarKilled, leadersNodeKilled, homeAndSidecarKilled), doubled: open, messages: true, failover: true, still: cluster(5, addedToFailover), follows: claimed},
		{number: 19, name: "delayed messages, leader's node frozen", do: nodeFrozen, doubled: open, messages: true, failover: true, silent: true, still: cluster(frozenNode, addedToFailover), follows: afterBack},
		flowing(20, "limited jobs", newLimits),
		flowing(21, "unique jobs", newUnique),
		flowing(22, "governed queues", newGoverned),
		flowing(23, "periodic jobs", newPeriodic),
		{number: 24, name: "full governed queues, node of jobs.full away", flow: newFull, do: fullAway, doubled: affected, still: rabbits(5), follows: claimed},
	}
}

// flowing returns a row in which other work is done beside the jobs, while everything breaks that
// can. The other rows bound for how long jobs stand still.
func flowing(number int, name string, f func(*world) flow) row {
	return row{number: number, name: name, flow: f, do: inTurn(sidecarKilled, leadersNodeKilled, cutOff, sidecarFrozen), doubled: open, still: rabbits(unbounded)}
}

// runsOn reports whether the row has a bound for this broker.
func (r row) runsOn(broker string) bool {
	_, named := r.still[broker]
	return named
}

// scope returns which jobs may be doubled on this broker.
func (r row) scope(broker string) scope {
	switch {
	case broker != lavinMQ:
		return r.doubled
	case r.failover:
		return open
	}
	return none
}

func nothing(ctx context.Context, w *world) error {
	w.mark()
	return pause.For(ctx, w.lasting(5*time.Second, 30*time.Second))
}

func sidecarKilled(ctx context.Context, w *world) error {
	for range w.size(5, 50) {
		if err := errors.Join(w.flows(ctx, w.rate), pause.For(ctx, w.upTo(time.Second))); err != nil {
			return err
		}
		s, _, err := w.leader()
		if err != nil {
			return err
		}
		w.mark()
		s.kill()
		if err := errors.Join(w.flows(ctx, 1), s.start()); err != nil {
			return err
		}
	}
	return nil
}

func sidecarFrozen(ctx context.Context, w *world) error {
	s, _, err := w.leader()
	if err != nil {
		return err
	}
	w.mark()
	p := s.process()
	if err := errors.Join(p.Freeze(), pause.For(ctx, w.lasting(20*time.Second, 40*time.Second)), p.Thaw()); err != nil {
		return err
	}
	if s, _, err = w.leader(); err != nil {
		return err
	}
	// The same for the network: the sidecar keeps running, and nothing reaches it.
	if err := errors.Join(w.flows(ctx, w.rate), pause.For(ctx, w.upTo(time.Second))); err != nil {
		return err
	}
	w.mark()
	for i, other := range w.slots {
		if other != s {
			continue
		}
		for _, t := range w.taps[i] {
			t.freeze()
			defer t.thaw()
		}
	}
	return pause.For(ctx, w.lasting(20*time.Second, 40*time.Second))
}

// upgrade stops each sidecar in turn, and starts the newer version in its place.
func upgrade(ctx context.Context, w *world) error {
	for _, s := range w.slots {
		if err := w.flows(ctx, w.rate); err != nil {
			return err
		}
		w.mark()
		// An older sidecar ends with an error once a newer one leads.
		_ = s.stop()
		if err := s.startAs(w.binary); err != nil {
			return err
		}
		if err := eventually(ctx, startWithin, "the newer sidecar answers", func() bool { return s.process().Ready() }); err != nil {
			return err
		}
	}
	return w.flows(ctx, w.rate)
}

func newQueue(ctx context.Context, w *world) error {
	consumed, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	made := map[string]bool{}
	for i := range w.size(5, 20) {
		if err := w.flows(ctx, w.rate); err != nil {
			return err
		}
		queue := fmt.Sprintf("new%d", i)
		made[queue] = true
		all.Go(func() { w.consume(consumed, queue, i%len(w.nodes.Nodes)) })
		if err := w.burst(ctx, queue, w.size(300, 2000)); err != nil {
			return err
		}
		s, _, err := w.leader()
		if err != nil {
			return err
		}
		if err := pause.For(ctx, w.upTo(time.Second)); err != nil {
			return err
		}
		w.mark()
		s.kill()
		if err := errors.Join(w.flows(ctx, 1), s.start()); err != nil {
			return err
		}
	}
	// Jobs that are missing then are found at the end.
	err := eventually(ctx, w.patience, "the jobs of the new queues arrive", func() bool {
		w.jobs.mu.Lock()
		defer w.jobs.mu.Unlock()
		return !w.jobs.anyMissing(made)
	})
	if errors.Is(err, errNotWithin) {
		return nil
	}
	return err
}

// burst publishes jobs that are due now.
func (w *world) burst(ctx context.Context, queue string, n int) error {
	conn, err := w.dial(0)
	if err != nil {
		return err
	}
	defer conn.Close()
	p, err := w.jobs.publisher(conn)
	if err != nil {
		return err
	}
	var entries []entry
	for i := range n {
		entries = append(entries, entry{fmt.Sprintf("%s-%s-%05d", w.vhost, queue, i), queue, time.Now()})
	}
	return p.publish(ctx, entries)
}
