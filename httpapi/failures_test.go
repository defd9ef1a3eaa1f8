package httpapi_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/wire"
)

// failedRun is what a worker reports of an attempt.
func failedRun(at int64, jid, status, worker, errorClass string) string {
	return fmt.Sprintf(`{"timestamp":%d,"jid":%q,"job_class":"C","queue":"q","status":%q,"worker_identity":%q,"error_class":%q}`, at, jid, status, worker, errorClass)
}

func TestErrorGroupsCountFailuresByHost(t *testing.T) {
	const now = 1_700_000_000
	w := newWorld(t, at(time.Unix(now, 0)))
	for i := range 3 {
		w.add(wire.Retries, retry(fmt.Sprint("slow-", i), 2_000_000_000, "q", "C", "Timeout"))
	}
	w.add(wire.Retries, retry("full", 2_000_000_000, "q", "C", "NoSpace"))
	w.add(wire.DeadJobs, fmt.Sprintf(`{"jid":"given-up","died_at":%d,"error_class":"Timeout","error_message":"it broke","job":{"class":"C","queue":"q","args":[]}}`, now-30))
	for _, run := range []string{
		failedRun(now-700, "slow-0", "failed", "web-1:1:shop", "Timeout"), // too long ago
		failedRun(now-500, "slow-0", "failed", "web-1:1:shop", "Timeout"),
		failedRun(now-400, "slow-0", "failed", "web-1:2:shop", "Timeout"), // another process of that host
		failedRun(now-300, "slow-1", "failed", "web-2:1:shop", "Timeout"),
		failedRun(now-290, "slow-1", "failed", "web-2:1:shop", "Refused"), // another error
		failedRun(now-280, "slow-1", "success", "web-2:1:shop", ""),
		failedRun(now-200, "slow-2", "failed", "", ""), // a worker that reports no more than this
		failedRun(now-100, "unknown", "failed", "web-3:1:shop", "Timeout"),
		failedRun(now-30, "given-up", "dead", "web-3:1:shop", "Timeout"),
	} {
		w.add(wire.JobMetrics, run)
	}
	answer := w.get("/api/errors").body
	require.InDelta(t, 600, gjson.Get(answer, "recent_seconds").Num, 0)
	groups := gjson.Get(answer, "items").Array()
	require.Len(t, groups, 2)
	require.JSONEq(t, `[{"host":"web-1","count":2},{"host":"web-2","count":1},{"host":"web-3","count":1}]`, groups[0].Get("hosts").Raw)
	require.EqualValues(t, 5, groups[0].Get("recent").Int())
	require.EqualValues(t, 3, groups[0].Get("host_count").Int())
	require.EqualValues(t, 0, groups[1].Get("recent").Int(), "nothing failed like this recently")
	require.JSONEq(t, `[]`, groups[1].Get("hosts").Raw)
	dead := gjson.Get(w.get("/api/errors?set=dead-jobs").body, "items").Array()
	require.EqualValues(t, 1, dead[0].Get("recent").Int())
	require.JSONEq(t, `[{"host":"web-3","count":1}]`, dead[0].Get("hosts").Raw)
}

func TestErrorGroupsListHostsWithMostFailures(t *testing.T) {
	const now = 1_700_000_000
	w := newWorld(t, at(time.Unix(now, 0)))
	w.add(wire.Retries, retry("a", 2_000_000_000, "q", "C", "E"))
	for host := range 7 {
		for n := range host + 1 {
			w.add(wire.JobMetrics, failedRun(now-int64(n)-1, "a", "failed", fmt.Sprintf("web-%d:1:w", host), "E"))
		}
	}
	group := gjson.Get(w.get("/api/errors").body, "items.0")
	require.JSONEq(t, `["web-6","web-5","web-4","web-3","web-2"]`, group.Get("hosts.#.host").Raw)
	require.EqualValues(t, 7, group.Get("host_count").Int())
	require.EqualValues(t, 28, group.Get("recent").Int())
}

// A call reads at most so many reports. The failures are counted for as long as these reach back.
func TestErrorGroupsCountShorterTimeWithManyFailures(t *testing.T) {
	const now = 1_700_000_000
	w := newWorld(t, at(time.Unix(now, 0)))
	w.server.SetMaxSearched(20)
	w.add(wire.Retries, retry("a", 2_000_000_000, "q", "C", "E"))
	for n := range 50 {
		w.add(wire.JobMetrics, failedRun(now-50+int64(n), "a", "failed", "web-1:1:w", "E"))
	}
	answer := w.get("/api/errors").body
	require.EqualValues(t, 10, gjson.Get(answer, "items.0.recent").Int())
	require.InDelta(t, 10, gjson.Get(answer, "recent_seconds").Num, 0)
}

func TestFingerprintInFilterIsNamed(t *testing.T) {
	w := newWorld(t)
	epoch := w.journal(wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format})
	offset := w.add(wire.Retries, retry("a", 2_000_000_000, "q", "Mail", "Timeout"))
	w.add(wire.Retries, retry("b", 2_000_000_000, "q", "Mail", "Refused"))
	fingerprint := wire.Fingerprint("Mail", "Timeout", "it broke")
	list := "/api/retries?page=1&error=" + fingerprint
	operation := wire.Operation{ID: "op", Action: wire.CommandDelete, Stream: wire.Retries, Filter: &wire.Filter{Error: fingerprint}, State: wire.OperationRunning, StartedAt: 1}
	w.journal(wire.JournalRecord{Type: wire.TypeOperation, Operation: &operation})
	require.False(t, gjson.Get(w.get("/api/operations").body, "0.error_group").Exists(), "no request has read a job with this error")

	named := `{"fingerprint":"` + fingerprint + `","class":"Mail","error_class":"Timeout","message":"it broke"}`
	require.JSONEq(t, named, gjson.Get(w.get(list).body, "error_group").Raw)
	require.JSONEq(t, named, gjson.Get(w.get(list+"&sort=class").body, "error_group").Raw)
	require.JSONEq(t, named, gjson.Get(w.get("/api/operations").body, "0.error_group").Raw)
	require.JSONEq(t, named, gjson.Get(w.get("/api/operations/op").body, "error_group").Raw)
	for _, other := range []string{"/api/retries?page=1", "/api/retries?page=1&error=Timeout", "/api/retries?page=1&error=fp-0000000000000000"} {
		require.False(t, gjson.Get(w.get(other).body, "error_group").Exists(), other)
	}

	w.journal(wire.JournalRecord{Type: wire.TypeDeleted, Epoch: epoch, Stream: wire.Retries, Offset: offset, JID: "a", InOperation: "op"})
	require.EqualValues(t, 0, gjson.Get(w.get(list).body, "item_count").Int())
	require.JSONEq(t, named, gjson.Get(w.get(list).body, "error_group").Raw, "its only job was deleted")
	require.JSONEq(t, named, gjson.Get(w.get("/api/operations").body, "0.error_group").Raw)
}
