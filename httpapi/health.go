package httpapi

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

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
	pings    memo
}

type health struct {
	Status   string     `json:"status"`
	Reason   string     `json:"reason,omitempty"`
	Degraded []degraded `json:"degraded,omitempty"`
}

// degraded is what every user may know of a scheduler.Degraded: the broker's words can name users.
type degraded struct {
	Subject string    `json:"subject"`
	Costs   string    `json:"costs"`
	Node    string    `json:"node,omitempty"`
	Since   time.Time `json:"since"`
}

// live answers that the process runs.
func (h *healthAPI) live(c echo.Context) error {
	if err := problem.NoParams(c); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, health{Status: "ok"})
}

// ready reports whether clients can publish jobs, due jobs fire and answers are up to date. It does
// not matter whether this sidecar leads. What jobs fire without is listed as degraded.
func (h *healthAPI) ready(c echo.Context) error {
	if err := problem.NoParams(c); err != nil {
		return err
	}
	if reason := h.unready(); reason != "" {
		return c.JSON(http.StatusServiceUnavailable, health{Status: "failed", Reason: reason})
	}
	answer := health{Status: "ok"}
	for _, d := range h.degraded() {
		answer.Degraded = append(answer.Degraded, degraded{d.Subject, d.Costs, d.Node, d.Since})
	}
	return c.JSON(http.StatusOK, answer)
}

func (h *healthAPI) unready() string {
	leader := h.leader()
	if connected, _, _ := h.broker(); !connected {
		return "the broker is not connected" + whileAway(leader.Degraded)
	}
	if leader.Lacks != "" {
		return "jobs cannot be fired: a stream is missing or cannot be reached" + whileAway(leader.Degraded) +
			"; `millrace status` and the log say which"
	}
	for _, t := range h.view.Status() {
		if !t.CaughtUp && !h.dispensable(&t) {
			return "the view has not caught up with " + t.Stream + whileAway(leader.Degraded)
		}
	}
	if gap := leader.Gap; gap != "" {
		return "what was pending is held and does not fire until an administrator runs millrace release, because the journal has a gap: " + gap
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

// firstReadLimit is how long a stream that jobs fire without may keep a new sidecar from being ready.
const firstReadLimit = 10 * time.Second

// dispensable reports whether a sidecar is ready although the view cannot read a stream: jobs fire
// without the stream, and it was read before.
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

// check answers as RabbitMQ's health checks do. Every check returns a reason if it fails.
func (h *healthAPI) check() echo.HandlerFunc {
	checks := map[string]func(context.Context) string{
		"alarms":            h.checkAlarms,
		"broker-connection": h.checkBroker,
		"views-caught-up":   h.checkViews,
		"leader":            h.checkLeader,
		"workers":           h.checkWorkers,
	}
	return func(c echo.Context) error {
		if err := problem.NoParams(c); err != nil {
			return err
		}
		name, err := problem.PathParam(c, "check")
		if err != nil {
			return err
		}
		check, known := checks[name]
		if !known {
			return problem.New(http.StatusNotFound, "there is no such check")
		}
		if reason := check(c.Request().Context()); reason != "" {
			return c.JSON(http.StatusServiceUnavailable, health{Status: "failed", Reason: reason})
		}
		return c.JSON(http.StatusOK, health{Status: "ok"})
	}
}

// checkAlarms asks the leader: the broker blocks its connection while an alarm lasts.
func (h *healthAPI) checkAlarms(context.Context) string {
	if blocked := h.leader().Blocked; blocked != "" {
		return "the broker takes no messages: " + blocked
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
	return h.pings.get(func() string {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingLimit) // other requests get the answer too
		defer cancel()
		r := h.ask(ctx, wire.Command{ID: rand.Text(), Command: wire.CommandPing})
		switch {
		case r.Status >= 200 && r.Status < 300:
			return ""
		case r.Reason == "":
			return "no leader responds: the reason is not known"
		}
		return "no leader responds: " + r.Reason
	})
}

// checkWorkers wants a worker process that takes jobs.
func (h *healthAPI) checkWorkers(context.Context) string {
	all := h.workers.list()
	if slices.ContainsFunc(all, func(p processes.Process) bool { return p.State == processes.Live }) {
		return ""
	}
	if len(all) == 0 {
		return "no live worker processes"
	}
	return fmt.Sprintf("no live worker processes (quiet, stopping or lost: %d)", len(all))
}

// memo remembers an answer for pingEvery.
type memo struct {
	mu     sync.Mutex
	answer string
	at     time.Time
}

func (m *memo) get(ask func() string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at.IsZero() || time.Since(m.at) >= pingEvery {
		m.answer, m.at = ask(), time.Now()
	}
	return m.answer
}
