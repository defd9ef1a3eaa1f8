package httpapi_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/wire"
)

func TestOnlyKnownHostsAreServed(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config) {
		c.Hosts = []string{"jobs.internal", "Other:8080"}
		c.Addr = "127.0.0.9:15680"
	})
	for _, host := range []string{"localhost", "LOCALHOST:1", "localhost.", "127.0.0.1:15680", "[::1]:15680", "[::1]", "jobs.internal", "other:99", "127.0.0.9"} {
		r := request(http.MethodGet, "/healthz", "")
		r.Host = host
		require.Equal(t, http.StatusOK, w.send(r).StatusCode, host)
	}
	for _, path := range []string{"/healthz", "/metrics", "/api/retries", "/nope"} {
		for _, host := range []string{"evil.example", "evil.example:15680", "127.0.0.2", "", "localhost.evil.example", "::2", "10.0.0.1:15680"} {
			r := request(http.MethodGet, path, "")
			r.Host = host
			w.send(r).problem(t, http.StatusForbidden, "access_refused")
		}
	}
}

func TestCrossSiteRequestsAreRefused(t *testing.T) {
	w := newWorld(t)
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
		r := request(http.MethodDelete, "/api/retries/a", "")
		r.Header.Set(name, value)
		w.send(r).problem(t, http.StatusForbidden, "access_refused")
	}
	require.Empty(t, w.commands)
	r := request(http.MethodDelete, "/api/retries/a", "")
	r.Header.Set("Origin", "http://localhost:15680")
	require.Equal(t, http.StatusNoContent, w.send(r).StatusCode)
}

func TestBodiesMustBeDeclaredJSON(t *testing.T) {
	w := newWorld(t)
	for _, media := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonx", "application/json;;"} {
		r := request(http.MethodPost, "/api/release", `{}`)
		r.Header.Set("Content-Type", media)
		w.send(r).problem(t, http.StatusUnsupportedMediaType, "unsupported_media_type")
	}
	r := request(http.MethodPost, "/api/release", `{}`)
	r.Header.Set("Content-Encoding", "gzip")
	w.send(r).problem(t, http.StatusUnsupportedMediaType, "unsupported_media_type")
	require.Empty(t, w.commands)
	r = request(http.MethodPost, "/api/release", `{}`)
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	require.Equal(t, http.StatusNoContent, w.send(r).StatusCode)
}

func TestBodiesAreLimited(t *testing.T) {
	w := newWorld(t)
	offset := w.add(wire.Retries, "garbage")
	require.Zero(t, offset)
	const limit = 16 << 20
	body := retry("a", 2_000_000_000, "q", "C", "E")
	exact := strings.Replace(body, `"args":[]`, `"args":["`+strings.Repeat("x", limit-len(body)-2)+`"]`, 1)
	require.Len(t, exact, limit)
	require.Equal(t, http.StatusNoContent, w.do(http.MethodPost, "/api/rejected/retries/0/resubmit", exact).StatusCode)
	require.Len(t, w.published[0].Body, limit)
	for _, path := range []string{"/api/rejected/retries/0/resubmit", "/api/release", "/api/retries/a/kill"} {
		w.do(http.MethodPost, path, `{"reason":"`+exact+`"}`).problem(t, http.StatusRequestEntityTooLarge, "payload_too_large")
		r := request(http.MethodPost, path, "x") // of unknown length
		r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader(`{"reason":"`), strings.NewReader(strings.Repeat("x", limit)))), -1
		w.send(r).problem(t, http.StatusRequestEntityTooLarge, "payload_too_large")
	}
	require.Len(t, w.commands, 1)
}

func TestSecurityHeaders(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/api/retries", "/nope", "/metrics", "/healthz"} {
		h := w.get(path).Header
		require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
		require.Equal(t, "no-store", h.Get("Cache-Control"))
		require.Equal(t, "DENY", h.Get("X-Frame-Options"))
		require.Equal(t, "default-src 'none'; frame-ancestors 'none'", h.Get("Content-Security-Policy"))
		require.Equal(t, "1.2.3", h.Get("Millrace-Version"))
		require.Empty(t, h.Get("Access-Control-Allow-Origin"))
	}
}

func TestAnswersHaveServerTiming(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/api/retries", "/nope", "/metrics", "/healthz", "/api/openapi.yaml"} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			require.Regexp(t, `^handler;dur=\d+\.\d{3}$`, w.send(request(method, path, "")).Header.Get("Server-Timing"), path)
		}
	}
	for _, path := range []string{"/api/retries?format=csv", "/api/events"} {
		require.NotEmpty(t, w.send(request(http.MethodHead, path, "")).Header.Get("Server-Timing"), path)
	}
}

func TestRequestIDIsInAnswerAndLog(t *testing.T) {
	w := newWorld(t)
	r := request(http.MethodGet, "/api/retries/a", "")
	r.Header.Set("X-Request-Id", "mine-1")
	require.Equal(t, "mine-1", w.send(r).problem(t, http.StatusNotFound, "not_found").RequestID)
	require.Contains(t, w.log.String(), `"request_id":"mine-1"`)
	for _, bad := range []string{"a b", "a\"b", "é", strings.Repeat("x", 65), "\x1b[31m"} {
		r.Header.Set("X-Request-Id", bad)
		p := w.send(r).problem(t, http.StatusNotFound, "not_found")
		require.NotEqual(t, bad, p.RequestID)
		require.Contains(t, w.log.String(), p.RequestID)
	}
}

func TestPanicIsLoggedAsError(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config) {
		c.Ask = func(context.Context, wire.Command) wire.Reply { panic("secret") }
	})
	a := w.do(http.MethodDelete, "/api/retries/a", "")
	a.problem(t, http.StatusInternalServerError, "internal_server_error")
	require.NotContains(t, a.body, "secret")
	require.Contains(t, w.log.String(), "secret")
}

func TestServerErrorIsLoggedAsWarning(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config) {
		c.Ask = func(context.Context, wire.Command) wire.Reply {
			return wire.Reply{Status: 500, Error: "internal_server_error", Reason: "no"}
		}
	})
	w.do(http.MethodDelete, "/api/retries/a", "").problem(t, http.StatusInternalServerError, "internal_server_error")
	require.Contains(t, w.log.String(), `"level":"WARN"`)
}

func TestAnswersOfCancelledRequests(t *testing.T) {
	w := newWorld(t)
	w.add(wire.Retries, retry("a", 2_000_000_000, "q", "C", "E"))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w.send(request(http.MethodGet, "/api/retries?text=x", "").WithContext(ctx)).problem(t, http.StatusServiceUnavailable, "service_unavailable")
	require.True(t, bytes.Contains([]byte(w.log.String()), []byte(`"cause":"context canceled"`)))
}
