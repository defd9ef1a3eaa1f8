package httpapi_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/wire"
)

func TestRecentRunsRelativeToNow(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config) { c.Now = func() time.Time { return time.Unix(1_700_000_000, 0) } })
	for _, at := range []int64{1_699_990_000, 1_699_996_401, 1_699_999_900} {
		w.add(wire.JobMetrics, fmt.Sprintf(`{"type":"job_metric","timestamp":%d,"job_class":"C","queue":"q","status":"success","worker_identity":"w","jid":"at-%d"}`, at, at))
	}
	jids := func(query string) string { return gjson.Get(w.get("/api/jobs?"+query).body, "items.#.jid").Raw }
	require.JSONEq(t, `["at-1699999900","at-1699996401"]`, jids("from=-1h"))
	require.JSONEq(t, `["at-1699996401"]`, jids("from=-1h&to=-10m"))
	require.JSONEq(t, `["at-1699990000"]`, jids("to=-1h"))
	w.config.RunAge = 36 * time.Hour
	w.build()
	require.InDelta(t, 36*3600, gjson.Get(w.get("/api/jobs").body, "max_age_seconds").Num, 0)
	w.get("/api/jobs?from=1h").problem(t, http.StatusBadRequest, "bad_request")
}

func TestRecentRuns(t *testing.T) {
	w := newWorld(t)
	require.JSONEq(t, `{"items":[],"searched":0,"next":null,"older_than_kept":false}`, w.get("/api/jobs").body)
	for i, status := range []string{"success", "failed", "dead", "expired"} {
		w.add(wire.JobMetrics, fmt.Sprintf(`{"type":"job_metric","timestamp":%d,"job_class":"C%d","queue":"q","duration_ms":12.5,"status":%q,"worker_identity":"w","jid":"a/%d","attempt":2,"error_class":"E%d"}`,
			1_699_999_000+i, i%2, status, i, i))
	}
	require.JSONEq(t, `{"at":1699999003,"jid":"a/3","class":"C1","queue":"q","status":"expired","duration_ms":12.5,"wait_ms":null,"attempt":2,"worker":"w","error_class":"E3"}`,
		gjson.Get(w.get("/api/jobs").body, "items.0").Raw)
	for query, want := range map[string]string{
		"": "[a/3 a/2 a/1 a/0]", "class=C1": "[a/3 a/1]", "queue=x": "[]", "jid=a%2F2": "[a/2]", "error=E1": "[a/1]", "worker=w": "[a/3 a/2 a/1 a/0]", "worker=w2": "[]", "status=dead": "[a/2]", "failed=true": "[a/2 a/1]",
		"failed=false": "[a/3 a/0]", "from=1699999001&to=1699999003": "[a/2 a/1]", "limit=2": "[a/3 a/2]", "next=2,0": "[a/1 a/0]",
	} {
		jids := []any{}
		p := w.past("/api/jobs?" + query)
		for _, i := range p.Items {
			jids = append(jids, i["jid"])
		}
		require.Equal(t, want, fmt.Sprint(jids), query)
		require.Equal(t, query == "limit=2", p.Next != nil)
	}
	require.Equal(t, "failed", gjson.Get(w.get("/api/jobs/a%2F1").body, "runs.0.status").Str)
	for _, query := range []string{"limit=0", "status=x", "failed=maybe", "failed=true&status=dead", "next=1", "next=1,x", "next=-1,0", "from=x", "to=x", "page=1", "error=fp-0f2b7a5c9d8e1a34"} {
		w.get("/api/jobs?"+query).problem(t, http.StatusBadRequest, "bad_request")
	}
}
