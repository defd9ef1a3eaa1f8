package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/scheduler"
	"github.com/millrace-jobs/millrace/wire"
)

func TestHealthAndReadiness(t *testing.T) {
	w := newWorld(t)
	require.JSONEq(t, `{"status":"ok"}`, w.get("/healthz").body)
	a := w.get("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, a.StatusCode)
	require.JSONEq(t, `{"status":"failed","reason":"the view has not caught up with job_journal"}`, a.body)

	defer w.catchUp()()
	require.JSONEq(t, `{"status":"ok"}`, w.get("/readyz").body, "it does not lead, and is still ready")
	w.status.Gap = "the journal lost its newest records, those behind 7"
	a = w.get("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, a.StatusCode, "held jobs are not delivered")
	require.JSONEq(t, `{"status":"failed","reason":"jobs that were pending are held, and are not delivered until an administrator runs millrace release, `+
		`because the journal has a gap: the journal lost its newest records, those behind 7"}`, a.body)
	require.Equal(t, http.StatusOK, w.get("/healthz").StatusCode)
	w.status.Gap = ""
	require.Equal(t, http.StatusOK, w.get("/readyz").StatusCode)
	w.connected = false
	require.Equal(t, http.StatusServiceUnavailable, w.get("/readyz").StatusCode)
	require.Equal(t, http.StatusOK, w.get("/healthz").StatusCode)
}

// A broker is ready when clients can publish, not before. A client that deletes jobs.direct later
// does not change that.
func TestReadyOnceClientsCanPublish(t *testing.T) {
	w := newWorld(t)
	defer w.catchUp()()
	w.status.Accepts = false
	a := w.get("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, a.StatusCode)
	require.Contains(t, a.body, "no leader has made jobs.direct")
	w.status.Accepts = true
	require.Equal(t, http.StatusOK, w.get("/readyz").StatusCode)
	w.status.Accepts = false // of a scheduler that has just started
	require.Equal(t, http.StatusOK, w.get("/readyz").StatusCode)
	w.status.Lacks = "broker: look for queue retries: user x"
	a = w.get("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, a.StatusCode)
	require.NotContains(t, a.body, "user x")
	require.NotContains(t, a.body, "away")
	require.Contains(t, a.body, "`millrace status` and the log say which")
	w.status.Degraded = []scheduler.Degraded{{Subject: "node b", Node: "b"}, {Subject: "queue jobs.letters", Node: "b"}}
	require.Contains(t, w.get("/readyz").body, "a stream is missing or cannot be reached while node b is away;")
	w.status.Degraded = append(w.status.Degraded, scheduler.Degraded{Subject: "node c", Node: "c"})
	require.Contains(t, w.get("/readyz").body, "while the nodes b, c are away;")
	w.connected = false
	require.Contains(t, w.get("/readyz").body, "the broker is not connected while the nodes b, c are away")
}

// A sidecar is ready if jobs can fire without the topology that is unavailable. That is listed,
// without the broker's own words.
func TestDegradedIsReady(t *testing.T) {
	w := newWorld(t)
	defer w.catchUp()()
	w.status.Degraded = []scheduler.Degraded{{Subject: "queue heartbeats", Problem: "refused for user 'x'", Costs: "the list is old", Node: "rabbit@b", Since: time.Unix(5, 0).UTC()}}
	a := w.get("/readyz")
	require.Equal(t, http.StatusOK, a.StatusCode)
	require.JSONEq(t, `{"status":"ok","degraded":[{"subject":"queue heartbeats","costs":"the list is old","node":"rabbit@b","since":"1970-01-01T00:00:05Z"}]}`, a.body)
	require.Contains(t, w.get("/metrics").body, `millrace_degraded{subject="queue heartbeats",vhost="/"} 1`)
	require.Contains(t, w.get("/api/attention").body, `the list is old while node rabbit@b is away: refused for user 'x'`)
	w.status.Degraded = nil
	require.JSONEq(t, `{"status":"ok"}`, w.get("/readyz").body)
	require.NotContains(t, w.get("/metrics").body, "millrace_degraded")
}

// A lock that a client holds is listed, with a remedy.
func TestForeignLockNeedsAttention(t *testing.T) {
	w := newWorld(t)
	w.status.Orphaned, w.status.OrphanCause, w.status.OrphanCure = true, "a client consumes jobs.leader, and answers no pings", "close its connection"
	require.Contains(t, w.get("/api/attention").body, `"kind":"no_leader","severity":"critical","text":"no sidecar leads, no jobs are dispatched: `+
		`a client consumes jobs.leader, and answers no pings; close its connection"`)
	require.Contains(t, w.get("/metrics").body, `millrace_leader_lock_orphaned{vhost="/"} 1`)
}

// A failing health check is listed: the list must not be empty while the broker is lost, no leader
// responds or no worker is connected.
func TestFailingHealthChecksNeedAttention(t *testing.T) {
	items := func(w *world) string { return gjson.Get(w.get("/api/attention").body, "items").Raw }
	const noWorkers = `{"kind":"no_workers","severity":"warning","text":"no live worker processes","value":1}`
	w := newWorld(t)
	defer w.catchUp()()
	require.JSONEq(t, "["+noWorkers+"]", items(w))
	w.add(wire.Heartbeats, beat("sidecar:1:x", `,"queues":["queue.millrace.messages"]`)) // which delivers messages only
	require.JSONEq(t, "["+noWorkers+"]", items(w))
	w.add(wire.Heartbeats, beat("h:1:x", `,"state":"quiet"`))
	require.JSONEq(t, `[{"kind":"no_workers","severity":"warning","text":"no live worker processes (quiet, stopping or lost: 1)","value":1}]`, items(w))
	w.add(wire.Heartbeats, beat("h:2:x", ""))
	require.JSONEq(t, `[]`, items(w))

	w.status.Blocked = "low on memory"
	require.JSONEq(t, `[{"kind":"broker_alarm","severity":"critical","text":"the broker has an alarm and blocks publishers: low on memory","value":1}]`, items(w))
	w.connected = false
	require.JSONEq(t, `[{"kind":"broker_disconnected","severity":"critical","text":"the broker is not connected","value":1}]`, items(w))

	silent := newWorld(t)
	defer silent.catchUp()()
	silent.reply = wire.Reply{Status: wire.StatusUnavailable, Error: "no_leader", Reason: "no sidecar leads right now"}
	require.JSONEq(t, `[{"kind":"no_leader","severity":"critical","text":"no leader responds: no sidecar leads right now","value":1},`+noWorkers+`]`, items(silent))
}

// busy is a world in which everything has happened.
func busy(t *testing.T) *world {
	now := time.Unix(2_000_000_000, 0)
	w := newWorld(t, func(c *httpapi.Config) { c.Now = func() time.Time { return now } })
	epoch := w.journal(wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format, Identity: "host:1", At: 1_700_000_000, Held: map[string]int64{wire.Retries: 9}})
	w.add(wire.ScheduledJobs, scheduled("a", 2_000_000_100))
	late := w.add(wire.Retries, retry("parked", 1_999_999_000, "q", "C", "E"))
	w.journal(wire.JournalRecord{Type: wire.TypeRefused, Epoch: epoch, Stream: wire.Retries, Offset: late, JID: "parked", Error: "no"})
	w.add(wire.Retries, retry("b", 1_999_999_990, "q", "C", "E"))
	w.add(wire.DeadJobs, dead("d", 1_000_000_000))
	w.add(wire.DeadJobs, "garbage")
	// A leader that was followed decided this. It is void: the entry stays.
	w.journal(wire.JournalRecord{Type: wire.TypeDeleted, Epoch: epoch - 1, Stream: wire.Retries, Offset: late, JID: wire.JIDTag("parked")})
	dispatch := wire.Dispatch{Op: wire.OpFired, Stream: wire.ScheduledJobs, Offset: 99, JIDTag: "x", Epoch: epoch, Seq: 1}
	w.fold(wire.Record{Stream: wire.Journal, UserID: user, Headers: dispatch.Headers(), Body: []byte("{}")})
	w.status = scheduler.Status{Leader: true, Phase: "leading", Epoch: epoch, Unconfirmed: 7, Blocked: "memory", LastLate: 2 * time.Millisecond,
		Held: []scheduler.HeldQueue{{Queue: "q"}}, InDoubt: 5, Silent: 2, LeaseAge: 250 * time.Millisecond,
		MissingReplicas: map[string]int{wire.Journal: 1, wire.Retries: 0}, Counters: scheduler.Counters{Fired: 11, Returned: 2, Refused: 1, Lost: 3, Commands: 4, Epochs: 1}}
	w.status.Counters.FireDelays.Counts = [15]int64{2: 3, 14: 1}
	w.status.Counters.Confirms.Sum = 3 * time.Second
	return w
}

func TestOverview(t *testing.T) {
	w := busy(t)
	defer w.catchUp()()
	a := w.get("/api/overview")
	require.Equal(t, http.StatusOK, a.StatusCode, a.body)
	var o struct {
		Product string `json:"product_name"`
		Version string `json:"product_version"`
		VHost   string
		Now     float64
		Broker  struct {
			Connected        bool
			Product, Version string
		}
		Leader struct {
			Identity string
			Epoch    int64
			Since    float64
		}
		Scheduler scheduler.Status
		Sets      map[string]struct {
			Total, Bytes int64
			AsOf         int64 `json:"as_of"`
		}
		Overdue float64 `json:"scheduled_overdue_seconds"`
		Views   struct {
			CaughtUp bool `json:"caught_up"`
			Streams  []struct{ Stream string }
		}
		Rejected map[string]struct{ Kept, Ever int64 }
		Journal  struct {
			Fired int64
			Void  map[string]int64 `json:"void_records"`
			Held  map[string]int64
		}
	}
	require.NoError(t, json.Unmarshal([]byte(a.body), &o))
	require.Equal(t, "Millrace", o.Product)
	require.Equal(t, "1.2.3", o.Version)
	require.Equal(t, "/", o.VHost)
	require.EqualValues(t, 2_000_000_000, o.Now)
	require.True(t, o.Broker.Connected)
	require.Equal(t, "RabbitMQ", o.Broker.Product)
	require.Equal(t, "host:1", o.Leader.Identity)
	require.EqualValues(t, 1_700_000_000, o.Leader.Since)
	require.Equal(t, w.status.Held, o.Scheduler.Held)
	require.EqualValues(t, 1, o.Sets["scheduled-jobs"].Total)
	require.EqualValues(t, 2, o.Sets["retries"].Total)
	require.EqualValues(t, 1, o.Sets["dead-jobs"].Total)
	require.EqualValues(t, len(dead("d", 1_000_000_000)), o.Sets["dead-jobs"].Bytes)
	require.EqualValues(t, 10, o.Overdue, "a parked entry waits for a user, and is not overdue")
	require.True(t, o.Views.CaughtUp)
	require.Len(t, o.Views.Streams, 5)
	require.EqualValues(t, 1, o.Rejected[wire.DeadJobs].Kept)
	require.EqualValues(t, 1, o.Journal.Fired)
	require.EqualValues(t, 1, o.Journal.Void[wire.Journal])
	require.EqualValues(t, 9, o.Journal.Held[wire.Retries])
}

func TestMetrics(t *testing.T) {
	w := busy(t)
	defer w.catchUp()()
	for i := range 20 {
		w.get(fmt.Sprintf("/api/retries/job-%d", i))
		w.get(fmt.Sprintf("/random/%d", i))
		w.do(fmt.Sprintf("VERB%d", i), "/healthz", "")
	}
	body := w.get("/metrics").body
	for _, line := range []string{
		`millrace_up{vhost="/"} 1`,
		`millrace_leader{vhost="/"} 1`,
		`millrace_set_jobs{set="scheduled",vhost="/"} 1`,
		`millrace_set_jobs{set="retry",vhost="/"} 2`,
		`millrace_set_jobs{set="dead",vhost="/"} 1`,
		fmt.Sprintf(`millrace_set_bytes{set="scheduled",vhost="/"} %d`, len(scheduled("a", 2_000_000_100))),
		fmt.Sprintf(`millrace_set_bytes{set="dead",vhost="/"} %d`, len(dead("d", 1_000_000_000))),
		`millrace_scheduled_overdue_seconds{vhost="/"} 10`,
		`millrace_scheduled_last_fire_delay_seconds{vhost="/"} 0.002`,
		`millrace_scheduled_fire_delay_seconds_bucket{vhost="/",le="0.01"} 3`,
		`millrace_scheduled_fire_delay_seconds_bucket{vhost="/",le="60"} 3`,
		`millrace_scheduled_fire_delay_seconds_count{vhost="/"} 4`,
		`millrace_publish_confirm_seconds_sum{vhost="/"} 3`,
		`millrace_stream_offset{kind="applied",stream="job_journal",vhost="/"} -1`,
		`millrace_stream_offset{kind="written",stream="job_journal",vhost="/"} -1`,
		`millrace_stream_lag_messages{stream="retries",vhost="/"} 0`,
		`millrace_stream_lag_seconds{stream="retries",vhost="/"} 0`,
		`millrace_index_ready{vhost="/"} 1`,
		`millrace_broker_connected{vhost="/"} 1`,
		`millrace_broker_blocked{vhost="/"} 1`,
		`millrace_broker_reconnects_total{vhost="/"} 3`,
		`millrace_publish_failed_total{reason="returned",vhost="/"} 2`,
		`millrace_publish_failed_total{reason="refused",vhost="/"} 1`,
		`millrace_unconfirmed_publishes{vhost="/"} 7`,
		`millrace_fires_total{vhost="/"} 11`,
		`millrace_journal_dispatches_total{kind="fire",vhost="/"} 1`,
		`millrace_held_queues{vhost="/"} 1`,
		`millrace_fires_in_doubt{vhost="/"} 5`,
		`millrace_silent_queues{vhost="/"} 2`,
		`millrace_leader_lease_age_seconds{vhost="/"} 0.25`,
		`millrace_missing_replicas{queue="job_journal",vhost="/"} 1`,
		`millrace_missing_replicas{queue="retries",vhost="/"} 0`,
		`millrace_void_records_total{stream="job_journal",vhost="/"} 1`,
		`millrace_rejected_records_total{stream="dead_jobs",vhost="/"} 1`,
		`millrace_rejected_records_total{stream="retries",vhost="/"} 0`,
		`millrace_rejected_records_total{stream="jobs.gated",vhost="/"} 0`,
		`millrace_void_records_total{stream="retries",vhost="/"} 0`,
		`millrace_rejected_records{stream="dead_jobs",vhost="/"} 1`,
		`millrace_http_requests_total{code="404",method="GET",route="/api/retries/:jid",vhost="/"} 20`,
		`millrace_http_requests_total{code="404",method="GET",route="other",vhost="/"} 20`,
		`millrace_http_requests_total{code="405",method="other",route="/healthz",vhost="/"} 20`,
		`millrace_http_request_duration_seconds_count{method="GET",route="/api/retries/:jid",vhost="/"} 20`,
	} {
		require.True(t, strings.Contains(body, line+"\n"), line)
	}
	require.Regexp(t, `millrace_build_info\{goversion="go1[^"]*",revision="[^"]+",version="1\.2\.3"\} 1`, body)
	require.Contains(t, body, "go_goroutines ")
	for _, unbounded := range []string{"job-1", "random", "VERB"} {
		require.False(t, strings.Contains(body, unbounded), unbounded)
	}
	for _, name := range regexp.MustCompile(`(?m)^# TYPE (millrace_\S+) (\S+)$`).FindAllStringSubmatch(body, -1) {
		require.Equal(t, name[2] == "counter", strings.HasSuffix(name[1], "_total"), name[1])
	}
}

func TestMetricsInEveryListedFormat(t *testing.T) {
	w := newWorld(t)
	for media := range document(t).Paths.Value("/metrics").Get.Responses.Value("200").Value.Content {
		r := request(http.MethodGet, "/metrics", "")
		r.Header.Set("Accept", media+";proto=io.prometheus.client.MetricFamily;encoding=delimited")
		require.True(t, strings.HasPrefix(w.send(r).Header.Get("Content-Type"), media+";"), media)
	}
}
