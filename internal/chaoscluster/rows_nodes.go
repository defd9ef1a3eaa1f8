package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-jobs/millrace/internal/pause"
)

// nodeAway kills a node for a while. It calls with in the same moment.
func (w *world) nodeAway(ctx context.Context, node int, with func(), queues ...string) error {
	if err := pause.For(ctx, w.upTo(time.Second)); err != nil {
		return err
	}
	ledJournal := w.nodes.home(ctx, w.vhost, "job_journal") == node
	f := w.mark(queues...)
	f.journal = ledJournal
	if err := w.nodes.kill(node); err != nil {
		return err
	}
	with()
	away := w.lasting(10*time.Second, 35*time.Second)
	// LavinMQ fails over, and has a leader again, before a sidecar can name the node.
	if w.nodes.kind == lavinMQ {
		away = max(away, 25*time.Second)
	}
	return w.nodeBack(ctx, node, f, away)
}

func (w *world) nodeBack(ctx context.Context, node int, f *fault, after time.Duration) error {
	return w.away(ctx, node, f, after, func() error { return w.nodes.back(ctx, node) })
}

// away waits, and then calls back to bring the node back. It checks that sidecars report the node
// as away meanwhile, in their answers and in a log, and none does afterwards.
func (w *world) away(ctx context.Context, node int, f *fault, after time.Duration, back func() error) error {
	namedWithin := w.slacken(10 * time.Second)
	name, named := w.nodes.name(node), map[string]bool{}
	for until := time.Now().Add(after); time.Now().Before(until); {
		for _, path := range w.naming(f, name) {
			named[path] = true
		}
		if err := pause.For(ctx, min(time.Until(until), 500*time.Millisecond)); err != nil {
			return err
		}
	}
	if err := back(); err != nil {
		return err
	}
	f.back = time.Now()
	// While LavinMQ has no leader, all of its nodes refuse connections, and nothing shows which is
	// away.
	if w.nodes.kind == lavinMQ {
		after -= w.brokerAway(f.from, f.back)
	}
	for _, path := range reports {
		if !named[path] && after >= namedWithin {
			w.mute = append(w.mute, name+" was away, and no sidecar said so in "+path)
		}
	}
	return w.namesNoMore(ctx, f, node)
}

// namesNoMore checks that no sidecar reports any of these nodes as away a while after they are
// back.
func (w *world) namesNoMore(ctx context.Context, f *fault, nodes ...int) error {
	for _, node := range nodes {
		name := w.nodes.name(node)
		err := eventually(ctx, w.slacken(30*time.Second), "no sidecar says that "+name+" is away", func() bool { return len(w.naming(f, name)) == 0 })
		if errors.Is(err, errNotWithin) {
			w.mute = append(w.mute, fmt.Sprintf("%s was back, and a sidecar said in %v that it was away", name, w.naming(f, name)))
		} else if err != nil {
			return err
		}
	}
	return nil
}

// slacken extends a time limit by the slack of this machine.
func (w *world) slacken(d time.Duration) time.Duration { return time.Duration(float64(d) * w.slack) }

// reports are where a sidecar names a node that is away: two answers, and its log.
var reports = []string{"/readyz", "/api/attention", theLog}

const theLog = "its log"

// naming returns the reports in which a sidecar names a node as away now. It asks all sidecars at
// once: one may take seconds to answer.
func (a *sidecars) naming(f *fault, node string) (paths []string) {
	var asked sync.WaitGroup
	named := make([]atomic.Bool, len(reports))
	for i, path := range reports {
		for n, s := range a.slots {
			asked.Go(func() {
				if s.names(path, f.logs[n], node) {
					named[i].Store(true)
				}
			})
		}
	}
	asked.Wait()
	for i, path := range reports {
		if named[i].Load() {
			paths = append(paths, path)
		}
	}
	return paths
}

// names reports whether a sidecar names a node as away now. logFrom is where its log of the fault
// begins.
func (s *slot) names(path string, logFrom int64, node string) bool {
	if path == theLog {
		away, err := s.logged(logFrom, node)
		return err == nil && away
	}
	_, answer, err := s.process().Do(http.MethodGet, path, "")
	return err == nil && strings.Contains(string(answer), node)
}

func nothingElse() {}

func leadersNodeKilled(ctx context.Context, w *world) error {
	_, node, err := w.leader()
	if err != nil {
		return err
	}
	if w.nodes.kind == lavinMQ {
		return w.nodeAway(ctx, w.nodes.Leading(ctx), nothingElse)
	}
	return w.nodeAway(ctx, node, nothingElse, classic(node))
}

func streamsNodeKilled(ctx context.Context, w *world) error {
	for _, stream := range []string{"job_journal", "scheduled_jobs", "retries", "dead_jobs"} {
		_, leads, err := w.leader()
		if err != nil {
			return err
		}
		if node := w.nodes.home(ctx, w.vhost, stream); node != -1 && node != leads {
			return w.nodeAway(ctx, node, nothingElse, classic(node))
		}
	}
	node := w.nodes.home(ctx, w.vhost, "job_journal")
	if err := w.leadElsewhere(ctx, node); err != nil {
		return err
	}
	return w.nodeAway(ctx, node, nothingElse, classic(node))
}

// otherNode returns a node to which the leader is not connected.
func (w *world) otherNode() (int, *slot, error) {
	s, node, err := w.leader()
	return (node + 1 + w.random.IntN(len(w.nodes.Nodes)-1)) % len(w.nodes.Nodes), s, err
}

func homeKilled(ctx context.Context, w *world) error {
	if w.nodes.kind == lavinMQ {
		return w.nodeAway(ctx, w.nodes.Leading(ctx), nothingElse)
	}
	node, _, err := w.otherNode()
	if err != nil {
		return err
	}
	return w.nodeAway(ctx, node, nothingElse, classic(node))
}

func quorumKilled(ctx context.Context, w *world) error {
	node, _, err := w.otherNode()
	if err != nil {
		return err
	}
	var led []string
	for i := range w.nodes.Nodes {
		if w.nodes.home(ctx, w.vhost, w.jobs.named(quorum(i))) == node {
			led = append(led, quorum(i))
		}
	}
	return w.nodeAway(ctx, node, nothingElse, append(led, classic(node))...)
}

func homeAndSidecarKilled(ctx context.Context, w *world) error {
	node, s, err := w.otherNode()
	if err != nil {
		return err
	}
	queues := []string{classic(node)}
	if w.nodes.kind == lavinMQ {
		node, queues = w.nodes.Leading(ctx), nil
	}
	if err := w.nodeAway(ctx, node, s.kill, queues...); err != nil {
		return err
	}
	return s.start()
}

func rolling(small, full time.Duration) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		for node := range w.nodes.Nodes {
			if err := w.flows(ctx, w.rate); err != nil {
				return err
			}
			f := w.mark(classic(node))
			if err := errors.Join(w.nodes.halt(ctx, node), w.nodeBack(ctx, node, f, w.lasting(small, full))); err != nil {
				return err
			}
			if err := w.nodes.healthy(ctx, startWithin); err != nil {
				return err
			}
		}
		return nil
	}
}

func cutOff(ctx context.Context, w *world) error {
	_, node, err := w.leader()
	if err != nil {
		return err
	}
	f := w.mark(append(w.consumedAt(node), classic(node))...)
	if err := w.nodes.Cut(ctx, node); err != nil {
		return err
	}
	return w.away(ctx, node, f, w.lasting(15*time.Second, 35*time.Second), func() error {
		f.stuck = w.nodes.streamsLedBy(ctx, w.vhost, node)
		if err := w.nodes.Heal(ctx, node); err != nil {
			return err
		}
		return w.nodes.healthy(ctx, startWithin)
	})
}

func linkBroken(ctx context.Context, w *world) error {
	s, node, err := w.leader()
	if err != nil {
		return err
	}
	other, _, err := w.otherNode()
	if err != nil {
		return err
	}
	f := w.mark(classic(node), classic(other))
	if err := w.nodes.Blip(ctx, node, other, 100*time.Millisecond, s.kill); err != nil {
		return err
	}
	err = w.nodes.healthy(ctx, startWithin)
	f.back = time.Now()
	if err := errors.Join(err, s.start()); err != nil {
		return err
	}
	// No sidecar need name a node: both may be back before sidecars look at the nodes again, which
	// they do every five seconds.
	return w.namesNoMore(ctx, f, node, other)
}

func nodeFrozen(ctx context.Context, w *world) error {
	_, node, err := w.leader()
	if err != nil {
		return err
	}
	if w.nodes.kind == lavinMQ {
		node = w.nodes.Leading(ctx)
	}
	f := w.mark(classic(node))
	if w.nodes.kind == lavinMQ {
		f.affected = nil
	}
	if err := w.nodes.Nodes[node].Freeze(); err != nil {
		return err
	}
	return w.away(ctx, node, f, w.lasting(35*time.Second, 80*time.Second), func() error {
		if w.nodes.kind != lavinMQ {
			f.stuck = w.nodes.streamsLedBy(ctx, w.vhost, node)
		}
		restarted, err := w.nodes.thaw(ctx, node)
		w.restarted = w.restarted || restarted
		return err
	})
}

func deadLettersAway(ctx context.Context, w *world) error {
	for _, queue := range []string{"jobs.letters", "jobs.deadletters"} {
		node := w.nodes.home(ctx, w.vhost, queue)
		if node == -1 {
			continue
		}
		if err := w.leadElsewhere(ctx, node); err != nil {
			return err
		}
		return w.nodeAway(ctx, node, nothingElse, classic(node))
	}
	return errors.New("there is no queue of dead letters")
}

func twoAway(ctx context.Context, w *world) error {
	first := w.random.IntN(len(w.nodes.Nodes))
	second := (first + 1) % len(w.nodes.Nodes)
	f := w.mark(w.queues...)
	if err := errors.Join(w.nodes.kill(first), w.nodes.kill(second), pause.For(ctx, w.lasting(10*time.Second, 35*time.Second))); err != nil {
		return err
	}
	errs := make([]error, 2)
	var both sync.WaitGroup
	for i, node := range []int{first, second} {
		both.Go(func() { errs[i] = w.nodes.back(ctx, node) })
	}
	both.Wait()
	f.back = time.Now()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	// No sidecar need name the two nodes while they are away: the third node pauses, and no
	// management API is left that answers.
	third := len(w.nodes.Nodes) - first - second
	return w.namesNoMore(ctx, f, first, second, third)
}
