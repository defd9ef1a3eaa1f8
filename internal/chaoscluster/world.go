package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/internal/sidecar"
)

// world is one run of a row: a virtual host, sidecars, jobs, and the faults.
type world struct {
	options
	nodes     *nodes
	log       *slog.Logger
	random    *rand.Rand
	vhost     string
	truth     *truth
	jobs      *jobs
	pulses    []*pulse
	queues    []string // as jobs name them
	consumers sync.Map // the address to which the consumer of each is connected
	sidecars
	observed
	flow   flow // nil: nothing is done beside the jobs
	all    sync.WaitGroup
	cancel context.CancelFunc
}

// sidecars are the sidecars of a run, each behind its own taps.
type sidecars struct {
	dir    string
	starts string   // the binary of the first ones
	taps   [][]*tap // by sidecar and node
	slots  []*slot
}

// observed is what a run has shown besides its jobs.
type observed struct {
	faults    []*fault
	mute      []string  // what sidecars did not say about nodes, or said for too long
	restarted bool      // a node that was frozen had to be restarted
	ended     time.Time // when all jobs had arrived, or the run gave up
}

// fault is one fault, with the queues that it affects.
type fault struct {
	from     time.Time
	back     time.Time       // when the fault was repaired
	affected map[string]bool // queues that may get no jobs meanwhile
	logs     []int64         // how long the sidecars' logs were when it began
	stuck    []string        // streams that the broker gave no other leader
	// journal is set if the journal's leader was on the node. Then open fires of any queue may have
	// no answer.
	journal bool
}

func (w *world) jid(n int) string { return fmt.Sprintf("%s-%07d", w.vhost, n) }

// startWithin limits how long sidecars may take to be ready.
const startWithin = 3 * time.Minute

// begin creates the virtual host and starts the sidecars.
func (w *world) begin(ctx context.Context, r row) error {
	path := "/api/vhosts/" + url.PathEscape(w.vhost)
	body := map[string]any{}
	if r.quorumByDefault {
		body["default_queue_type"] = "quorum"
	}
	if err := w.nodes.api(ctx, http.MethodPut, path, body, nil); err != nil {
		return err
	}
	rights := map[string]string{"configure": ".*", "write": ".*", "read": ".*"}
	if err := w.nodes.api(ctx, http.MethodPut, "/api/permissions/"+url.PathEscape(w.vhost)+"/guest", rights, nil); err != nil {
		return err
	}
	if !r.undeclared {
		if err := w.declareQueues(); err != nil {
			return err
		}
	}
	if err := w.startSidecars(); err != nil {
		return err
	}
	ctx, w.cancel = context.WithCancel(ctx)
	for i, s := range w.slots {
		w.all.Go(func() { s.supervise(ctx) })
		if err := eventually(ctx, startWithin, fmt.Sprintf("sidecar %d is ready", i), func() bool { return s.process().Ready() }); err != nil {
			return err
		}
	}
	for i, q := range w.queues {
		w.all.Go(func() { w.consume(ctx, q, i) })
	}
	if err := w.beginPulses(ctx); err != nil {
		return err
	}
	return w.warmUp(ctx)
}

// declareQueues declares a classic queue on each node, and quorum queues.
func (w *world) declareQueues() error {
	for i := range w.nodes.Nodes {
		if err := w.declareOn(i, w.jobs.named(classic(i)), amqp.Table{"x-max-priority": int32(10)}); err != nil {
			return err
		}
		if w.nodes.kind == lavinMQ {
			continue
		}
		if err := w.declareOn(i, w.jobs.named(quorum(i)), amqp.Table{"x-queue-type": "quorum"}); err != nil {
			return err
		}
	}
	if w.jobs.messages {
		return declareMessages(w)
	}
	return nil
}

func classic(node int) string { return fmt.Sprintf("classic%d", node+1) }
func quorum(node int) string  { return fmt.Sprintf("quorum%d", node+1) }

func isQuorum(queue string) bool { return strings.HasPrefix(queue, "quorum") || queue == messageQueue }

// startSidecars starts one sidecar for each node, with a tap before each node.
func (w *world) startSidecars() error {
	for i := range w.nodes.Nodes {
		var taps []*tap
		for n, b := range w.nodes.Nodes {
			u, err := url.Parse(b.AMQPURL())
			if err != nil {
				return err
			}
			t, err := newTap(w.truth, i, n, u.Host)
			if err != nil {
				return err
			}
			taps = append(taps, t)
		}
		w.taps = append(w.taps, taps)
		s, err := newSlot(w.sidecar(i), w.sidecars.dir)
		if err != nil {
			return err
		}
		w.slots = append(w.slots, s)
	}
	return nil
}

// sidecar returns the configuration of one sidecar: with the addresses of its own node, or of all
// nodes.
func (w *world) sidecar(i int) sidecar.Config {
	hosts, management := []string{w.taps[i][i].address()}, []string{w.nodes.Nodes[i].ManagementURL()}
	if w.hosts == "all" {
		hosts, management = nil, nil
		for n, b := range w.nodes.Nodes {
			hosts, management = append(hosts, w.taps[i][n].address()), append(management, b.ManagementURL())
		}
	}
	for n := range management {
		if n > 0 {
			management[n] = management[n][strings.Index(management[n], "@")+1:]
		}
	}
	var more []string
	if w.jobs.messages {
		more = []string{"--deliver-to", messageExchange}
	}
	return sidecar.Config{
		Binary: w.starts, More: more, Identity: fmt.Sprintf("s%d", i+1), LogLevel: "debug",
		AMQPURL:       "amqp://guest:guest@" + strings.Join(hosts, ",") + "/" + w.vhost,
		ManagementURL: strings.Join(management, ","),
	}
}

// warmUp sends one job through each queue, so that all queues are bound.
func (w *world) warmUp(ctx context.Context) error {
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
	for _, q := range w.queues {
		entries = append(entries, entry{w.vhost + "-warm-" + q, q, time.Now()})
	}
	if err := p.publish(ctx, entries); err != nil {
		return err
	}
	if err := eventually(ctx, startWithin, "the first jobs arrive", func() bool { return len(w.jobs.missing()) == 0 }); err != nil {
		return fmt.Errorf("%w: %w", errStandstill, err)
	}
	return nil
}

// end stops everything that the run started, and deletes the virtual host.
func (w *world) end(ctx context.Context) error {
	var errs []error
	if w.flow != nil {
		w.flow.close()
	}
	for _, s := range w.slots {
		s.kill()
		errs = append(errs, s.log.Close())
	}
	if w.cancel != nil {
		w.cancel()
	}
	w.all.Wait()
	for _, taps := range w.taps {
		for _, t := range taps {
			errs = append(errs, t.close())
		}
	}
	// A virtual host that cannot be deleted now does no harm, because each run has its own.
	_ = w.nodes.api(ctx, http.MethodDelete, "/api/vhosts/"+url.PathEscape(w.vhost), nil, nil)
	return errors.Join(errs...)
}

// flows waits until jobs arrive.
func (w *world) flows(ctx context.Context, more int) error {
	was := w.jobs.arrived()
	err := eventually(ctx, time.Minute, "jobs come", func() bool { return w.jobs.arrived() >= was+more })
	if errors.Is(err, errNotWithin) {
		return fmt.Errorf("%w: %w", errStandstill, err)
	}
	return err
}

// drain waits until all jobs that must arrive have arrived, and nothing more does. A fire without
// an answer may be repeated after half a minute.
func (w *world) drain(ctx context.Context) error {
	const quiet, repeated = 2 * time.Second, 35 * time.Second
	for began := time.Now(); ; {
		since := time.Since(w.jobs.last())
		nothingMore := since > quiet && w.truth.open().total == 0 || since > repeated && time.Since(began) > repeated
		if since > w.patience && time.Since(began) > w.patience || nothingMore && len(w.jobs.missing()) == 0 {
			return nil
		}
		if err := pause.For(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// leader returns the leading sidecar, and the node that it is connected to.
func (w *world) leader() (*slot, int, error) {
	s, n, ok := w.truth.leader()
	if !ok {
		return nil, 0, errors.New("no sidecar has fired")
	}
	return w.slots[s], n, nil
}

// leadElsewhere changes the leader until it is not connected to this node.
func (w *world) leadElsewhere(ctx context.Context, node int) error {
	for range 6 {
		s, n, err := w.leader()
		if err != nil || n != node {
			return err
		}
		if err := s.stop(); err != nil {
			return err
		}
		if err := w.flows(ctx, w.rate); err != nil {
			return err
		}
		if err := s.start(); err != nil {
			return err
		}
	}
	return fmt.Errorf("the leader stays connected to node %d", node)
}

// mark records the beginning of a fault, and the queues that it affects.
func (w *world) mark(affected ...string) *fault {
	f := &fault{from: time.Now(), affected: map[string]bool{}, logs: w.logEnds()}
	for _, q := range affected {
		f.affected[q] = true
	}
	w.faults = append(w.faults, f)
	return f
}

// size returns small, or full with the flag -full.
func (w *world) size(small, full int) int {
	if w.full {
		return full
	}
	return small
}

func (w *world) lasting(small, full time.Duration) time.Duration {
	if w.full {
		return full
	}
	return small
}

// upTo returns a random part of a time, because the moment of a fault is random.
func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.random.Int64N(int64(d))) }
