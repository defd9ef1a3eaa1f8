package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/cli"
	"github.com/millrace-jobs/millrace/internal/cli/flags"
	"github.com/millrace-jobs/millrace/internal/localbroker"
	"github.com/millrace-jobs/millrace/wire"
)

// privateBroker starts a node that only the test uses. Its user, virtual host and names are those
// of every other private node.
func privateBroker(t *testing.T, amqpPort int) *localbroker.Broker {
	t.Helper()
	lavinmq := os.Getenv("MILLRACE_TEST_LAVINMQ")
	if lavinmq == "" && localbroker.Available() != nil {
		t.Skip("this test needs brokers of its own: ", localbroker.Available())
	}
	b, err := localbroker.Start(t.Context(), localbroker.Config{Dir: t.TempDir(), LavinMQ: lavinmq, AMQPPort: amqpPort})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = b.Kill()
		require.NoError(t, b.Stop(t.Context()))
	})
	return b
}

// neighbours are two brokers on one host. The management API of the first is on the port where that
// of the second is expected. The second has none, if possible.
func neighbours(t *testing.T) (first, second *localbroker.Broker) {
	t.Helper()
	first = privateBroker(t, 0)
	second = privateBroker(t, portOf(t, first.ManagementURL())-10000)
	if second.HasErlang() {
		_, err := second.Eval(t.Context(), "ok = application:stop(rabbitmq_management).")
		require.NoError(t, err)
	}
	return first, second
}

func portOf(t *testing.T, address string) int {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	port, err := strconv.Atoi(u.Port())
	require.NoError(t, err)
	return port
}

func hostOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	return u.Host
}

// untouched requires that no sidecar has left anything on a broker.
func untouched(t *testing.T, b *localbroker.Broker) {
	t.Helper()
	for _, of := range []string{"policies", "queues"} {
		resp, err := http.Get(b.ManagementURL() + "/api/" + of)
		require.NoError(t, err)
		var all []map[string]any
		require.NoError(t, json.NewDecoder(resp.Body).Decode(&all))
		require.NoError(t, resp.Body.Close())
		require.Empty(t, all, of)
	}
	http.DefaultClient.CloseIdleConnections()
}

func sidecarOf(b *localbroker.Broker) sidecarSettings {
	return sidecarSettings{Broker: flags.Broker{AMQP: flags.AMQP{AMQPURL: b.AMQPURL()}}}
}

// Next to a broker without a management API runs another one, whose API is on the port where that
// of the first would be.
func TestManagementAPIOfAnotherBroker(t *testing.T) {
	other, ours := neighbours(t)
	s := start(t, sidecarOf(ours))
	s.leads(t)
	s.ready(t)
	log := s.log.String()
	require.Equal(t, 1, strings.Count(log, "another broker's, and is not used"), log)
	require.Contains(t, log, "Set --management-url")
	require.Contains(t, log, fmt.Sprintf("the management API at %s (", hostOf(t, other.ManagementURL())))
	require.Contains(t, log, fmt.Sprintf("belongs to another broker than AMQP at %s (", hostOf(t, ours.AMQPURL())))
	require.Contains(t, log, "protocol=amqp")
	require.Equal(t, 1, strings.Count(log, "auth=none: anyone on this machine can use the API"), log)

	r := millrace(t, "schedule", "Mail", "--in", "1s", "--queue", "mail", "--amqp-url", ours.AMQPURL())
	require.Zero(t, r.code, r.err)
	brokertest.Eventually(t, func() bool {
		return strings.Contains(millrace(t, append([]string{"queues"}, s.flags...)...).out, "mail")
	}, "the job fires on the broker that AMQP reaches")
	untouched(t, other)

	r = millrace(t, append([]string{"doctor"}, s.flags...)...)
	require.Regexp(t, `(?m)^ok    broker .*\nnote  management API  the management API at \S+ \(.*\) belongs to another broker than AMQP at \S+ \(.*and is not used`, r.out)
	require.Contains(t, r.out, "set --management-url to the management API of this broker")
	require.NotContains(t, r.out, "Millrace's policies are set")
	untouched(t, other)
}

func TestManagementURLOfAnotherBroker(t *testing.T) {
	other, ours := neighbours(t)
	for _, address := range []string{other.ManagementURL(), ours.ManagementURL() + "," + other.ManagementURL()} {
		flags := []string{"--amqp-url", ours.AMQPURL(), "--management-url", address, "--http-addr", "127.0.0.1:0"}
		r := millrace(t, append([]string{"serve"}, flags...)...)
		require.Equal(t, cli.ExitFailed, r.code, r.err)
		want := fmt.Sprintf("the management API at %s (", hostOf(t, other.ManagementURL()))
		require.Equal(t, 1, strings.Count(r.err, want), r.err)
		require.Contains(t, r.err, fmt.Sprintf("belongs to another broker than AMQP at %s (", hostOf(t, ours.AMQPURL())))
		require.Contains(t, r.err, "→ set --management-url to the management API of the broker at "+hostOf(t, ours.AMQPURL()))
		require.NotContains(t, r.err, "guest:guest")

		r = millrace(t, append([]string{"doctor"}, flags...)...)
		require.Equal(t, cli.ExitFailed, r.code)
		require.Regexp(t, `(?m)^ok    broker .*\nFAIL  management API  the management API at .* belongs to another broker`, r.out)
	}
	untouched(t, other)
}

func TestStreamListenerOfAnotherBroker(t *testing.T) {
	if os.Getenv("MILLRACE_TEST_LAVINMQ") != "" {
		t.Skip("LavinMQ has no stream listener")
	}
	other, ours := privateBroker(t, 0), privateBroker(t, 0)
	flags := []string{"--amqp-url", ours.AMQPURL(), "--management-url", ours.ManagementURL(), "--http-addr", "127.0.0.1:0"}
	r := millrace(t, append([]string{"serve", "--stream-url", other.StreamURL()}, flags...)...)
	require.Equal(t, cli.ExitFailed, r.code, r.err)
	require.Contains(t, r.err, "the stream listener at rabbitmq-stream://guest:***@"+hostOf(t, other.StreamURL()))
	require.Contains(t, r.err, "belongs to another broker than AMQP at amqp://guest:***@"+hostOf(t, ours.AMQPURL()))
	require.Contains(t, r.err, "→ set --stream-url")
	untouched(t, other)

	// With journals on both.
	beside := start(t, sidecarOf(other))
	beside.leads(t)
	require.NoError(t, beside.end())
	r = millrace(t, append([]string{"serve", "--stream-url", other.StreamURL()}, flags...)...)
	require.Equal(t, cli.ExitFailed, r.code, r.err)
	require.Contains(t, r.err, "their streams "+wire.Journal+" differ")
	r = millrace(t, append([]string{"doctor", "--stream-url", other.StreamURL()}, flags...)...)
	require.Regexp(t, `FAIL  streams         the stream listener at \S+ belongs to another broker`, r.out)

	// The management API names the other's listener, as it does if both listen on the same port of
	// containers.
	_, err := ours.Eval(t.Context(), fmt.Sprintf(`begin ok = application:stop(rabbitmq_stream),
		rabbit_networking:tcp_listener_started(stream, [], {127,0,0,1}, %d) end.`, portOf(t, other.StreamURL())))
	require.NoError(t, err)
	settings := sidecarOf(ours)
	settings.ManagementURL, settings.Auth = ours.ManagementURL(), "none"
	s := start(t, settings)
	s.leads(t)
	s.ready(t)
	require.Equal(t, 1, strings.Count(s.log.String(), "is another broker's, and is not used"), s.log.String())
	require.Contains(t, s.log.String(), "protocol=amqp")
	require.NotContains(t, s.log.String(), "protocol=native")
}
