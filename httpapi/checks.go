package httpapi

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker/processes"
	"github.com/millrace-jobs/millrace/wire"
)

// checks are what /api/health/checks has. Each gives a reason where not all is well.
func (s *Server) checks() map[string]func(context.Context) string {
	return map[string]func(context.Context) string{
		"alarms":            s.checkAlarms,
		"broker-connection": s.checkBroker,
		"views-caught-up":   s.checkViews,
		"leader":            s.leading.remember(s.checkLeader),
		"workers":           s.checkWorkers,
	}
}

// health answers as RabbitMQ's health checks do.
func (s *Server) health() echo.HandlerFunc {
	checks := s.checks()
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

// checkAlarms looks at what the leader is told: the broker blocks its connection while an alarm lasts.
func (s *Server) checkAlarms(context.Context) string {
	if blocked := s.cfg.Leader().Blocked; blocked != "" {
		return "the broker takes no messages: " + blocked
	}
	return ""
}

func (s *Server) checkBroker(context.Context) string {
	if connected, _, _ := s.cfg.Broker(); !connected {
		return "the broker is not connected"
	}
	return ""
}

func (s *Server) checkViews(context.Context) string {
	var behind []string
	for _, t := range s.cfg.View.Status() {
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
	pingEvery = time.Second // at most, however many ask
)

// checkLeader pings the leader.
func (s *Server) checkLeader(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingLimit) // the answer is for others too
	defer cancel()
	r := s.cfg.Ask(ctx, wire.Command{ID: rand.Text(), Command: wire.CommandPing})
	if r.Status >= 200 && r.Status < 300 {
		return ""
	}
	return fmt.Sprintf("no leader responds: %s", orReason(r.Reason))
}

func orReason(said string) string {
	if said == "" {
		return "the reason is not known"
	}
	return said
}

// checkWorkers wants a worker process that takes jobs.
func (s *Server) checkWorkers(context.Context) string {
	all := s.processes()
	if slices.ContainsFunc(all, func(p processes.Process) bool { return p.State == processes.Live }) {
		return ""
	}
	if len(all) == 0 {
		return "no live worker processes"
	}
	return fmt.Sprintf("no live worker processes (quiet, stopping or lost: %d)", len(all))
}

// memo remembers an answer for a moment.
type memo struct {
	mu   sync.Mutex
	said string
	at   time.Time
}

func (m *memo) remember(ask func(context.Context) string) func(context.Context) string {
	return func(ctx context.Context) string {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.at.IsZero() || time.Since(m.at) >= pingEvery {
			m.said, m.at = ask(ctx), time.Now()
		}
		return m.said
	}
}
