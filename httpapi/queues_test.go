package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/scheduler"
	"github.com/millrace-jobs/millrace/tracker/queues"
	"github.com/millrace-jobs/millrace/wire"
)

// watching has the server watch queues that a test names.
func watching(rates bool, infos ...broker.QueueInfo) func(*httpapi.Config) {
	return func(c *httpapi.Config) {
		c.Queues = queues.New(nil)
		c.Queues.From(func(context.Context) ([]broker.QueueInfo, []string, error) {
			return infos, []string{"memory alarm on n"}, nil
		}, rates)
		c.QueueSLO = func(string) time.Duration { return time.Minute }
	}
}

func TestQueues(t *testing.T) {
	w := newWorld(t, watching(true,
		broker.QueueInfo{Name: "queue.a/b", State: "running", Ready: 5, Unacked: 1, Consumers: 2, PublishRate: 1.5, Published: 42, MessageBytes: 9, DeadLetterTo: wire.ExchangeDead,
			HeadTimestamp: time.Now().Add(-time.Hour)},
		broker.QueueInfo{Name: "queue.b", Ready: 7}, broker.QueueInfo{Name: "queue.c", State: "down"}, broker.QueueInfo{Name: "queue.d"},
		broker.QueueInfo{Name: "queue.e", Consumers: 1, PublishRate: 0.5, DeliverRate: 0.5}))
	w.status.Held = []scheduler.HeldQueue{{Queue: "b", Reason: "full", Since: time.Unix(1, 0), Until: time.Unix(2, 0)}}
	w.add(wire.Retries, retry("r", 2e9, "a/b", "C", "E"))
	w.add(wire.Heartbeats, beat("h:1:x", `,"queues":["a/b"],"concurrency":4`))

	var q struct {
		Name, State    string
		Ready, Retries int
		Unacked        *int
		Oldest         *struct{ Accuracy string }
		Slots          int
		RejectsLost    *bool `json:"rejects_lost"`
		Held           *struct{ Reason string }
	}
	require.NoError(t, json.Unmarshal([]byte(w.get("/api/job-queues/a%2Fb").body), &q))
	require.Equal(t, []any{"a/b", "running", 5, 1, 1, "exact", 4, false}, []any{q.Name, q.State, q.Ready, q.Retries, *q.Unacked, q.Oldest.Accuracy, q.Slots, *q.RejectsLost})
	require.NoError(t, json.Unmarshal([]byte(w.get("/api/job-queues/b").body), &q))
	require.Equal(t, []any{"no_consumers", "full", true, "at_least"}, []any{q.State, q.Held.Reason, *q.RejectsLost, q.Oldest.Accuracy})
	require.Contains(t, w.get("/api/job-queues/d").body, `"state":"idle"`)
	require.Contains(t, w.get("/api/job-queues/e").body, `"state":"running"`, "its workers are quick")
	p := w.page("/api/job-queues?page=1&state=down")
	require.EqualValues(t, []int64{5, 1}, []int64{p.Total, *p.Filtered})
	require.Contains(t, w.get("/api/job-queues").body, `"name":"a/b"`)
	w.get("/api/job-queues/x").problem(t, http.StatusNotFound, "not_found")
	w.get("/api/job-queues?x=1").problem(t, http.StatusBadRequest, "bad_request")
	w.get("/api/job-queues/a%00").problem(t, http.StatusBadRequest, "bad_request")
	text := w.get("/metrics").body
	require.Contains(t, text, `millrace_queue_jobs{queue="a/b",state="unacked",vhost="/"} 1`)
	require.Contains(t, text, `millrace_queue_workers{queue="b",vhost="/"} 0`)
	require.Contains(t, text, `millrace_jobs_enqueued_total{queue="a/b",vhost="/"} 42`)
	require.Contains(t, text, `millrace_queue_slo_seconds{queue="b",vhost="/"} 60`)

	var attention struct {
		Items []struct{ Kind, Subject string }
	}
	require.NoError(t, json.Unmarshal([]byte(w.get("/api/attention").body), &attention))
	require.Equal(t, "broker_alarm", attention.Items[0].Kind)
	require.Contains(t, attention.Items, struct{ Kind, Subject string }{"oldest_too_old", "a/b"})
	require.Contains(t, attention.Items, struct{ Kind, Subject string }{"no_consumer", "b"})
	w.get("/api/attention?x=1").problem(t, http.StatusBadRequest, "bad_request")
}

// A queue whose workers all hang is not called running.
func TestSaturatedQueue(t *testing.T) {
	w := newWorld(t, watching(true, broker.QueueInfo{Name: "queue.a", State: "running", Ready: 38, Unacked: 2, Consumers: 1}, broker.QueueInfo{Name: "queue.b", State: "running", Ready: 1, Consumers: 1}))
	w.add(wire.Heartbeats, beat("h:1:x", `,"concurrency":2,"busy":2,"queues":["a"],"work":[{"jid":"1","class":"C","queue":"a","started_at":1699999900},{"jid":"2","class":"C","queue":"a","started_at":1699999940}]`))
	require.Contains(t, w.get("/api/job-queues/a").body, `"state":"saturated"`)
	require.Contains(t, w.get("/api/job-queues/b").body, `"state":"running"`)
	require.Contains(t, w.get("/api/job-queues?page=1&state=saturated").body, `"filtered_count":1`)
	require.Contains(t, w.get("/api/attention").body, `"kind":"saturated","severity":"critical","subject":"a","text":"38 jobs wait, all 2 slots of its workers are busy, and none was taken for 1 min","value":60`)
	text := w.get("/metrics").body
	require.Contains(t, text, `millrace_queue_saturated{queue="a",vhost="/"} 1`)
	require.Contains(t, text, `millrace_queue_saturated{queue="b",vhost="/"} 0`)
	paused := map[string]wire.Pause{"a": {At: 7}}
	w.journal(wire.JournalRecord{Type: wire.TypeState, Paused: &paused, Queue: "a"})
	require.Contains(t, w.get("/metrics").body, `millrace_queue_saturated{queue="a",vhost="/"} 0`, "its jobs are meant to wait")
}

// While a node of the broker hangs, its management API does not answer. The other problems are
// still listed.
func TestAttentionWithoutAnswerAboutQueues(t *testing.T) {
	hangs := make(chan struct{})
	w := newWorld(t, func(c *httpapi.Config) {
		c.Queues = queues.New(nil)
		c.Queues.From(func(context.Context) ([]broker.QueueInfo, []string, error) {
			<-hangs
			return nil, nil, nil
		}, true)
	})
	defer close(hangs)
	w.status.Degraded = []scheduler.Degraded{{Subject: "node rabbit@b", Node: "rabbit@b", Costs: "jobs for 1 classic queue wait"}}
	require.Contains(t, w.get("/api/attention").body, "rabbit@b")
	w.status.Degraded = nil
	require.NotContains(t, w.get("/api/attention").body, "rabbit@b", "the list is not older for that")
}

func TestQueuesWithoutManagementAPI(t *testing.T) {
	w := newWorld(t, watching(false, broker.QueueInfo{Name: "queue.a", Ready: 5}))
	require.Contains(t, w.get("/api/job-queues").body, `"unacked":null`)
	unwired := newWorld(t)
	unwired.get("/api/job-queues").problem(t, http.StatusServiceUnavailable, "service_unavailable")
	require.Equal(t, http.StatusOK, unwired.get("/api/attention").StatusCode)
	gone := newWorld(t, func(c *httpapi.Config) { c.Queues = queues.New(nil) })
	gone.get("/api/job-queues/a").problem(t, http.StatusServiceUnavailable, "service_unavailable")
	require.Equal(t, http.StatusOK, gone.get("/metrics").StatusCode)
}

// The overview does not ask the broker for its queues. It has their number since a client looked.
func TestOverviewHasNumberOfQueues(t *testing.T) {
	w := newWorld(t, watching(true, broker.QueueInfo{Name: "queue.a"}, broker.QueueInfo{Name: "queue.b"}, broker.QueueInfo{Name: "jobs.dead"}))
	require.NotContains(t, w.get("/api/overview").body, `"queues"`)
	w.get("/api/job-queues/a")
	require.Contains(t, w.get("/api/overview").body, `"queues":{"total":2}`)
}

func TestQueueActions(t *testing.T) {
	var answer error
	var acts int
	w := newWorld(t, watching(true), func(c *httpapi.Config) {
		c.OnBroker = func(context.Context, func(*broker.Conn) error) error { acts++; return answer }
	})
	routes := []struct {
		method, path string
		status       int
	}{
		{http.MethodPut, "/api/job-queues/a", http.StatusNoContent}, {http.MethodDelete, "/api/job-queues/a", http.StatusNoContent},
		{http.MethodDelete, "/api/job-queues/a/jobs", http.StatusOK},
	}
	for _, r := range routes {
		answer = nil
		require.Equal(t, r.status, w.do(r.method, r.path, "").StatusCode)
		answer = &broker.QueueError{Queue: "a", Reason: broker.ReasonMissing}
		w.do(r.method, r.path, "").problem(t, http.StatusNotFound, "not_found")
		answer = &broker.QueueError{Queue: "a", Reason: broker.ReasonExclusive}
		w.do(r.method, r.path, "").problem(t, http.StatusConflict, "conflict")
		answer = errors.New("gone")
		w.do(r.method, r.path, "").problem(t, http.StatusServiceUnavailable, "service_unavailable")
		w.do(r.method, r.path, `{"x":1}`).problem(t, http.StatusBadRequest, "bad_request")
		w.do(r.method, r.path+"?x=1", "").problem(t, http.StatusBadRequest, "bad_request")
	}
	require.Equal(t, 12, acts)
	answer = nil
	require.Equal(t, "[]\n", w.get("/api/job-queues/a/jobs?count=3").body)
	for _, bad := range []string{"?count=0", "?count=101", "?x=1"} {
		w.get("/api/job-queues/a/jobs"+bad).problem(t, http.StatusBadRequest, "bad_request")
	}
	answer = errors.New("gone")
	w.get("/api/job-queues/a/jobs").problem(t, http.StatusServiceUnavailable, "service_unavailable")
	newWorld(t).do(http.MethodPut, "/api/job-queues/a", "").problem(t, http.StatusServiceUnavailable, "service_unavailable")
}

func TestPause(t *testing.T) {
	var fault error
	sent := map[string]bool{}
	w := newWorld(t, watching(true, broker.QueueInfo{Name: "queue.a", Ready: 7}), func(c *httpapi.Config) {
		c.OnBroker = func(context.Context, func(*broker.Conn) error) error { return fault }
		c.PauseQueue = func(_ context.Context, queue string, paused bool) error {
			sent[queue] = paused
			return fault
		}
	})
	require.Equal(t, http.StatusNoContent, w.do(http.MethodPut, "/api/job-queues/a/pause", `{"reason":"it is down"}`).StatusCode)
	require.Equal(t, []string{wire.CommandPause, "a", "it is down"}, []string{w.commands[0].Command, w.commands[0].Queue, w.commands[0].Reason})
	require.Equal(t, map[string]bool{"a": true}, sent)
	require.Equal(t, http.StatusNoContent, w.do(http.MethodPut, "/api/job-queues/a/resume", "").StatusCode)
	require.Equal(t, map[string]bool{"a": false}, sent)

	paused := map[string]wire.Pause{"a": {At: 7, Actor: "ann", Reason: "it is down"}}
	w.journal(wire.JournalRecord{Type: wire.TypeState, Paused: &paused, Queue: "a"})
	body := w.get("/api/job-queues/a").body
	require.Contains(t, body, `"state":"paused"`)
	require.Contains(t, body, `"paused":{"at":7,"actor":"ann","reason":"it is down"}`)
	require.Contains(t, w.get("/metrics").body, `millrace_queue_paused{queue="a",vhost="/"} 1`)
	attention := w.get("/api/attention").body
	require.Contains(t, attention, `7 jobs wait and the queue is paused by ann: it is down`)
	require.NotContains(t, attention, "no_consumer")

	fault = errors.New("gone")
	w.do(http.MethodPut, "/api/job-queues/a/pause", "").problem(t, http.StatusServiceUnavailable, "service_unavailable")
	w.do(http.MethodPut, "/api/job-queues/a/resume", "").problem(t, http.StatusServiceUnavailable, "service_unavailable")
	fault = nil
	w.reply = wire.Reply{Status: wire.StatusConflict, Error: "conflict", Reason: "no"}
	w.do(http.MethodPut, "/api/job-queues/a/pause", "").problem(t, http.StatusConflict, "conflict")
	w.do(http.MethodPut, "/api/job-queues/a/pause", `{"x":1}`).problem(t, http.StatusBadRequest, "bad_request")
	w.do(http.MethodPut, "/api/job-queues/a%00/pause", "").problem(t, http.StatusBadRequest, "bad_request")
}

func TestInvalidMovesAreRefused(t *testing.T) {
	answer := error(nil)
	w := newWorld(t, func(c *httpapi.Config) {
		c.OnBroker = func(context.Context, func(*broker.Conn) error) error { return answer }
	})
	for _, bad := range []string{"", `{}`, `{"to":"a"}`, `{"to":"b\u0000"}`, `{"to":"b","x":1}`} {
		w.do(http.MethodPost, "/api/job-queues/a/move", bad).problem(t, http.StatusBadRequest, "bad_request")
	}
	require.JSONEq(t, `{"moved":0,"complete":false}`, w.do(http.MethodPost, "/api/job-queues/a/move", `{"to":"b"}`).body)
	answer = &broker.QueueError{Queue: "a", Reason: broker.ReasonMissing}
	w.do(http.MethodPost, "/api/job-queues/a/move", `{"to":"b"}`).problem(t, http.StatusNotFound, "not_found")
}
