package apiclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/millrace-jobs/millrace/httpapi/answer"
)

// Checks are the health checks that the API has.
var Checks = []string{"alarms", "broker-connection", "views-caught-up", "leader", "workers"}

// Health is the result of a health check.
type Health struct {
	answer.Health
	Body []byte `json:"-"` // the answer as it came
}

// Failed reports whether the check failed.
func (h *Health) Failed() bool { return h.Status == "failed" }

// Check runs a health check. A check that fails is a result, not an error.
func (c *Client) Check(ctx context.Context, name string) (*Health, error) {
	h, err := c.health(ctx, "/api/health/checks/"+Segment(name))
	if err != nil {
		return nil, fmt.Errorf("check %s: %w", name, err)
	}
	return h, nil
}

// Paths of probes, which need no sign-in.
const (
	PathLive  = "/healthz"
	PathReady = "/readyz"
)

// Probe asks one of these paths. A probe that fails is a result, not an error.
func (c *Client) Probe(ctx context.Context, path string) (*Health, error) { return c.health(ctx, path) }

func (c *Client) health(ctx context.Context, path string) (*Health, error) {
	body, err := c.Do(ctx, Request{Path: path})
	var refusal *Error
	if errors.As(err, &refusal) && refusal.Status == http.StatusServiceUnavailable {
		if h, err := decodeHealth(refusal.body); err == nil && h.Failed() {
			return h, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return decodeHealth(body)
}

func decodeHealth(body []byte) (*Health, error) {
	h, err := Decode[Health](body)
	if err != nil {
		return nil, err
	}
	h.Body = body
	return h, nil
}
