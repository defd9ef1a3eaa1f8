package httpapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/tracker/queues"
	"github.com/millrace-jobs/millrace/wire"
)

// governs journals a layer of a governed queue and its state.
func (w *world) governs(queue, value, state string) {
	if len(w.entries.Governed.GovernedQueues()) == 0 {
		w.journal(wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format})
	}
	turn := w.journal(wire.JournalRecord{Type: wire.TypeDefined, At: 5, Actor: "ann", Defined: []wire.Defined{{Kind: wire.KindQueue, Name: queue, Layer: wire.LayerCode, Source: "s", Value: json.RawMessage(value)}}})
	w.journal(wire.JournalRecord{Type: wire.TypeGoverned, At: 7, Restated: []wire.Restated{{Queue: queue, Turn: turn, State: state}}})
}

func TestGovernedQueues(t *testing.T) {
	w := newWorld(t)
	require.Equal(t, "[]\n", w.get("/api/governed-queues").body)
	w.governs("mails", `{"key":"args.0","ahead":4}`, wire.QueueGoverned)
	w.add(wire.Gated, `{"jid":"a","class":"C","queue":"mails","args":["k"]}`)
	w.add(wire.Gated, `{"jid":"b","class":"C","queue":"other","args":["k"]}`)
	want := `{"name":"mails","state":"governed","since":7,"definition":{"ahead":4,"key":"args.0"},"layers":{"code":{"source":"s","value":{"key":"args.0","ahead":4},"at":5,"actor":"ann"}},"waiting":1,"out":0}`
	require.JSONEq(t, "["+want+"]", w.get("/api/governed-queues").body)
	require.JSONEq(t, want, w.get("/api/governed-queues/mails").body)
	w.get("/api/governed-queues/other").problem(t, http.StatusNotFound, "not_found")

	var why map[string]any
	require.NoError(t, json.Unmarshal([]byte(w.get("/api/jobs/a/limits").body), &why))
	require.Equal(t, "k", why["key"], "the job does not say it itself")
	require.Equal(t, map[string]any{"state": "governed", "out": 0.0, "ahead": 4.0}, why["governed"])
	w.get("/api/jobs/b/limits").problem(t, http.StatusNotFound, "not_found")
}

// What it would mean to govern a queue is shown before it is governed. The leader says whether it
// could be.
func TestGoverningIsPreviewed(t *testing.T) {
	w := newWorld(t, watching(true, broker.QueueInfo{Name: "queue.mails", Ready: 7, Unacked: 2}))
	w.governs("first", `{}`, wire.QueueGoverned)
	w.limited("all", `{"concurrency":2}`)
	w.limited("mails", `{"queues":["mails"],"classes":["Mail"],"concurrency":2}`)
	w.limited("other", `{"queues":["other"],"concurrency":2}`)
	w.limited("part", `{"queues":["mails"]}`)
	w.wait("mails", "a", "b")
	w.wait("other", "a")
	w.add(wire.Retries, retry("r", 2e9, "mails", "C", "E"))
	for _, jid := range []string{"x", "y", "z"} {
		w.add(wire.ScheduledJobs, strings.Replace(scheduled(jid, 3e9), "default", "mails", 1))
	}
	w.reply = wire.Reply{Status: wire.StatusOK, Defined: &wire.DefineResult{Made: []string{"mails"}}}
	preview := func(name, layer string) answer {
		return w.do(http.MethodPut, "/api/governed-queues/"+name+"?dry_run=true", layer)
	}

	require.JSONEq(t, `{"name":"mails","definition":{"key":"args.0"},"limits":["all","mails"],"ready":7,"unacked":2,"gated":2,"scheduled":3,"retries":1}`, preview("mails", `{"key":"args.0"}`).body)
	require.Len(t, w.commands, 1)
	require.True(t, w.commands[0].DryRun)
	require.False(t, gjson.Get(preview("mails", `{"max_waiting":3}`).body, "full").Bool())
	require.True(t, gjson.Get(preview("mails", `{"max_waiting":2}`).body, "full").Bool())
	require.JSONEq(t, `{"name":"unknown","definition":{"max_waiting":1},"limits":["all"],"gated":0,"scheduled":0,"retries":0,"full":false}`, preview("unknown", `{"max_waiting":1}`).body)
	w.get("/api/governed-queues/mails").problem(t, http.StatusNotFound, "not_found")

	w.governs("mails", `{"key":"args.0","max_waiting":9}`, wire.QueueGoverned)
	changed := preview("mails", `{"max_waiting":2}`).body
	require.JSONEq(t, `{"state":"governed","definition":{"key":"args.0","max_waiting":2},"full":true}`, only(changed, "state", "definition", "full"))

	asked := len(w.commands)
	for _, bad := range []string{`{"key":"a..b"}`, `{"max_waiting":-1}`, `{"burst":1}`, `[]`, `{"name":"other"}`} {
		preview("mails", bad).problem(t, http.StatusBadRequest, "bad_request")
	}
	w.do(http.MethodPut, "/api/governed-queues/mails?dry_run=1", `{}`).problem(t, http.StatusBadRequest, "bad_request")
	require.Len(t, w.commands, asked)
	w.reply = wire.Reply{Status: wire.StatusDrifted, Error: "precondition_failed", Reason: "no alternate exchange"}
	preview("new", `{}`).problem(t, http.StatusPreconditionFailed, "precondition_failed")
	w.reply = wire.Reply{Status: wire.StatusOK, Defined: &wire.DefineResult{}}
	require.Equal(t, http.StatusNoContent, w.do(http.MethodPut, "/api/governed-queues/mails?dry_run=false", `{}`).StatusCode)
	require.False(t, w.commands[len(w.commands)-1].DryRun)
}

// What the broker does not report is left out of a preview.
func TestPreviewOfGoverningWithoutBroker(t *testing.T) {
	for name, config := range map[string]func(*httpapi.Config){
		"not looked at": func(*httpapi.Config) {},
		"away":          func(c *httpapi.Config) { c.Queues = queues.New(nil) },
		"no rates":      watching(false, broker.QueueInfo{Name: "queue.mails", Ready: 7, Unacked: 2}),
	} {
		w := newWorld(t, config)
		w.reply = wire.Reply{Status: wire.StatusOK, Defined: &wire.DefineResult{}}
		body := w.do(http.MethodPut, "/api/governed-queues/mails?dry_run=true", `{}`).body
		require.Equal(t, name == "no rates", gjson.Get(body, "ready").Exists(), body)
		require.False(t, gjson.Get(body, "unacked").Exists(), body)
		require.Equal(t, "[]", gjson.Get(body, "limits").Raw)
	}
}

func TestGovernedQueuesHaveMetrics(t *testing.T) {
	w := newWorld(t)
	w.add(wire.Gated, `{"jid":"z","class":"C","queue":"mails","args":[]}`)
	require.NotContains(t, w.get("/metrics").body, "millrace_governed")
	w.governs("mails", `{"key":"args.0","max_waiting":2}`, wire.QueueFull)
	w.governs("imports", `{"paused":true}`, wire.QueueDraining)
	w.add(wire.Gated, `{"jid":"a","class":"C","queue":"mails","args":["secret-a"]}`)
	w.add(wire.Gated, `{"jid":"b","class":"D","queue":"mails","args":["secret-b"]}`)
	w.holds("mails", "secret-a", "secret-a")

	body := w.get("/metrics").body
	for _, line := range []string{
		`millrace_governed_state{queue="mails",state="full",vhost="/"} 1`, `millrace_governed_state{queue="imports",state="draining",vhost="/"} 1`,
		`millrace_governed_waiting{queue="mails",vhost="/"} 3`, `millrace_governed_waiting{queue="imports",vhost="/"} 0`,
		`millrace_governed_out{queue="mails",vhost="/"} 2`, `millrace_governed_max_waiting{queue="mails",vhost="/"} 2`,
		`millrace_governed_paused{queue="mails",vhost="/"} 0`, `millrace_governed_paused{queue="imports",vhost="/"} 1`,
	} {
		require.Contains(t, body, line+"\n")
	}
	require.NotContains(t, body, `millrace_governed_max_waiting{queue="imports"`)
	require.NotContains(t, body, "secret")

	w.journal(wire.JournalRecord{Type: wire.TypeDefined, Defined: []wire.Defined{{Kind: wire.KindQueue, Name: "imports", Layer: wire.LayerCode}}})
	body = w.get("/metrics").body
	require.Contains(t, body, `millrace_governed_state{queue="imports",state="leaving",vhost="/"} 1`)
	require.NotContains(t, body, `millrace_governed_waiting{queue="imports"`)
}

// Jobs that are enqueued for a governed queue wait for limits, until too many do.
func TestEnqueueForGovernedQueue(t *testing.T) {
	w := newSecured(t)
	enqueue := func(job string) answer { return w.as("management", http.MethodPost, "/api/jobs", job) }
	w.governs("mails", `{"max_waiting":1}`, wire.QueueGoverned)
	require.Equal(t, http.StatusCreated, enqueue(`{"class":"C","queue":"mails","args":[]}`).StatusCode)
	require.Equal(t, []string{"", wire.Gated}, []string{w.published[0].Exchange, w.published[0].Key})

	turn := w.entries.Governed.GovernedQueue("mails").Turn
	w.journal(wire.JournalRecord{Type: wire.TypeGoverned, Restated: []wire.Restated{{Queue: "mails", Turn: turn, State: wire.QueueFull}}})
	enqueue(`{"class":"C","queue":"mails","args":[]}`).problem(t, http.StatusTooManyRequests, "too_many_requests")
	require.Equal(t, http.StatusCreated, enqueue(`{"class":"C","queue":"mails","args":[],"at":4e9}`).StatusCode, "a job for later is taken")
	require.Equal(t, http.StatusCreated, enqueue(`{"class":"C","queue":"other","args":[]}`).StatusCode)
	require.Equal(t, []string{wire.ExchangeRoute, "other"}, []string{w.published[2].Exchange, w.published[2].Key})
}
