package cli

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/cli/clitest"
)

func TestRequestsOfMetrics(t *testing.T) {
	a := clitest.NewAPI(t, http.StatusOK, `{"total":{"success":3,"run":{"p50_ms":1500}},"series":[{"at":1700000000,"success":1}],
		"classes":[{"name":"Mail","success":3,"failed":1,"dead":0,"total_ms":125000,"run":{"p50_ms":12.5,"p95_ms":900,"p99_ms":1000},"wait":{"p95_ms":1}}],"queues":[{"name":"low"}]}`)
	r := millrace(t, "metrics", "--http-addr", a.Addr())
	require.Zero(t, r.code, r.err)
	require.Regexp(t, `CLASS +SUCCESS +FAILED +DEAD +RUN P50 +RUN P95 +RUN P99 +WAIT P95 +RUN TOTAL\nMail +3 +1 +0 +12.5ms +900ms +1s +1ms +2m5s\ntotal +3 +0 +0 +1.5s`, r.out)
	r = millrace(t, "metrics", "Mail/x", "--queue", "low", "--from", "2026-12-24T18:00:00Z", "--http-addr", a.Addr())
	require.Contains(t, r.out, "QUEUE")
	r = millrace(t, "metrics", "--step", "1h", "-o", "json", "--http-addr", a.Addr())
	require.Contains(t, r.out, `"classes": [`)
	require.Contains(t, millrace(t, "metrics", "--step", "1h", "--http-addr", a.Addr()).out, "TIME")
	require.Equal(t, []string{"GET /api/job-metrics", "GET /api/job-metrics/Mail%2Fx?from=2026-12-24T18%3A00%3A00Z&queue=low",
		"GET /api/job-metrics?step=3600", "GET /api/job-metrics?step=3600"}, a.Asked())
	require.Contains(t, millrace(t, "metrics", "--to", "soon", "--http-addr", a.Addr()).err, `--to: invalid time "soon"`)
}
