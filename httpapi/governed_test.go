package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

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
