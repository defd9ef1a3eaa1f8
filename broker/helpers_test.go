package broker_test

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

// put sends a PUT request to the management API, as an administrator.
func put(t *testing.T, v *brokertest.Vhost, path, body string) {
	t.Helper()
	v.Do(t, http.MethodPut, path, json.RawMessage(body), nil)
}

// open returns the management API at another address than the broker's.
func open(t *testing.T, url, vhost string) *broker.Management {
	t.Helper()
	m, err := broker.OpenManagement(soon(t), url, vhost, nil)
	require.NoError(t, err)
	t.Cleanup(m.Close)
	return m
}

// at returns the vhost's management URL with the address of a front.
func at(t *testing.T, front string, v *brokertest.Vhost) string {
	t.Helper()
	u, err := url.Parse(v.ManagementURL())
	require.NoError(t, err)
	f, err := url.Parse(front)
	require.NoError(t, err)
	u.Host = f.Host
	return u.String()
}

func dial(t *testing.T, url string) *broker.Conn {
	t.Helper()
	c, err := broker.Dial(soon(t), broker.Config{AMQPURL: url, Name: t.Name()})
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// client returns a channel of another client, which uses the library directly.
func client(t *testing.T, url string) *amqp.Channel {
	t.Helper()
	c, err := amqp.Dial(url)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	ch, err := c.Channel()
	require.NoError(t, err)
	return ch
}

// soon returns a context that ends before the test times out.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// forward passes a request on to another server and returns its status.
func forward(t *testing.T, w http.ResponseWriter, r *http.Request, backend *url.URL) int {
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.Host, out.RequestURI = backend.Scheme, backend.Host, backend.Host, ""
	resp, err := http.DefaultTransport.RoundTrip(out)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer resp.Body.Close()
	maps.Copy(w.Header(), resp.Header)
	w.WriteHeader(resp.StatusCode)
	if _, err := io.Copy(w, resp.Body); err != nil {
		t.Error(err)
	}
	return resp.StatusCode
}

// wanted asserts what Millrace wants on a broker, as a leader does.
func wanted(t *testing.T, url string) (broker.TopologyReport, []broker.Fault) {
	t.Helper()
	top, faults, err := broker.AssertWanted(soon(t), broker.Config{AMQPURL: url}, true)
	require.NoError(t, err)
	return top, faults
}

// makeAll declares everything that Millrace uses on the broker.
func makeAll(t *testing.T, url string, conn *broker.Conn) {
	t.Helper()
	_, err := conn.Topology().Assert(soon(t))
	require.NoError(t, err)
	_, faults := wanted(t, url)
	require.Empty(t, faults)
	require.NoError(t, conn.Topology().EnsureRouting(soon(t)))
}
