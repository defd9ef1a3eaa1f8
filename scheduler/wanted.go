package scheduler

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/pause"
)

// Degraded is something that Millrace wants on the broker and that fails now. Jobs fire without it.
type Degraded struct {
	Subject string // such as "queue heartbeats"
	Problem string
	Costs   string // what does not work meanwhile
	Node    string // the node that is away, if that is known
	Since   time.Time
}

// ManagementAPI is the subject of a Degraded that is no queue and no exchange.
const ManagementAPI = "management API"

// degradations keeps what fails, and logs the begin and the end of each failure.
type degradations struct {
	log *slog.Logger

	mu  sync.Mutex
	all [parts]map[string]Degraded // by subject
}

// part is who looks for what fails.
type part int

const (
	wantedPart part = iota
	clusterPart
	parts
)

// set replaces what one part found by what fails now.
func (d *degradations) set(now time.Time, by part, failing []Degraded) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before, all := d.all[by], map[string]Degraded{}
	d.all[by] = all
	for _, f := range failing {
		f.Since = now
		if old, known := before[f.Subject]; known {
			f.Since = old.Since
		} else {
			d.log.Warn("scheduler: degraded: "+f.Costs, "subject", f.Subject, "problem", f.Problem, "node", f.Node)
		}
		all[f.Subject] = f
	}
	for subject, old := range before {
		if _, still := all[subject]; !still {
			d.log.Info("scheduler: no longer degraded", "subject", subject, "after", now.Sub(old.Since).Round(time.Second))
		}
	}
}

// list is sorted by subject.
func (d *degradations) list() []Degraded {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []Degraded
	for _, found := range d.all {
		all = slices.AppendSeq(all, maps.Values(found))
	}
	slices.SortFunc(all, func(a, b Degraded) int { return strings.Compare(a.Subject, b.Subject) })
	return all
}

// any reports whether something that a part looks for fails.
func (d *degradations) any(by part) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.all[by]) > 0
}

// degradedBy returns what the broker's answer to one step means. nodes has the node of each queue,
// as far as it is known.
func degradedBy(f broker.Fault, nodes map[string]string) Degraded {
	d := Degraded{Subject: f.Subject, Problem: f.Err.Error(), Costs: f.Costs}
	if broker.IsAway(f.Err) {
		name := strings.TrimPrefix(f.Subject, "queue ")
		d.Node = cmp.Or(broker.AwayNode(f.Err), nodes[name])
	}
	return d
}

// wanted is the state of what Millrace wants on the broker, and jobs fire without.
type wanted struct {
	degraded   degradations
	findings   findings
	lookAgain  chan struct{} // has watchWanted look again
	wantedOnce chan struct{} // closed when it has looked once
}

const (
	wantedEvery    = time.Minute      // while nothing fails: an operator may delete something
	degradedEvery  = 10 * time.Second // while something fails
	acceptingEvery = time.Second      // until clients can publish
)

// watchWanted asserts what Millrace wants on the broker, again and again, apart from what leads.
func (s *Scheduler) watchWanted(ctx context.Context) {
	for first := true; ctx.Err() == nil; first = false {
		s.assertWanted(ctx)
		if first {
			close(s.wantedOnce)
		}
		next := wantedEvery
		switch {
		case !s.Status().Accepts:
			next = acceptingEvery
		case s.degraded.any(wantedPart):
			next = degradedEvery
		}
		select {
		case <-ctx.Done():
		case <-s.lookAgain:
		case <-time.After(next):
		}
	}
}

// awaitWanted waits, before this process first leads, until everything wanted has been asserted
// once: clients that start when a sidecar is ready find it. What is away does not keep a sidecar
// from leading.
func (w *wanted) awaitWanted(ctx context.Context) {
	limit := time.NewTimer(wantedFirstWithin)
	defer limit.Stop()
	select {
	case <-w.wantedOnce:
	case <-limit.C:
	case <-ctx.Done():
	}
}

// wantedFirstWithin is how long a sidecar that has just started waits for what it can do without.
const wantedFirstWithin = 5 * time.Second

// assertSoon has watchWanted assert everything soon: something may be gone. While something fails
// it does so anyway.
func (w *wanted) assertSoon() {
	if w.degraded.any(wantedPart) {
		return
	}
	select {
	case w.lookAgain <- struct{}{}:
	default:
	}
}

// assertWanted asserts everything that is wanted, once. What it cannot find out stays as it was.
func (s *Scheduler) assertWanted(ctx context.Context) {
	findings, failing := s.policed(ctx)
	before := s.Status() // a leader may make jobs.direct while this looks for it
	topo, faults, err := broker.AssertWanted(ctx, s.cfg.Broker, before.Leader)
	if err != nil {
		s.log.Debug("scheduler: cannot assert what is wanted", "error", err)
		return
	}
	if slices.ContainsFunc(faults, func(f broker.Fault) bool { return broker.IsAway(f.Err) }) {
		s.readQueues(ctx) // it says which node a queue is on
	}
	nodes := s.homes()
	if !slices.ContainsFunc(faults, isDirect) {
		s.setStatus(func(st *Status) { st.Accepts = true })
	} else if !before.Accepts { // no leader has made it yet: that is not degraded, but not ready
		faults = slices.DeleteFunc(faults, isDirect)
	}
	for _, f := range faults {
		failing = append(failing, degradedBy(f, nodes))
	}
	s.findings.logNew(s.log, append(findings, topo.Findings...))
	s.degraded.set(time.Now(), wantedPart, failing)
}

func isDirect(f broker.Fault) bool { return f.Subject == broker.SubjectDirect }

// policed sets Millrace's policies, and returns what is degraded if it cannot. RabbitMQ 3.10
// answers 500 while queues are declared, so it tries twice.
func (s *services) policed(ctx context.Context) (findings []broker.Finding, failing []Degraded) {
	err := errNoManagement
	if s.mgmt != nil {
		if findings, err = s.mgmt.Policies(ctx); err != nil && pause.For(ctx, time.Second) == nil {
			findings, err = s.mgmt.Policies(ctx)
		}
	}
	if err != nil {
		failing = append(failing, Degraded{Subject: ManagementAPI, Problem: err.Error(),
			Costs: "policies are not set, so jobs that workers reject may be lost, and figures of queues are missing"})
	}
	return findings, failing
}

// findings are what was found otherwise than it should be, and logged. One goroutine uses them.
type findings map[broker.Finding]bool

// logNew logs those that were not there before.
func (f *findings) logNew(log *slog.Logger, found []broker.Finding) {
	before := *f
	*f = findings{}
	for _, one := range found {
		if !before[one] {
			log.Warn("scheduler: "+one.Subject+" "+one.Problem, "subject", one.Subject, "remedy", one.Remedy)
		}
		(*f)[one] = true
	}
}
