package broker_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/hosts"
)

func TestManagementSkipsDeadHost(t *testing.T) {
	v := brokertest.New(t)
	dead := elsewhere(t, v.ManagementURL(), "127.0.0.1:1")
	for range 5 { // in any order
		m := open(t, several(t, dead, v.ManagementURL()), v.Name)
		_, err := m.Queues(soon(t))
		require.NoError(t, err)
	}
	_, err := broker.OpenManagement(soon(t), several(t, dead, elsewhere(t, dead, "127.0.0.1:2")), v.Name, nil)
	require.ErrorContains(t, err, "127.0.0.1:1: dial tcp")
	require.ErrorContains(t, err, "127.0.0.1:2: dial tcp")
	require.NotContains(t, err.Error(), v.Owner.Password)
}

// A frozen node accepts connections and answers none.
func TestManagementSkipsSilentHost(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	m, err := broker.NewManagement(several(t, elsewhere(t, v.ManagementURL(), "localhost:"+port(t, silent.Addr().String())), v.ManagementURL()), v.Name, nil)
	require.NoError(t, err)
	t.Cleanup(m.Close)
	amqp := &hosts.Order{}
	amqp.Good(hosts.Target{Host: "localhost:5672"}) // so that the silent host comes first
	m.Near(amqp)
	begun := time.Now()
	_, err = m.Queues(soon(t))
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(begun), 3*time.Second, "the silent host was asked first")
	begun = time.Now()
	_, err = m.Queues(soon(t))
	require.NoError(t, err)
	require.Less(t, time.Since(begun), 3*time.Second, "the host that answered is asked first now")
}

func TestSilentHostsAreListed(t *testing.T) {
	v := brokertest.New(t)
	dead := elsewhere(t, v.ManagementURL(), "127.0.0.1:1")
	m := open(t, several(t, dead, v.ManagementURL()), v.Name)
	require.Equal(t, []string{"127.0.0.1:1"}, m.SilentHosts(soon(t)))
	require.Empty(t, open(t, v.ManagementURL(), v.Name).SilentHosts(soon(t)))

	none, err := broker.NewManagement(several(t, dead, elsewhere(t, dead, "127.0.0.1:2")), v.Name, nil)
	require.NoError(t, err)
	t.Cleanup(none.Close)
	require.Empty(t, none.SilentHosts(soon(t)), "no host is listed if none answers")
}

func port(t *testing.T, hostPort string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(hostPort)
	require.NoError(t, err)
	return port
}

func TestManagementPrefersAMQPNode(t *testing.T) {
	var asked atomic.Pointer[string]
	node := func(name string, status int) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked.Store(&name)
			w.WriteHeader(status)
			w.Write([]byte(`{"rabbitmq_version":"4.3.6","name":"ann","tags":[]}`))
		}))
		t.Cleanup(server.Close)
		u, err := url.Parse(server.URL)
		require.NoError(t, err)
		return u.Port()
	}
	ask := func(t *testing.T, amqpHost, address string) error {
		t.Helper()
		m, err := broker.NewManagement(address, "/", nil)
		require.NoError(t, err)
		defer m.Close()
		amqp := &hosts.Order{}
		amqp.Good(hosts.Target{Host: amqpHost})
		m.Near(amqp)
		return m.FindFeatures(soon(t))
	}
	both := "http://127.0.0.1:" + node("a", http.StatusOK) + ",localhost:" + node("b", http.StatusOK)
	for range 5 {
		require.NoError(t, ask(t, "127.0.0.1:5672", both))
		require.Equal(t, "a", *asked.Load())
		require.NoError(t, ask(t, "localhost:5672", both))
		require.Equal(t, "b", *asked.Load())
	}

	refusing := "http://127.0.0.1:" + node("c", http.StatusUnauthorized) + ",localhost:" + node("d", http.StatusOK)
	require.True(t, broker.Unauthorized(ask(t, "127.0.0.1:5672", refusing)), "a refusal is an answer")
	require.Equal(t, "c", *asked.Load())

	failing := "http://127.0.0.1:" + node("e", http.StatusServiceUnavailable) + ",localhost:" + node("f", http.StatusOK)
	require.NoError(t, ask(t, "127.0.0.1:5672", failing))
	require.Equal(t, "f", *asked.Load(), "a server error is no answer")

	alone := "http://127.0.0.1:" + node("g", http.StatusServiceUnavailable)
	var said *broker.StatusError
	require.True(t, errors.As(ask(t, "127.0.0.1:5672", alone), &said))
	require.Equal(t, http.StatusServiceUnavailable, said.Status)
}

// A connection that LavinMQ passed on to a node that froze never answers again. A new one does.
func TestManagementReconnects(t *testing.T) {
	type connection struct{}
	release := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked, _ := r.Context().Value(connection{}).(*atomic.Int64); asked.Add(1) > 1 {
			<-release
		}
		w.Write([]byte(`{"rabbitmq_version":"4.3.6","name":"ann","tags":[]}`))
	}))
	server.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, connection{}, &atomic.Int64{})
	}
	server.Start()
	defer server.Close()
	defer close(release)
	m, err := broker.NewManagement(server.URL, "/", nil)
	require.NoError(t, err)
	defer m.Close()
	for range 3 {
		require.NoError(t, m.FindFeatures(soon(t)))
		m.Reconnect()
	}
}
