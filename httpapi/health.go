package httpapi

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/scheduler"
	"github.com/millrace-jobs/millrace/tracker/processes"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// healthAPI answers probes and health checks.
type healthAPI struct {
	leader  func() scheduler.Status
	broker  func() (connected bool, product, version string)
	ask     func(ctx context.Context, c wire.Command) wire.Reply
	view    *view.View
	workers *workers
	now     func() time.Time

	accepted atomic.Bool // clients could publish jobs once

	mu     sync.Mutex
	silent string    // why the leader does not respond; empty if it does
	pinged time.Time // when that was found out
}

// live answers that the process runs.
func (h *healthAPI) live(in *problem.Request) (any, error) {
	in.Query()
	return answer.Health{Status: "ok"}, nil
}

// ready reports whether clients can publish jobs, due jobs fire and answers are up to date. It does
// not matter whether this sidecar leads. What jobs fire without is listed as degraded.
func (h *healthAPI) ready(in *problem.Request) error {
	if in.Query(); in.Err() != nil {
		return in.Err()
	}
	if reason := h.unready(); reason != "" {
		return in.JSON(http.StatusServiceUnavailable, answer.Health{Status: "failed", Reason: reason})
	}
	ready := answer.Health{Status: "ok"}
	for _, d := range h.degraded() {
		ready.Degraded = append(ready.Degraded, answer.Degraded{Subject: d.Subject, Costs: d.Costs, Node: d.Node, Since: d.Since})
	}
	return in.JSON(http.StatusOK, ready)
}

func (h *healthAPI) unready() string {
	leader := h.leader()
	if connected, _, _ := h.broker(); !connected {
		return "the broker is not connected" + whileAway(leader.Degraded)
	}
	if leader.Lacks != "" {
		return "jobs cannot be delivered: a stream is missing or cannot be reached" + whileAway(leader.Degraded) +
			"; `millrace status` and the log say which"
	}
	for _, t := range h.view.Status() {
		if !t.CaughtUp && !h.dispensable(&t) {
			return "the view has not caught up with " + t.Stream + whileAway(leader.Degraded)
		}
	}
	if gap := leader.Gap; gap != "" {
		return "jobs that were pending are held, and are not delivered until an administrator runs millrace release, because the journal has a gap: " + gap
	}
	if !leader.Accepts && !h.accepted.Load() {
		return "clients cannot publish jobs yet: no leader has made " + wire.ExchangeDirect
	}
	h.accepted.Store(true)
	return ""
}

// whileAway names the nodes that are away.
func whileAway(all []scheduler.Degraded) string {
	var nodes []string
	for _, d := range all {
		if d.Node != "" && !slices.Contains(nodes, d.Node) {
			nodes = append(nodes, d.Node)
		}
	}
	switch len(nodes) {
	case 0:
		return ""
	case 1:
		return " while node " + nodes[0] + " is away"
	}
	return " while the nodes " + strings.Join(nodes, ", ") + " are away"
}

// firstReadLimit is how long a stream that jobs fire without may keep a new sidecar unready.
const firstReadLimit = 10 * time.Second

// dispensable reports whether a stream that cannot be read leaves a sidecar ready.
func (h *healthAPI) dispensable(t *view.Status) bool {
	if t.Stream == wire.Journal || slices.Contains(wire.EntryStreams, t.Stream) || t.Fault == "" {
		return false
	}
	select {
	case <-h.view.Ready():
		return true
	default:
		return t.Lag > firstReadLimit // it was away from the start
	}
}

// degraded lists what fails and is not needed to fire jobs.
func (h *healthAPI) degraded() []scheduler.Degraded {
	all := h.leader().Degraded
	for _, t := range h.view.Status() {
		known := slices.ContainsFunc(all, func(d scheduler.Degraded) bool { return d.Subject == "queue "+t.Stream })
		if !known && !t.CaughtUp && h.dispensable(&t) {
			all = append(all, scheduler.Degraded{Subject: "view of " + t.Stream, Problem: t.Fault, Costs: "the data shown of it are out of date",
				Since: h.now().Add(-t.Lag)})
		}
	}
	return all
}

// check returns a handler that answers as RabbitMQ's health checks do.
func (h *healthAPI) check() handler {
	checks := map[string]func(context.Context) string{ // each returns a reason if it fails
		"alarms":            h.checkAlarms,
		"broker-connection": h.checkBroker,
		"views-caught-up":   h.checkViews,
		"leader":            h.checkLeader,
		"workers":           h.checkWorkers,
	}
	return func(in *problem.Request) error {
		in.Query()
		check, known := checks[in.PathParam("check")]
		if !known {
			in.Fail(problem.New(http.StatusNotFound, "there is no such check"))
		}
		if in.Err() != nil {
			return in.Err()
		}
		if reason := check(in.Request().Context()); reason != "" {
			return in.JSON(http.StatusServiceUnavailable, answer.Health{Status: "failed", Reason: reason})
		}
		return in.JSON(http.StatusOK, answer.Health{Status: "ok"})
	}
}

// checkAlarms asks the leader: the broker blocks its connection while an alarm lasts.
func (h *healthAPI) checkAlarms(context.Context) string {
	if blocked := h.leader().Blocked; blocked != "" {
		return "the broker has an alarm and blocks publishers: " + blocked
	}
	return ""
}

func (h *healthAPI) checkBroker(context.Context) string {
	if connected, _, _ := h.broker(); !connected {
		return "the broker is not connected"
	}
	return ""
}

func (h *healthAPI) checkViews(context.Context) string {
	var behind []string
	for _, t := range h.view.Status() {
		if !t.CaughtUp {
			behind = append(behind, t.Stream)
		}
	}
	if len(behind) == 0 {
		return ""
	}
	return "the view has not caught up with " + strings.Join(behind, ", ")
}

const (
	pingLimit = 2 * time.Second
	pingEvery = time.Second // at most, for all requests
)

// checkLeader pings the leader.
func (h *healthAPI) checkLeader(ctx context.Context) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.pinged.IsZero() && time.Since(h.pinged) < pingEvery {
		return h.silent
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingLimit) // for others too
	defer cancel()
	r := h.ask(ctx, wire.Command{ID: rand.Text(), Command: wire.CommandPing})
	h.silent, h.pinged = "no leader responds: "+cmp.Or(r.Reason, "the reason is not known"), time.Now()
	if r.Status >= 200 && r.Status < 300 {
		h.silent = ""
	}
	return h.silent
}

// checkWorkers wants a worker process that takes jobs.
func (h *healthAPI) checkWorkers(context.Context) string {
	all := slices.DeleteFunc(h.workers.list(), ofSidecar)
	if slices.ContainsFunc(all, func(p processes.Process) bool { return p.State == processes.Live }) {
		return ""
	}
	if len(all) == 0 {
		return "no live worker processes"
	}
	return fmt.Sprintf("no live worker processes (quiet, stopping or lost: %d)", len(all))
}

// ofSidecar reports whether a process is the part of a sidecar that delivers messages. It takes no
// jobs of an application.
func ofSidecar(p processes.Process) bool {
	return len(p.Queues) == 1 && wire.QueueName(p.Queues[0]) == wire.MessageQueue
}
