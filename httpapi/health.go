package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// healthz says that the process runs.
func (s *Server) healthz(c echo.Context) error {
	if _, err := parseParams(c.Request()); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, health{Status: "ok"})
}

type health struct {
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

// readyz says whether what is answered here is up to date. Whether this sidecar leads does not matter.
func (s *Server) readyz(c echo.Context) error {
	if _, err := parseParams(c.Request()); err != nil {
		return err
	}
	if reason := s.unready(); reason != "" {
		return c.JSON(http.StatusServiceUnavailable, health{"failed", reason})
	}
	return c.JSON(http.StatusOK, health{Status: "ok"})
}

func (s *Server) unready() string {
	if connected, _, _ := s.cfg.Broker(); !connected {
		return "the broker is not connected"
	}
	for _, t := range s.cfg.View.Status() {
		if !t.CaughtUp {
			return "the view has not caught up with " + t.Stream
		}
	}
	return ""
}
