package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/cli/clitest"
	"github.com/millrace-jobs/millrace/internal/cli/flags"
)

// running is a sidecar that runs on a test's virtual host.
type running struct {
	api   *apiclient.Client
	log   *clitest.Buffer
	end   func() error // ends it, and returns its error
	flags []string     // for commands that call its API or its broker
}

// start runs a sidecar until the test ends.
func start(t *testing.T, settings sidecarSettings) *running {
	t.Helper()
	require.NoError(t, settings.AfterApply())
	if settings.HTTPAddr == "" {
		settings.HTTPAddr = "127.0.0.1:0"
	}
	listener, err := listen(t.Context(), settings.HTTPAddr, settings.exposure())
	require.NoError(t, err)
	settings.HTTPAddr = listener.Addr().String()
	r := &running{api: settings.apiClient(&flags.SignIn{}), log: &clitest.Buffer{}, flags: []string{"--http-addr", settings.HTTPAddr, "--amqp-url", settings.AMQPURL}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, settings, newLog(r.log, "debug", "text"), listener) }()
	r.end = func() error {
		cancel()
		select {
		case err := <-ended:
			ended <- err
			return err
		case <-time.After(10 * time.Second):
			t.Fatal("the sidecar does not end")
			return nil
		}
	}
	t.Cleanup(func() {
		require.NoError(t, r.end())
		if t.Failed() {
			t.Log(r.log.String())
		}
	})
	return r
}

// beside returns the settings of a sidecar for a virtual host.
func beside(v *brokertest.Vhost) sidecarSettings {
	return sidecarSettings{Broker: flags.Broker{AMQP: flags.AMQP{AMQPURL: v.AMQPURL()}, ManagementURL: v.ManagementURL()}, StreamURL: v.StreamURL()}
}

func (r *running) ready(t *testing.T) {
	t.Helper()
	brokertest.Eventually(t, func() bool { return r.status(t, "/readyz") == http.StatusOK }, "the sidecar is ready")
}

func (r *running) leads(t *testing.T) {
	t.Helper()
	brokertest.Eventually(t, func() bool {
		body, err := r.api.Do(t.Context(), apiclient.Request{Path: "/api/overview"})
		return err == nil && strings.Contains(string(body), `"phase":"leading"`)
	}, "the sidecar leads")
}

func (r *running) status(t *testing.T, path string) int {
	t.Helper()
	resp, err := r.api.HTTP.Get(r.api.Address() + path)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	r.api.HTTP.CloseIdleConnections()
	return resp.StatusCode
}

func (r *running) body(t *testing.T, path string) string {
	t.Helper()
	resp, err := r.api.HTTP.Get(r.api.Address() + path)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	r.api.HTTP.CloseIdleConnections()
	return string(body)
}
