package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/scheduler"
	"github.com/millrace-jobs/millrace/wire"
)

// limited journals the operator's layer of a limit.
func (w *world) limited(name, value string) {
	w.journal(wire.JournalRecord{Type: wire.TypeDefined, At: 5, Actor: "ann", Defined: []wire.Defined{{Kind: wire.KindLimit, Name: name, Layer: wire.LayerOperator, Value: json.RawMessage(value)}}})
}

// holds journals that jobs of a queue hold slots, under these keys.
func (w *world) holds(queue string, keys ...string) {
	var held []wire.HeldSlot
	for _, key := range keys {
		n := w.add(wire.Gated, fmt.Sprintf(`{"jid":"held-%s","class":"Import","queue":%q,"gate":{"key":%q}}`, key, queue, key))
		held = append(held, wire.HeldSlot{Stream: wire.Gated, Offset: n, JID: fmt.Sprint("held-", key), Fires: []wire.Through{{Epoch: 1, Through: n}}, At: float64(n + 1),
			Group: wire.Group{Queue: queue, Class: "Import", Key: key}})
		w.journal(wire.JournalRecord{Type: wire.TypeDeleted, Stream: wire.Gated, Offset: n, JID: fmt.Sprint("held-", key)})
	}
	w.journal(wire.JournalRecord{Type: wire.TypeState, Slots: held})
}

// wait adds gated jobs that are due, under these keys.
func (w *world) wait(queue string, keys ...string) {
	for i, key := range keys {
		w.add(wire.Gated, fmt.Sprintf(`{"jid":"waits-%s-%d","class":"Import","queue":%q,"gate":{"key":%q}}`, queue, i, queue, key))
	}
}

func TestLimitsSayWhatTheyHoldBack(t *testing.T) {
	w := newWorld(t)
	w.journal(wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format, Epoch: 1})
	w.limited("each", `{"queues":["imports"],"per":["key"],"concurrency":2}`)
	w.limited("rate", `{"rate":{"jobs":1,"seconds":3600}}`)
	w.limited("still", `{"queues":["mails"],"concurrency":5,"paused":true}`)
	w.holds("imports", "a", "a", "b")
	w.wait("imports", "a", "a", "a", "b")
	w.wait("mails", "c")

	each := w.get("/api/limits/each").body
	require.JSONEq(t, `{"used":3,"slots":4,"full":1,"waiting":4,"blocked":3}`, only(each, "used", "slots", "full", "waiting", "blocked"))
	require.JSONEq(t, `[{"key":"a","concurrency":2,"used":2,"waiting":3},{"key":"b","concurrency":2,"used":1,"waiting":1}]`, gjson.Get(each, "parts").Raw)
	all := w.get("/api/limits").body
	require.JSONEq(t, `{"name":"rate","used":3,"waiting":5,"blocked":0}`, only(gjson.Get(all, "1").Raw, "name", "used", "waiting", "blocked", "slots", "opens"))
	require.JSONEq(t, `{"name":"still","state":"paused","used":0,"slots":5,"waiting":1,"blocked":1}`, only(gjson.Get(all, "2").Raw, "name", "state", "used", "slots", "waiting", "blocked"))

	free := time.Now().Add(time.Hour).UnixMicro()
	hourly := &wire.Rate{Jobs: 1, Seconds: 3600}
	id := wire.RateID("rate", hourly, wire.Group{})
	w.journal(wire.JournalRecord{Type: wire.TypeState, Limits: &wire.LimitPiece{More: true, Rates: map[string]int64{id: free}}})
	rate := w.get("/api/limits/rate").body
	require.EqualValues(t, 5, gjson.Get(rate, "blocked").Int())
	require.InDelta(t, float64(free-hourly.Ahead())/1e6, gjson.Get(rate, "opens").Float(), 1e-3)
	require.Equal(t, gjson.Get(rate, "opens").Raw, gjson.Get(rate, "parts.0.opens").Raw)
}

// A job waits if no one takes the jobs of its queue, and a rate counts it or its queue is governed.
func TestJobOfUnservedQueueWaits(t *testing.T) {
	w := newWorld(t, watching(true, broker.QueueInfo{Name: "queue.imports", Ready: 10}, broker.QueueInfo{Name: "queue.few", Ready: 9},
		broker.QueueInfo{Name: "queue.consumed", Ready: 10, Consumers: 1}))
	w.governs("mails", `{}`, wire.QueueGoverned)
	w.limited("rate", `{"classes":["Import"],"rate":{"jobs":1,"seconds":3600}}`)
	unserved := func(jid string) bool {
		return gjson.Get(w.get("/api/jobs/"+jid+"/limits").body, "unserved").Bool()
	}
	for _, queue := range []string{"imports", "few", "consumed", "unknown"} {
		w.wait(queue, "a")
	}
	w.add(wire.Gated, `{"jid":"plain","class":"Export","queue":"imports","gate":{}}`)
	require.True(t, unserved("waits-imports-0"))
	for _, jid := range []string{"waits-few-0", "waits-consumed-0", "waits-unknown-0", "plain"} {
		require.False(t, unserved(jid), jid)
	}
	w.governs("imports", `{}`, wire.QueueGoverned)
	require.True(t, unserved("plain"))
	w.add(wire.Heartbeats, beat("h:1:x", `,"concurrency":7,"queues":["queue.imports"]`))
	require.False(t, unserved("plain"), "the workers say how many jobs the queue may have")
	require.JSONEq(t, `{"state":"governed","out":0,"ahead":14}`, gjson.Get(w.get("/api/jobs/plain/limits").body, "governed").Raw)
}

// only returns an object with some members of another.
func only(body string, members ...string) string {
	some := map[string]json.RawMessage{}
	for _, m := range members {
		if v := gjson.Get(body, m); v.Exists() {
			some[m] = json.RawMessage(v.Raw)
		}
	}
	raw, _ := json.Marshal(some)
	return string(raw)
}

func TestChangeOfALimitIsPreviewed(t *testing.T) {
	w := newWorld(t)
	w.journal(wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format, Epoch: 1})
	w.limited("each", `{"queues":["imports"],"per":["key"],"concurrency":2}`)
	w.holds("imports", "a", "b")
	w.wait("imports", "a", "b", "b")
	preview := func(name, layer string) string {
		return w.do(http.MethodPut, "/api/limits/"+name+"?dry_run=true", layer).body
	}

	require.EqualValues(t, 0, gjson.Get(w.get("/api/limits/each").body, "blocked").Int())
	less := preview("each", `{"queues":["imports"],"per":["key"],"concurrency":1}`)
	require.JSONEq(t, `{"used":2,"slots":2,"full":2,"waiting":3,"blocked":3}`, only(less, "used", "slots", "full", "waiting", "blocked"))
	require.Len(t, gjson.Get(less, "parts").Array(), 2)
	require.EqualValues(t, 3, gjson.Get(preview("new", `{"concurrency":1}`), "blocked").Int())
	require.Equal(t, "incomplete", gjson.Get(preview("new", `{}`), "state").String())
	require.Empty(t, w.commands, "no leader is asked")
	for _, bad := range []string{`{"concurrency":0.5}`, `{"burst":1}`, `[]`, `{"name":"other"}`} {
		w.do(http.MethodPut, "/api/limits/each?dry_run=true", bad).problem(t, http.StatusBadRequest, "bad_request")
	}
	r := request(http.MethodPut, "/api/limits/each?dry_run=true", `{"concurrency":1}`)
	r.Header.Set("X-Reason", strings.Repeat("x", 5000))
	w.send(r).problem(t, http.StatusBadRequest, "bad_request")
	w.do(http.MethodPut, "/api/limits/each?dry_run=1", `{"concurrency":1}`).problem(t, http.StatusBadRequest, "bad_request")
	w.reply = wire.Reply{Status: wire.StatusOK, Defined: &wire.DefineResult{}}
	require.Equal(t, http.StatusNoContent, w.do(http.MethodPut, "/api/limits/each?dry_run=false", `{"concurrency":1}`).StatusCode)
	require.Len(t, w.commands, 1)
}

func TestLimitsHaveMetricsAndProblems(t *testing.T) {
	w := newWorld(t)
	w.journal(wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format, Epoch: 1})
	require.NotContains(t, w.get("/metrics").body, "millrace_limit_used")
	w.limited("each", `{"queues":["imports"],"per":["key"],"concurrency":2}`)
	w.limited("rate", `{"rate":{"jobs":1,"seconds":3600}}`)
	w.limited("part", `{"per":["key"]}`)
	w.holds("imports", "secret-a", "secret-a", "secret-b")
	w.wait("imports", "secret-a", "secret-b", "secret-b")
	w.journal(wire.JournalRecord{Type: wire.TypeFreed, At: wire.Seconds(time.Now()), Slots: []wire.HeldSlot{{Stream: wire.Gated, Offset: 99, JID: "gone"}}, Reason: scheduler.GoneReason})
	w.journal(wire.JournalRecord{Type: wire.TypeFreed, At: wire.Seconds(time.Now()), Slots: []wire.HeldSlot{{Stream: wire.Gated, Offset: 98, JID: "asked"}}, Actor: "ann", Reason: scheduler.GoneReason})
	w.status.Counters.SlotsFreed = scheduler.FreedCounters{Gone: 4, Asked: 2, NoQueue: 1}
	w.status.Counters.Claims = scheduler.ClaimCounters{Run: 9, Dropped: 3}

	body := w.get("/metrics").body
	for _, line := range []string{
		`millrace_limit_used{limit="each",vhost="/"} 3`, `millrace_limit_max{limit="each",vhost="/"} 4`, `millrace_limit_waiting{limit="each",vhost="/"} 3`,
		`millrace_limit_blocked{limit="each",vhost="/"} 1`, `millrace_limit_incomplete{limit="part",vhost="/"} 1`, `millrace_limit_incomplete{limit="each",vhost="/"} 0`,
		`millrace_gated_jobs_waiting{vhost="/"} 3`, `millrace_limit_stalled_seconds{limit="rate",vhost="/"} 0`,
		`millrace_slots_freed_total{reason="gone",vhost="/"} 4`, `millrace_slots_freed_total{reason="asked",vhost="/"} 2`, `millrace_slots_freed_total{reason="no_queue",vhost="/"} 1`,
		`millrace_claims_total{answer="run",vhost="/"} 9`, `millrace_claims_total{answer="drop",vhost="/"} 3`,
	} {
		require.Contains(t, body, line+"\n")
	}
	require.Regexp(t, `millrace_limit_stalled_seconds\{limit="each",vhost="/"\} 1\.\d+e\+09`, body, "the slots are as old as the clock")
	require.NotContains(t, body, `millrace_limit_max{limit="rate"`)
	require.NotContains(t, body, "secret")

	problems := w.get("/api/attention").body
	kinds := gjson.Get(problems, "items.#.kind").Array()
	require.Equal(t, []string{"limit_stalled", "limit_incomplete", "slots_freed"}, []string{kinds[0].String(), kinds[1].String(), kinds[2].String()}, problems)
	require.Contains(t, gjson.Get(problems, "items.0.text").String(), "1 job waits, all 2 slots of secret-a in use")
	require.Contains(t, gjson.Get(problems, "items.0.text").String(), "job held-secret-a of queue imports has held one for longest")
	require.Equal(t, "part", gjson.Get(problems, "items.1.subject").String())
	require.EqualValues(t, 1, gjson.Get(problems, "items.2.value").Int())
}
