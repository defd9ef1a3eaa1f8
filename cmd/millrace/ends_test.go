package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// metrics returns what /metrics shows.
func (r *running) metrics(t *testing.T) string {
	t.Helper()
	body, err := r.api.Do(t.Context(), apiclient.Request{Path: "/metrics"})
	require.NoError(t, err)
	return string(body)
}

func TestMetricsShowEndsOfStreams(t *testing.T) {
	v := brokertest.New(t)
	s := start(t, beside(v))
	s.leads(t)
	const retries = 5
	record := []byte(`{"type":"retry","jid":"r","retry_at":4000000000,"retry_count":1,"error_class":"E","error_message":"","job":{"jid":"r","class":"A","queue":"q","args":[]}}`)
	for range retries {
		v.Publish(t, "", wire.Retries, amqp.Publishing{Body: record})
	}
	bytes := fmt.Sprintf("millrace_set_bytes{set=\"retry\",vhost=%q} %d\n", v.Name, retries*len(record))
	brokertest.Eventually(t, func() bool { return strings.Contains(s.metrics(t), bytes) }, "all are counted")

	text := s.metrics(t)
	value := func(name, labels string) string {
		t.Helper()
		found := regexp.MustCompile(`(?m)^millrace_` + name + `\{` + labels + `stream="retries",vhost="` + v.Name + `"\} (\S+)$`).FindStringSubmatch(text)
		require.NotNil(t, found, "%s %s", name, labels)
		return found[1]
	}
	applied := value("stream_offset", `kind="applied",`)
	require.NotEqual(t, "-1", applied)
	require.Equal(t, applied, value("stream_offset", `kind="written",`))
	require.Equal(t, "0", value("stream_lag_messages", ""))
}
