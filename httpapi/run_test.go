package httpapi_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/wire"
)

func TestListenOnlyOnLoopback(t *testing.T) {
	for _, addr := range []string{":15680", "0.0.0.0:0", "[::]:0", "192.0.2.1:80", "example.com:80", "10.0.0.1:0"} {
		_, err := auth.Listen(t.Context(), addr, auth.Exposure{})
		require.ErrorIs(t, err, auth.ErrNotLocal, addr)
		require.EqualError(t, err, "refusing to listen on "+addr+" (not a loopback address) without TLS: "+
			"set --tls-cert and --tls-key, or --behind-proxy if a proxy terminates TLS; or listen on 127.0.0.1")
	}
	_, err := auth.Listen(t.Context(), "127.0.0.1", auth.Exposure{})
	require.ErrorContains(t, err, "has the form")
	for _, addr := range []string{"127.0.0.1:0", "localhost:0", "127.0.0.2:0"} {
		l, err := auth.Listen(t.Context(), addr, auth.Exposure{})
		require.NoError(t, err)
		_, err = auth.Listen(t.Context(), l.Addr().String(), auth.Exposure{})
		require.ErrorContains(t, err, "httpapi: listen")
		require.NoError(t, l.Close())
	}
}

func TestRunRefusesOtherListeners(t *testing.T) {
	w := newWorld(t)
	l, err := net.Listen("tcp", ":0") //nolint:gosec // it is closed before any client connects
	require.NoError(t, err)
	require.ErrorIs(t, w.server.Run(t.Context(), l), auth.ErrNotLocal)
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	require.ErrorIs(t, w.server.Run(t.Context(), strange{l}), auth.ErrNotLocal)
}

// strange is a listener of a kind that is not known.
type strange struct{ net.Listener }

func (strange) Addr() net.Addr { return &net.IPAddr{IP: net.IPv4(127, 0, 0, 1)} }
func (strange) Close() error   { return nil }

// serve runs a server until the test ends it.
func (w *world) serve() (url string, stop func() error) {
	w.t.Helper()
	l, err := auth.Listen(w.t.Context(), "127.0.0.1:0", auth.Exposure{})
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.server.Run(ctx, l) }()
	return "http://" + l.Addr().String(), func() error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(time.Minute):
			return errors.New("the server does not end")
		}
	}
}

func client(t *testing.T) *http.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func TestRunEndsWithItsContext(t *testing.T) {
	w := newWorld(t)
	url, stop := w.serve()
	c := client(t)
	response, err := c.Get(url + "/healthz")
	require.NoError(t, err)
	require.Contains(t, readAll(t, response), "ok")
	require.NoError(t, response.Body.Close())
	require.NoError(t, stop())
	_, err = c.Get(url + "/healthz")
	require.Error(t, err)
}

func TestRunListensByItself(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config) { c.Addr = "127.0.0.1:0" })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, w.server.Run(ctx, nil))
	w = newWorld(t, func(c *httpapi.Config) { c.Addr = "0.0.0.0:0" })
	require.ErrorIs(t, w.server.Run(t.Context(), nil), auth.ErrNotLocal)
}

func TestRunEndsWithItsListener(t *testing.T) {
	w := newWorld(t)
	l, err := auth.Listen(t.Context(), "127.0.0.1:0", auth.Exposure{})
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.ErrorContains(t, w.server.Run(t.Context(), l), "httpapi: serve")
}

// A command that was sent before the shutdown still gets its answer.
func TestShutdownWaitsForRequests(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(c *httpapi.Config) {
		c.Grace = 10 * time.Second
		c.Ask = func(ctx context.Context, _ wire.Command) wire.Reply {
			close(asked)
			select {
			case <-release:
				return wire.Reply{Status: wire.StatusDone}
			case <-ctx.Done():
				return wire.Reply{Status: wire.StatusUnknown, Reason: "cut off"}
			}
		}
	})
	url, stop := w.serve()
	status := make(chan int, 1)
	c := client(t)
	go func() {
		r, _ := http.NewRequest(http.MethodDelete, url+"/api/retries/a", nil)
		response, err := c.Do(r)
		if err != nil {
			status <- 0
			return
		}
		_ = response.Body.Close()
		status <- response.StatusCode
	}()
	<-asked
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	require.Eventually(t, func() bool { // the listener is closed first
		conn, err := net.Dial("tcp", url[len("http://"):])
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}, time.Minute, 5*time.Millisecond)
	close(release)
	require.Equal(t, http.StatusNoContent, <-status)
	require.NoError(t, <-stopped)
}

// A request that does not end is cut off, and Run waits for it, so that the store can be closed
// then.
func TestShutdownCutsOffLongRequests(t *testing.T) {
	asked := make(chan struct{})
	var ended bool
	w := newWorld(t, func(c *httpapi.Config) {
		c.Grace = 50 * time.Millisecond
		c.Ask = func(ctx context.Context, _ wire.Command) wire.Reply {
			close(asked)
			<-ctx.Done()
			ended = true
			return wire.Reply{Status: wire.StatusUnknown, Reason: "cut off"}
		}
	})
	url, stop := w.serve()
	conn, err := net.Dial("tcp", url[len("http://"):])
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = conn.Write([]byte("DELETE /api/retries/a HTTP/1.1\r\nHost: localhost\r\n\r\n"))
	require.NoError(t, err)
	<-asked
	require.NoError(t, stop())
	require.True(t, ended)
	require.Contains(t, w.log.String(), "cut off at shutdown")
}

func TestRunReturnsDespiteStuckRequest(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(c *httpapi.Config) {
		c.Grace = 20 * time.Millisecond
		c.Ask = func(context.Context, wire.Command) wire.Reply {
			close(asked)
			<-release
			return wire.Reply{}
		}
	})
	url, stop := w.serve()
	conn, err := net.Dial("tcp", url[len("http://"):])
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = conn.Write([]byte("DELETE /api/retries/a HTTP/1.1\r\nHost: localhost\r\n\r\n"))
	require.NoError(t, err)
	<-asked
	require.NoError(t, stop())
	require.Contains(t, w.log.String(), "does not end")
	close(release)
}

// A client must detect an answer that breaks off.
func TestBrokenExportIsDetected(t *testing.T) {
	w := newWorld(t)
	for i := range 600 {
		w.add(wire.Retries, retry("a", float64(2_000_000_000+i), "q", "C", "E"))
	}
	w.add(wire.Retries, large("big", 2_000_001_000))
	fetching := make(chan struct{})
	w = w.again(func(c *httpapi.Config) {
		c.Grace = 20 * time.Millisecond
		c.Fetch = func(ctx context.Context, _ string, _ int64) (wire.Record, error) {
			close(fetching)
			<-ctx.Done()
			return wire.Record{}, ctx.Err()
		}
	})
	url, stop := w.serve()
	response, err := client(t).Get(url + "/api/retries?format=ndjson")
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	<-fetching
	require.NoError(t, stop())
	lines := bufio.NewScanner(response.Body)
	n := 0
	for lines.Scan() {
		n++
	}
	require.Error(t, lines.Err())
	require.GreaterOrEqual(t, n, 500)
}
