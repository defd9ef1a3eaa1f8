package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// result is one run of a row, as in the results file.
type result struct {
	Time        string         `json:"time"`
	Commit      string         `json:"commit"`
	Broker      string         `json:"broker"`
	Row         int            `json:"row"`
	Name        string         `json:"name"`
	Run         int            `json:"run"`
	Seed        uint64         `json:"seed"`
	Hosts       string         `json:"hosts"`
	Full        bool           `json:"full"`
	Rate        int            `json:"rate"`
	Slack       float64        `json:"slack"`
	Jobs        int            `json:"jobs"`   // confirmed
	Unsure      int            `json:"unsure"` // published and not confirmed
	Lost        int            `json:"lost"`
	Losses      losses         `json:"losses"`
	Gap         string         `json:"gap,omitempty"` // why a sidecar holds pending jobs
	Doubled     doubles        `json:"doubled"`
	ByQueue     map[string]int `json:"doubled_by_queue,omitempty"`
	Redelivered int            `json:"redelivered"`
	Again       int            `json:"again"` // copies of one fire, not marked as redelivered
	Open        int            `json:"open"`  // most fires without an answer at the same time
	OpenOf      map[string]int `json:"open_by_queue,omitempty"`
	Faults      int            `json:"faults"`
	Standstill  float64        `json:"standstill"` // seconds, of queues that were not affected
	Slowest     float64        `json:"slowest"`    // of the slowest of these queues
	SlowestName string         `json:"slowest_queue,omitempty"`
	Own         float64        `json:"own"`  // of the affected queues
	Away        float64        `json:"away"` // how long the broker served no other client
	// Restarted means that a node that was frozen did not rejoin the others, and was restarted.
	Restarted bool   `json:"restarted,omitempty"`
	Flow      string `json:"flow,omitempty"` // what was done beside the jobs
	// Stuck has the streams that the broker gave no other leader while theirs was cut off. Then
	// nothing can be fired.
	Stuck []string `json:"stuck,omitempty"`
	// AfterBack is the time from the end of the fault until an affected queue got jobs again.
	AfterBack float64           `json:"after_back"`
	Exits     int               `json:"sidecar_exits"`        // sidecars that exited by themselves
	LastLines []string          `json:"last_lines,omitempty"` // what each of these logged last
	Epochs    int               `json:"epochs"`               // in the journal
	Load      string            `json:"load"`                 // of the machine, at the end
	Took      float64           `json:"took"`                 // seconds
	Broken    []string          `json:"broken"`               // broken bounds
	Error     string            `json:"error,omitempty"`      // why the run is void
	LostJIDs  []string          `json:"lost_jids,omitempty"`
	Examples  map[string]string `json:"examples,omitempty"`
}

// runRow runs a row once. An error makes the run void, and is part of the result.
func runRow(ctx context.Context, o options, r row, run int, n *nodes, dir string, log *slog.Logger) result {
	began := time.Now()
	res := result{Time: began.UTC().Format(time.RFC3339), Commit: o.commit, Broker: o.broker, Row: r.number, Name: r.name, Run: run,
		Seed: o.seed, Hosts: o.hosts, Full: o.full, Rate: o.rate, Slack: o.slack, Broken: []string{}}
	w := &world{options: o, nodes: n, log: log, truth: newTruth(), jobs: newJobs(), sidecars: sidecars{dir: filepath.Join(dir, "sidecars")},
		random: rand.New(rand.NewPCG(o.seed, uint64(r.number))), //nolint:gosec // not negative
		vhost:  fmt.Sprintf("row%d-%d-%d", r.number, run, began.UnixMilli()%1e6)}
	if w.starts = o.binary; r.upgrades {
		w.starts, w.hosts = o.older, "one"
	}
	for i := range n.Nodes {
		w.queues = append(w.queues, classic(i))
		if o.broker != lavinMQ && !r.quorumByDefault {
			w.queues = append(w.queues, quorum(i))
		}
	}
	w.jobs.messages = r.messages
	if r.flow != nil {
		w.flow = r.flow(w)
		w.rate = max(1, w.rate/3) // the jobs are not all that is done
	}
	err := os.MkdirAll(w.sidecars.dir, 0o700)
	if err == nil {
		err = w.run(ctx, r, &res)
	}
	if errors.Is(err, errStandstill) {
		res.Broken, err = append(res.Broken, err.Error()), nil
	}
	if err := errors.Join(err, w.end(ctx)); err != nil {
		res.Error = err.Error()
	}
	res.Took = time.Since(began).Seconds()
	text, _ := os.ReadFile("/proc/loadavg")
	res.Load, _, _ = strings.Cut(string(text), " ")
	return res
}

func (w *world) run(ctx context.Context, r row, res *result) error {
	if err := w.begin(ctx, r); err != nil {
		return err
	}
	f := &feed{w: w, queues: w.queues, next: time.Now().Add(time.Second)}
	stop := f.start(ctx)
	defer stop()
	if err := w.flows(ctx, w.rate); err != nil {
		return err
	}
	watched, cancel := context.WithCancel(ctx)
	defer cancel()
	peaks := w.watchOpen(watched)
	stood := withFlow(ctx, w, r)
	if stood != nil && !errors.Is(stood, errStandstill) {
		return stood
	}
	stop()
	if err := w.drain(ctx); err != nil {
		return err
	}
	w.ended = time.Now()
	cancel()
	most := <-peaks
	res.Open, res.OpenOf = most.total, most.ofQueue
	for _, s := range w.slots {
		if o, ok, err := s.process().Overview(); ok && err == nil && o.Scheduler.Gap != "" {
			res.Gap = o.Scheduler.Gap
		}
		_ = s.stop() // one that does not end in time is killed
		res.Exits += s.exits
		res.LastLines = append(res.LastLines, s.last...)
	}
	log, err := w.read(ctx)
	if err != nil {
		return err
	}
	return errors.Join(stood, w.reckon(r, res, log))
}

// peak is the most fires that were without an answer at the same time.
type peak struct {
	total   int
	ofQueue map[string]int
}

func (w *world) watchOpen(ctx context.Context) <-chan peak {
	found := make(chan peak, 1)
	go func() {
		most := peak{ofQueue: map[string]int{}}
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				found <- most
				return
			case <-tick.C:
				now := w.truth.open()
				most.total = max(most.total, now.total)
				for queue, n := range now.of {
					most.ofQueue[queue] = max(most.ofQueue[queue], n)
				}
			}
		}
	}()
	return found
}

// read reads the journal and the stored entries, through any node that has them all.
func (w *world) read(ctx context.Context) (j *journal, err error) {
	for i := range w.nodes.Nodes {
		conn, dialled := w.dialNode(i)
		if err = dialled; err != nil {
			continue
		}
		if j, err = readJournal(ctx, conn); err == nil {
			w.jobs.stored, err = readStored(ctx, conn)
		}
		_ = conn.CloseDeadline(time.Now().Add(dialLimit))
		if err == nil {
			return j, nil
		}
	}
	return nil, err
}

// Millrace's limits of open fires: for all queues, for one classic queue of a RabbitMQ cluster, for
// one quorum queue, and for those that have had no answer for some seconds, in addition.
const (
	window        = 1024
	windowClassic = 512
	windowQuorum  = 64
	setAside      = 4096
)

func (w *world) windowOf(r row, queue string) int {
	switch {
	case w.broker == lavinMQ:
		return window
	case isQuorum(queue) && !r.silent:
		return windowQuorum
	default:
		return windowClassic
	}
}

func (w *world) boundOpen(r row, res *result, must func(bool, string, ...any)) {
	must(res.Open <= window+setAside, "%d fires were open: more than %d", res.Open, window+setAside)
	for queue, n := range res.OpenOf {
		limit := w.windowOf(r, queue)
		must(n <= limit, "%d fires of %s were open: more than %d", n, queue, limit)
	}
}

// reckon completes the result, and compares it with the bounds.
func (w *world) reckon(r row, res *result, log *journal) error {
	j := w.jobs
	lost := j.missing()
	j.mu.Lock()
	defer j.mu.Unlock()
	w.truth.mu.Lock()
	defer w.truth.mu.Unlock()
	for _, job := range j.all {
		if job.sure {
			res.Jobs++
		} else {
			res.Unsure++
		}
	}
	res.Lost, res.Losses, res.LostJIDs = len(lost), countLosses(lost, w.truth), lost[:min(len(lost), 20)]
	res.Doubled, res.Redelivered, res.Epochs, res.Faults = countDoubles(j, w.truth, log), j.redelivered, len(log.opened), len(w.faults)
	res.Again, res.Restarted = j.again, w.restarted
	res.ByQueue, res.Examples = res.Doubled.byQueue, res.Doubled.example
	must := func(holds bool, format string, args ...any) {
		if !holds {
			res.Broken = append(res.Broken, fmt.Sprintf(format, args...))
		}
	}
	must(res.Lost == 0, "%d lost (never fired %d, answered %d, nacked %d, open %d)",
		res.Lost, res.Losses.Unfired, res.Losses.Answered, res.Losses.Nacked, res.Losses.Open)
	must(res.Gap == "", "jobs are held: %s", res.Gap)
	must(j.early() == 0, "%d came before they were due", j.early())
	must(j.strange == 0, "%d came that were never published", j.strange)
	must(res.Doubled.Journaled == 0, "%d doubled although the journal said that they were confirmed", res.Doubled.Journaled)
	must(res.Doubled.Stale == 0, "%d doubled although their leader had the answer, and %v later could journal it", res.Doubled.Stale, staleAfter)
	must(res.Doubled.Unkept == 0 || w.broker == rabbit310, "%d doubled that the broker had confirmed, and that the journal does not have", res.Doubled.Unkept)
	must(res.Doubled.Bare == 0 || r.messages, "%d doubled that do not say which fire they are", res.Doubled.Bare)
	must(res.Doubled.Unseen == 0, "%d doubled of which the taps saw only one fire", res.Doubled.Unseen)
	must(res.Again == 0 || !r.nodesStay, "%d copies of a fire came again that the broker does not call redelivered", res.Again)
	must(res.Exits == 0 || r.upgrades, "%d sidecars ended by themselves: %q", res.Exits, res.LastLines)
	for _, text := range w.mute {
		must(false, "%s", text)
	}
	w.boundOpen(r, res, must)
	w.boundDoubles(r, res, must)
	w.boundTimes(r, res, must)
	if w.flow == nil {
		return nil
	}
	err := w.flow.bound(must)
	res.Flow = w.flow.String()
	return err
}

func (w *world) boundDoubles(r row, res *result, must func(bool, string, ...any)) {
	if r.messages {
		boundMessages(w, r, res, must)
		return
	}
	s := r.scope(w.broker)
	hit, journal := map[string]bool{}, false
	for _, f := range w.faults {
		journal = journal || f.journal
		for q := range f.affected {
			hit[q] = true
		}
	}
	n := max(len(w.faults), 1)
	must(res.Doubled.Total <= n*window, "%d doubled: more than %d faults can leave open", res.Doubled.Total, n)
	for queue, doubled := range res.ByQueue {
		limit := w.windowOf(r, queue)
		allowed := s == open || s == affected && (hit[queue] || journal) || s == quorums && isQuorum(queue)
		must(allowed, "%d doubled of %s: none may be", doubled, queue)
		must(!allowed || doubled <= n*limit, "%d doubled of %s: more than %d", doubled, queue, n*limit)
	}
}

// afterBack is how many seconds Millrace may need after the fault is repaired.
const afterBack = 5

// claimed is how many seconds a new leader may need after the broker's streams are served again. If
// RabbitMQ could not start a stream, it tries again after five seconds.
const claimed = 2

func (w *world) boundTimes(r row, res *result, must func(bool, string, ...any)) {
	for i, f := range w.faults {
		others := map[string]bool{}
		for _, q := range w.queues {
			if !f.affected[q] {
				others[q] = true
			}
		}
		to, last := w.ended, i == len(w.faults)-1
		if !last {
			to = w.faults[i+1].from
		}
		stood := func(queues map[string]bool) float64 {
			return standstill(w.jobs, queues, f.from, to, !last || w.jobs.anyMissing(queues)).Seconds()
		}
		stillFor, away := stood(others), max(w.brokerAway(f.from, to), w.truth.silence(f.from, to, f.affected)).Seconds()
		res.Standstill, res.Own, res.Away = max(res.Standstill, stillFor), max(res.Own, stood(f.affected)), max(res.Away, away)
		slowest := stillFor
		for q := range others {
			alone := stood(map[string]bool{q: true})
			if slowest = max(slowest, alone); alone > res.Slowest {
				res.Slowest, res.SlowestName = alone, q
			}
		}
		if res.Stuck = append(res.Stuck, f.stuck...); len(f.stuck) == 0 {
			w.boundStill(r, stillFor, slowest, away, must)
		}
		if r.own && !f.back.IsZero() {
			res.AfterBack = max(res.AfterBack, firstAfter(w.jobs, f.affected, f.back).Seconds())
		}
	}
	must(res.AfterBack <= afterBack*w.slack, "affected queues stood still for %.1f s after the fault had ended: more than %.1f s", res.AfterBack, afterBack*w.slack)
}

// electedWithin is how many seconds longer than all others a single queue may stand still, because
// a quorum queue elects a leader.
const electedWithin = 5

// boundStill compares the standstill after one fault with its bound.
func (w *world) boundStill(r row, still, slowest, away float64, must func(bool, string, ...any)) {
	limit := r.still[w.broker] * w.slack
	switch {
	case r.failover && w.broker == lavinMQ:
		limit += away
	case r.follows > 0:
		limit = max(limit, away+r.follows*w.slack)
	}
	must(still <= limit, "standstill of %.1f s: more than %.1f s (the broker's own: %.1f s)", still, limit, away)
	must(slowest <= limit+electedWithin*w.slack, "a queue that was not hit stood still for %.1f s: more than %.1f s", slowest, limit+electedWithin*w.slack)
}
