package main

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// A sidecar that starts without a view reads the roll-ups and the records after them, and gives the
// same answers.
func TestMetricsAfterRebuild(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, beside(v))
	s.leads(t)
	now := time.Now()
	publish := func(at time.Time, n int) { // two of three jobs ended at their first attempt
		var all []amqp.Publishing
		for i := range n {
			all = append(all, amqp.Publishing{Body: fmt.Appendf(nil, `{"type":"job_metric","timestamp":%f,"job_class":"C%d","queue":"q","duration_ms":%d,"status":"success","attempt":%d}`,
				wire.Seconds(at), i%3, i, 1+i%3/2)})
		}
		v.Publish(t, "", wire.JobMetrics, all...)
	}
	publish(now.Add(-48*time.Hour), 100)
	publish(now.Add(-24*time.Hour), 100)
	publish(now.Add(-time.Minute), 100)
	brokertest.Eventually(t, func() bool { return len(v.ReadStream(t, wire.Rollups)) == 2 }, "the days before are rolled up")
	r := millrace(t, append([]string{"metrics"}, s.flags...)...)
	require.Regexp(t, `total +100 `, r.out)

	query := url.Values{"from": {strconv.FormatInt(now.Add(-72*time.Hour).Unix(), 10)}, "to": {strconv.FormatInt(now.Unix(), 10)}}
	ask := func(s *running) string {
		body, err := s.api.Do(t.Context(), apiclient.Request{Path: "/api/job-metrics", Query: query})
		require.NoError(t, err)
		return string(body)
	}
	require.Contains(t, ask(s), `"success":300`)
	fresh := start(t, beside(v))
	fresh.ready(t)
	require.Equal(t, ask(s), ask(fresh))
	require.Contains(t, fresh.attempts(t), `millrace_job_attempts_bucket{class="C2",queue="q",vhost="`+v.Name+`",le="2"} 99`+"\n")
	require.Equal(t, s.attempts(t), fresh.attempts(t))

	require.NoError(t, s.end())
	fresh.leads(t)
	publish(now, 50)
	query.Set("to", strconv.FormatInt(now.Add(time.Hour).Unix(), 10))
	brokertest.Eventually(t, func() bool { return strings.Contains(ask(fresh), `"total":{"success":350,`) }, "it counts on")
	third := start(t, beside(v))
	third.ready(t)
	require.Equal(t, ask(fresh), ask(third))
	require.Len(t, v.ReadStream(t, wire.Rollups), 2, "nothing is rolled up twice")
}

// attempts returns the lines of /metrics that count jobs by the attempt at which they ended.
func (s *running) attempts(t *testing.T) string {
	t.Helper()
	body, err := s.api.Do(t.Context(), apiclient.Request{Path: "/metrics"})
	require.NoError(t, err)
	var lines strings.Builder
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "millrace_job_attempts") {
			lines.WriteString(line)
		}
	}
	return lines.String()
}
