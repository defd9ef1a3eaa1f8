package main

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSidePorts(t *testing.T) {
	s := &sideSettings{MetricsAddr: "127.0.0.1:0", PprofAddr: "localhost:0"}
	ctx, stop := context.WithCancel(t.Context())
	ports, err := s.open(ctx, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metrics") }))
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

func TestSidePortsThatCannotBe(t *testing.T) {
	for flag, s := range map[string]*sideSettings{
		"--metrics-addr": {MetricsAddr: "nowhere"}, "--pprof-addr": {MetricsAddr: "127.0.0.1:0", PprofAddr: "nowhere"},
		"only an address of this machine": {MetricsAddr: "127.0.0.1:0", PprofAddr: ":0"},
	} {
		ports, err := s.open(t.Context(), http.NotFoundHandler())
		require.ErrorContains(t, err, flag)
		require.Empty(t, ports)
	}
	ports, err := (&sideSettings{}).open(t.Context(), http.NotFoundHandler())
	require.NoError(t, err)
	require.Empty(t, ports)
}
