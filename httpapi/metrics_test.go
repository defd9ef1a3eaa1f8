package httpapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/wire"
)

func at(now time.Time) func(*httpapi.Config) {
	return func(c *httpapi.Config) { c.Now = func() time.Time { return now } }
}

func metric(at int64, class, queue, status string, ms int, more string) string {
	return fmt.Sprintf(`{"timestamp":%d,"job_class":%q,"queue":%q,"status":%q,"duration_ms":%d%s}`, at, class, queue, status, ms, more)
}

// sums are the answer about a range of time, as a client reads it.
type sums struct {
	From, To float64
	Step     float64 `json:"step_seconds"`
	Older    bool    `json:"older_than_kept"`
	Total    struct {
		Success, Failed int
		Attempts        []int
		Total           float64 `json:"total_ms"`
		Run, Wait       *struct {
			Count   int
			P99     float64 `json:"p99_ms"`
			Buckets []int
		}
	}
	Series  []struct{ At, Success, Failed float64 }
	Classes []struct {
		Name     string
		Attempts []int
	}
	Queues   []struct{ Name string }
	Failures []struct {
		Class, Error string
		Count        int
	}
	Deploys []struct{ Label string }
}

func (w *world) sumsAt(target string) (s sums) {
	w.t.Helper()
	a := w.get(target)
	require.Equal(w.t, http.StatusOK, a.StatusCode, a.body)
	require.NoError(w.t, json.Unmarshal([]byte(a.body), &s))
	return s
}

func TestJobMetrics(t *testing.T) {
	w := newWorld(t, at(time.Unix(1_700_000_060, 0)))
	w.add(wire.JobMetrics, metric(1_700_000_000, "A", "x", "success", 100, `,"wait_ms":5`))
	w.add(wire.JobMetrics, "["+metric(1_700_000_010, "A", "y", "failed", 200, `,"error_class":"E"`)+","+metric(1_699_999_000, "B/C", "x", "dead", 50, "")+"]")
	w.clock = w.clock.Add(2 * time.Second) // it is time to write
	w.add(wire.JobMetrics, metric(1_700_000_011, "A", "x", "success", 300, ""))

	s := w.sumsAt("/api/job-metrics")
	require.EqualValues(t, 60, s.Step)
	require.Len(t, s.Series, 61, "an hour, moved to full minutes")
	require.Equal(t, []int{2, 1}, []int{s.Total.Success, s.Total.Failed})
	require.InEpsilon(t, 300, s.Total.Run.P99, .5)
	require.Len(t, s.Classes, 2)
	require.Equal(t, "A", s.Classes[0].Name)
	require.Equal(t, "E", s.Failures[0].Error)

	one := w.sumsAt("/api/job-metrics/B%2FC?from=1699990000&step=3600")
	require.Zero(t, one.Total.Success)
	require.Equal(t, 1, one.Total.Run.Count)
	require.Nil(t, one.Total.Wait)
	require.Len(t, w.sumsAt("/api/job-metrics?queue=y").Classes, 1)
	require.EqualValues(t, 86400, w.sumsAt("/api/job-metrics?from=1690000000").Step)
	require.True(t, w.sumsAt("/api/job-metrics?from=2020-01-01T00:00:00Z&to=2020-01-01T01:00:00Z").Older)

	for _, bad := range []string{"?step=61", "?step=x", "?from=x", "?to=x", "?from=2&to=1", "?from=1699000000&step=60", "?class=A"} {
		w.get("/api/job-metrics"+bad).problem(t, http.StatusBadRequest, "bad_request")
	}
	var o struct{ Jobs json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(w.get("/api/overview").body), &o))
	require.JSONEq(t, `{"processed_today":4,"failed_today":2,"processed":4,"failed":2}`, string(o.Jobs))

	text := w.get("/metrics").body
	require.Contains(t, text, `millrace_jobs_finished_total{class="A",outcome="success",queue="x",vhost="/"} 2`)
	require.Contains(t, text, `millrace_jobs_finished_total{class="A",outcome="expired",queue="x",vhost="/"} 0`)
	require.Contains(t, text, `millrace_jobs_failed_total{class="A",error="E",queue="y",vhost="/"} 1`)
	require.Contains(t, text, `millrace_job_run_seconds_bucket{queue="x",vhost="/",le="0.1"} 2`)
	require.Contains(t, text, `millrace_job_wait_seconds_count{queue="x",vhost="/"} 1`)
}

func TestAttempts(t *testing.T) {
	w := newWorld(t, at(time.Unix(1_700_000_060, 0)))
	for _, nth := range []int{1, 1, 2, 3, 4, 25, 26, 1000} {
		w.add(wire.JobMetrics, metric(1_700_000_000, "A", "x", "dead", 1, fmt.Sprintf(`,"attempt":%d`, nth)))
	}
	w.add(wire.JobMetrics, metric(1_700_000_000, "B", "x", "failed", 1, `,"attempt":1`))
	w.add(wire.JobMetrics, metric(1_700_000_000, "B", "x", "success", 1, ""))

	s := w.sumsAt("/api/job-metrics")
	require.Len(t, s.Total.Attempts, 100)
	require.Equal(t, []int{2, 1, 1, 1, 0}, s.Total.Attempts[:5])
	require.Equal(t, []int{1, 1, 0}, s.Total.Attempts[24:27])
	require.Equal(t, []int{0, 1}, s.Total.Attempts[98:])
	require.Equal(t, s.Total.Attempts, s.Classes[0].Attempts)
	require.Equal(t, []int{}, w.sumsAt("/api/job-metrics/B").Total.Attempts, "its attempt was not reported")

	text := w.get("/metrics").body
	for le, n := range map[string]int{"1": 2, "2": 3, "3": 4, "5": 5, "10": 5, "15": 5, "25": 6, "+Inf": 8} {
		require.Contains(t, text, fmt.Sprintf(`millrace_job_attempts_bucket{class="A",queue="x",vhost="/",le=%q} %d`+"\n", le, n))
	}
	require.Contains(t, text, `millrace_job_attempts_sum{class="A",queue="x",vhost="/"} 162`)
	require.Contains(t, text, `millrace_job_attempts_count{class="A",queue="x",vhost="/"} 8`)
	require.Contains(t, text, `millrace_job_attempts_bucket{class="B",queue="x",vhost="/",le="1"} 0`, "so the first end is an increase")
}

func TestQueueThroughput(t *testing.T) {
	w := newWorld(t, at(time.Unix(1_700_000_100, 0)))
	require.JSONEq(t, `{"from":1699999980,"to":1700000040,"step_seconds":60,"queues":[]}`, w.get("/api/queue-throughput?from=1699999980&to=1700000040&step=60").body)
	w.add(wire.JobMetrics, metric(1_700_000_000, "A", "y", "success", 100, ""))
	w.add(wire.JobMetrics, "["+metric(1_700_000_010, "B", "y", "failed", 200, `,"error_class":"E"`)+","+metric(1_700_000_050, "A", "x", "dead", 50, "")+"]")
	w.clock = w.clock.Add(2 * time.Second) // it is time to write
	w.add(wire.JobMetrics, metric(1_700_000_011, "A", "y", "expired", 0, ""))

	require.JSONEq(t, `{"from":1699999920,"to":1700000160,"step_seconds":120,"queues":[{"name":"x","counts":[0,1]},{"name":"y","counts":[3,0]}]}`,
		w.get("/api/queue-throughput?from=1699999990&to=1700000050&step=120").body)
	require.JSONEq(t, `{"from":1699999980,"to":1700000040,"step_seconds":60,"queues":[{"name":"y","counts":[3]}]}`,
		w.get("/api/queue-throughput?from=1699999980&to=1700000040&step=60").body, "x came later")
	require.JSONEq(t, `{"from":1599998400,"to":1600002000,"step_seconds":3600,"older_than_kept":true,"queues":[]}`,
		w.get("/api/queue-throughput?from=1600000000&to=1600000001&step=3600").body)
	require.Equal(t, `["x"]`, gjson.Get(w.get("/api/queue-throughput?queue=x").body, "queues.#.name").Raw)
	for _, bad := range []string{"?step=61", "?step=x", "?from=x", "?to=x", "?from=2&to=1", "?from=1699000000&step=60", "?class=A"} {
		w.get("/api/queue-throughput"+bad).problem(t, http.StatusBadRequest, "bad_request")
	}
}

func TestDeathsNeedAttention(t *testing.T) {
	w := newWorld(t, at(time.Unix(1_700_000_060, 0)))
	w.add(wire.JobMetrics, metric(1_700_000_000, "A", "x", "dead", 100, ""))
	for range 2 { // what was just counted is not counted again
		require.Contains(t, w.get("/api/attention").body, "1 job died in the last 15 minutes")
		w.add(wire.JobMetrics, metric(1_700_000_000, "A", "x", "dead", 100, ""))
	}
}

// A rate of failures is a storm only if the rate before, as far as it is known, was lower.
func TestSteadyFailuresAreNoStorm(t *testing.T) {
	const now, quarter = 1_700_000_000, 15 * 60
	failures := func(from, quarters, each int) func(*world) {
		return func(w *world) {
			for q := range quarters {
				var all []string
				for i := range each {
					all = append(all, metric(int64(from+q*quarter+i%(quarter-60)), "A", "x", "failed", 1, `,"error_class":"E"`))
				}
				for some := range slices.Chunk(all, 500) { // as many as a message may have
					w.add(wire.JobMetrics, "["+strings.Join(some, ",")+"]")
				}
			}
		}
	}
	burst := failures(now-quarter, 1, 1500)
	for name, c := range map[string]struct {
		before func(*world)
		storm  bool
	}{
		"on the first day":               {func(*world) {}, false},
		"as in the five hours before":    {failures(now-6*3600, 23, 1500), false},
		"after one failure":              {failures(now-6*3600, 1, 1), true},
		"after a failure an hour before": {failures(now-3600, 1, 1), false},
	} {
		w := newWorld(t, at(time.Unix(now, 0)))
		c.before(w)
		burst(w)
		require.Equal(t, c.storm, strings.Contains(w.get("/api/attention").body, "retry_storm"), name)
	}
}

func TestDeploys(t *testing.T) {
	w := newWorld(t, at(time.Unix(1_700_000_000, 500_000_000)))
	a := w.do(http.MethodPost, "/api/deploys", `{"label":"v1.2"}`)
	require.Equal(t, http.StatusCreated, a.StatusCode, a.body)
	require.JSONEq(t, `{"label":"v1.2","at":1700000000.5,"actor":"http"}`, a.body)
	m := w.published[0]
	require.Equal(t, wire.Rollups, m.Key)
	for range 2 { // a client without an answer sends it again
		w.fold(wire.Record{Stream: wire.Rollups, UserID: user, Body: m.Body})
	}
	require.JSONEq(t, "["+a.body+"]", w.get("/api/deploys").body)
	require.Equal(t, "[]\n", w.get("/api/deploys?to=1700000000").body)
	require.Equal(t, "v1.2", w.sumsAt("/api/job-metrics").Deploys[0].Label)

	require.Equal(t, http.StatusCreated, w.do(http.MethodPost, "/api/deploys", `{"label":"old","at":1}`).StatusCode)
	for _, bad := range []string{"", `{"label":""}`, `{"label":"x","at":-1}`, `{"label":1}`, `{"label":"x","by":"me"}`} {
		w.do(http.MethodPost, "/api/deploys", bad).problem(t, http.StatusBadRequest, "bad_request")
	}
	w.get("/api/deploys?from=x").problem(t, http.StatusBadRequest, "bad_request")
	w.publish = errors.New("gone")
	w.do(http.MethodPost, "/api/deploys", `{"label":"x"}`).problem(t, http.StatusServiceUnavailable, "service_unavailable")
}

func TestJobMetricsDisabled(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config) { c.Metrics = nil })
	w.get("/api/job-metrics").problem(t, http.StatusServiceUnavailable, "service_unavailable")
	w.get("/api/queue-throughput").problem(t, http.StatusServiceUnavailable, "service_unavailable")
	w.get("/api/deploys").problem(t, http.StatusServiceUnavailable, "service_unavailable")
	require.Equal(t, http.StatusOK, w.get("/api/overview").StatusCode)
	require.NotContains(t, w.get("/metrics").body, "jobs_finished")
}
