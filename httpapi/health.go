package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/scheduler"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// healthz says that the process runs.
func (s *Server) healthz(c echo.Context) error {
	if err := problem.NoParams(c); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, health{Status: "ok"})
}

type health struct {
	Status   string     `json:"status"`
	Reason   string     `json:"reason,omitempty"`
	Degraded []degraded `json:"degraded,omitempty"`
}

// degraded is what anybody may know of a scheduler.Degraded: the broker's own words can name users.
type degraded struct {
	Subject string    `json:"subject"`
	Costs   string    `json:"costs"`
	Node    string    `json:"node,omitempty"`
	Since   time.Time `json:"since"`
}

// readyz reports whether clients can publish jobs, what is due is fired and what is answered here is up to date. Whether this sidecar leads does not matter, and
// nor does what jobs fire without: that is listed as degraded.
func (s *Server) readyz(c echo.Context) error {
	if err := problem.NoParams(c); err != nil {
		return err
	}
	if reason := s.unready(); reason != "" {
		return c.JSON(http.StatusServiceUnavailable, health{Status: "failed", Reason: reason})
	}
	h := health{Status: "ok"}
	for _, d := range s.degraded() {
		h.Degraded = append(h.Degraded, degraded{d.Subject, d.Costs, d.Node, d.Since})
	}
	return c.JSON(http.StatusOK, h)
}

func (s *Server) unready() string {
	leader := s.cfg.Leader()
	if connected, _, _ := s.cfg.Broker(); !connected {
		return "the broker is not connected" + whileAway(leader.Degraded)
	}
	if leader.Lacks != "" {
		return "jobs cannot be fired: a stream is missing or cannot be reached" + whileAway(leader.Degraded) +
			"; `millrace status` and the log say which"
	}
	for _, t := range s.cfg.View.Status() {
		if !t.CaughtUp && !s.dispensable(&t) {
			return "the view has not caught up with " + t.Stream + whileAway(leader.Degraded)
		}
	}
	if gap := leader.Gap; gap != "" {
		return "what was pending is held and does not fire until an administrator runs millrace release, because the journal has a gap: " + gap
	}
	if !leader.Accepts && !s.accepted.Load() {
		return "clients cannot publish jobs yet: no leader has made " + wire.ExchangeDirect
	}
	s.accepted.Store(true)
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

// dispensable reports whether a stream that the view cannot read leaves it ready: jobs fire without it, and it was read before.
func (s *Server) dispensable(t *view.Status) bool {
	if t.Stream == wire.Journal || slices.Contains(wire.EntryStreams, t.Stream) || t.Fault == "" {
		return false
	}
	select {
	case <-s.cfg.View.Ready():
		return true
	default:
		return t.Lag > readFirstWithin // what was away from the start
	}
}

// readFirstWithin is how long a stream that jobs fire without may keep a sidecar that has just started from being ready.
const readFirstWithin = 10 * time.Second

// degraded lists what fails and is not needed to fire jobs.
func (s *Server) degraded() []scheduler.Degraded {
	all := s.cfg.Leader().Degraded
	for _, t := range s.cfg.View.Status() {
		known := slices.ContainsFunc(all, func(d scheduler.Degraded) bool { return d.Subject == "queue "+t.Stream })
		if !known && !t.CaughtUp && s.dispensable(&t) {
			all = append(all, scheduler.Degraded{Subject: "view of " + t.Stream, Problem: t.Fault, Costs: "the data shown of it are out of date",
				Since: s.cfg.Now().Add(-t.Lag)})
		}
	}
	return all
}
