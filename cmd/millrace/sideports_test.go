package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSidePorts(t *testing.T) {
	s := &sideSettings{MetricsAddr: "127.0.0.1:0", PprofAddr: "localhost:0"}
	ctx, stop := context.WithCancel(t.Context())
	ports, err := s.open(ctx, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metrics") }), nil)
	require.NoError(t, err)
	require.Len(t, ports, 2)
	ended := make(chan error, 2)
	for _, p := range ports {
		go func() { ended <- p.run(ctx) }()
	}
	asks := func(path string) string {
		var all string
		for _, p := range ports {
			r, err := http.Get("http://" + p.listener.Addr().String() + path)
			require.NoError(t, err)
			body, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			require.NoError(t, r.Body.Close())
			all += string(body)
		}
		return all
	}
	require.Contains(t, asks("/metrics"), "metrics")
	require.Contains(t, asks("/debug/pprof/"), "goroutine")
	http.DefaultClient.CloseIdleConnections()
	stop()
	require.NoError(t, <-ended)
	require.NoError(t, <-ended)
}

func TestInvalidSidePorts(t *testing.T) {
	for flag, s := range map[string]*sideSettings{
		"--metrics-addr": {MetricsAddr: "nowhere"}, "--pprof-addr": {MetricsAddr: "127.0.0.1:0", PprofAddr: "nowhere"},
		"only an address of this machine": {MetricsAddr: "127.0.0.1:0", PprofAddr: ":0"},
	} {
		ports, err := s.open(t.Context(), http.NotFoundHandler(), nil)
		require.ErrorContains(t, err, flag)
		require.Empty(t, ports)
	}
	ports, err := (&sideSettings{}).open(t.Context(), http.NotFoundHandler(), nil)
	require.NoError(t, err)
	require.Empty(t, ports)
}

// A page whose host name resolves to 127.0.0.1 for a moment must read neither command lines nor
// metrics.
func TestSidePortsCheckHostHeader(t *testing.T) {
	answers := func(p sidePort, host string) int {
		r := httptest.NewRequest(http.MethodGet, "/debug/pprof/cmdline", http.NoBody)
		r.Host = host
		w := httptest.NewRecorder()
		p.handler.ServeHTTP(w, r)
		return w.Code
	}
	metrics := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	s := &sideSettings{MetricsAddr: "127.0.0.1:0", PprofAddr: "localhost:0"}
	ports, err := s.open(t.Context(), metrics, []string{"ops.example"})
	require.NoError(t, err)
	defer closePorts(ports)
	require.Len(t, ports, 2)
	for _, p := range ports {
		for host, status := range map[string]int{
			"localhost:6060": http.StatusOK, "127.0.0.1": http.StatusOK, "[::1]:1": http.StatusOK, "ops.example": http.StatusOK,
			"evil.example": http.StatusForbidden, "evil.example:6060": http.StatusForbidden, "": http.StatusForbidden,
		} {
			require.Equal(t, status, answers(p, host), "%s asked as %q", p.what, host)
		}
	}
	open, err := (&sideSettings{MetricsAddr: "0.0.0.0:0"}).open(t.Context(), metrics, nil)
	require.NoError(t, err)
	defer closePorts(open)
	require.Equal(t, http.StatusOK, answers(open[0], "millrace.svc:9100"), "any client that can connect may read it, by any name")
}
