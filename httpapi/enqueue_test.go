package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/wire"
)

func TestEnqueueOne(t *testing.T) {
	w := newSecured(t)
	a := w.as("management", http.MethodPost, "/api/jobs", "{ \"class\":\"Mail <b>\", \"args\":[9007199254740993, 1e400],\"queue\":\"mails\",\"priority\":7,\"mine\":{\"x\":1} }")
	require.Equal(t, http.StatusCreated, a.StatusCode, a.body)
	jid := gjson.Get(a.body, "jid").String()
	require.Regexp(t, `^[0-9a-f]{32}$`, jid)
	require.Equal(t, "/api/jobs/"+jid, a.Header.Get("Location"))
	require.Len(t, w.published, 1)
	m := w.published[0]
	require.Equal(t, []string{wire.ExchangeRoute, "mails", jid, "Mail <b>"}, []string{m.Exchange, m.Key, m.MessageID, m.Type})
	require.Equal(t, uint8(7), m.Priority)
	require.Equal(t, `{"jid":"`+jid+`","enqueued_at":1700000000, "class":"Mail <b>", "args":[9007199254740993, 1e400],"queue":"mails","priority":7,"mine":{"x":1} }`, string(m.Body))

	body := `{"jid":"mine","enqueued_at":1,"class":"C","args":[]}`
	require.Equal(t, http.StatusCreated, w.as("management", http.MethodPost, "/api/jobs", body).StatusCode)
	require.Equal(t, body, string(w.published[1].Body), "a complete job is unchanged")
	require.Equal(t, wire.DefaultQueue, w.published[1].Key)
}

func TestEnqueueForLater(t *testing.T) {
	w := newSecured(t)
	for at, seconds := range map[string]string{`2000000000.5`: "2000000000.5", `"2033-05-18T03:33:20Z"`: "2000000000", `2000000000000`: "2000000000"} {
		w.published = nil
		a := w.as("management", http.MethodPost, "/api/jobs", `{"jid":"a","class":"C","args":[],"at":`+at+`}`)
		require.Equal(t, http.StatusCreated, a.StatusCode, a.body)
		m := w.published[0]
		require.Equal(t, []string{"", wire.ScheduledJobs, "a"}, []string{m.Exchange, m.Key, m.MessageID})
		require.Equal(t, `{"type":"scheduled_job","jid":"a","scheduled_at":`+seconds+`,"job":{"jid":"a","class":"C","args":[],"at":`+at+`}}`, string(m.Body))
		w.add(wire.ScheduledJobs, string(m.Body))
	}
}

func TestEnqueueMany(t *testing.T) {
	w := newSecured(t)
	a := w.as("management", http.MethodPost, "/api/jobs", `[{"class":"A","jid":"1"},{"jid":"2"},{"class":"B","at":4e9,"jid":"3"},"x",{"class":"C","queue":""}, {"class":"D","jid":"4"}]`)
	require.Equal(t, http.StatusOK, a.StatusCode, a.body)
	var outcomes []struct{ JID, Error, Reason string }
	require.NoError(t, json.Unmarshal([]byte(a.body), &outcomes))
	require.Len(t, outcomes, 6)
	for i, jid := range []string{"1", "", "3", "", "", "4"} {
		require.Equal(t, jid, outcomes[i].JID)
		require.Equal(t, jid == "", outcomes[i].Error == "bad_request")
		require.Equal(t, jid == "", outcomes[i].Reason != "")
	}
	require.Len(t, w.published, 3)
	require.Equal(t, "[]\n", w.as("management", http.MethodPost, "/api/jobs", `[]`).body)
	many := "[" + strings.TrimSuffix(strings.Repeat(`{"class":"C"},`, 10_000), ",") + "]"
	require.Equal(t, http.StatusOK, w.as("management", http.MethodPost, "/api/jobs", many).StatusCode)
	require.Len(t, w.published, 10_003)
	w.as("management", http.MethodPost, "/api/jobs", many[:len(many)-1]+`,{"class":"C"}]`).problem(t, http.StatusBadRequest, "bad_request")
}

func TestInvalidJobIsNotEnqueued(t *testing.T) {
	w := newSecured(t)
	for _, body := range []string{
		`x`, `null`, `"x"`, `{}`, `{"class":""}`, `{"class":1}`, `{"class":"C","jid":""}`, `{"class":"C","jid":null,"jid":"a"}`, `{"class":"C","queue":"a\u0000"}`,
		`{"class":"C","at":"soon"}`, `{"class":"C","at":[1]}`, `{"class":"C","at":1e300}`, `{"class":"C","at":"5"}`, `{"class":"C","args":{}}`, `{"class":"C","priority":11}`, `{"class":"C","class":"D"}`, `[1`, `{"class":"C"}{}`,
	} {
		w.as("management", http.MethodPost, "/api/jobs", body).problem(t, http.StatusBadRequest, "bad_request")
	}
	w.as("management", http.MethodPost, "/api/jobs", "").problem(t, http.StatusBadRequest, "bad_request")
	require.Empty(t, w.published)
}

func TestEnqueueRefusedByBroker(t *testing.T) {
	w := newSecured(t)
	for err, status := range map[error]int{
		broker.ErrNacked: 503, broker.ErrReturned: 503, errors.New("x"): 503, context.DeadlineExceeded: 504, broker.ErrLost: 504, broker.ErrUnpublishable: 400,
	} {
		w.publish = fmt.Errorf("publish: %w", err)
		require.Equal(t, status, w.as("management", http.MethodPost, "/api/jobs", `{"class":"C"}`).StatusCode, err)
		a := w.as("management", http.MethodPost, "/api/jobs", `[{"class":"C"}]`)
		require.Equal(t, http.StatusOK, a.StatusCode)
		require.Empty(t, gjson.Get(a.body, "0.jid").String())
		require.NotEmpty(t, gjson.Get(a.body, "0.error").String())
	}
}

func TestTimelineAndDeleteOfJob(t *testing.T) {
	w := newWorld(t)
	epoch := w.journal(wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format, Identity: "host:1"})
	w.get("/api/jobs/a").problem(t, http.StatusNotFound, "not_found")
	w.do(http.MethodDelete, "/api/jobs/a", "").problem(t, http.StatusNotFound, "not_found")

	offset := w.add(wire.Retries, retry("a", 2_000_000_000, "q", "C", "E"))
	a := w.get("/api/jobs/a")
	require.Equal(t, http.StatusOK, a.StatusCode)
	require.Equal(t, "retries", gjson.Get(a.body, "entries.0.millrace.set").String())
	require.Contains(t, a.body, retry("a", 2_000_000_000, "q", "C", "E")[:60])
	require.Equal(t, http.StatusNoContent, w.do(http.MethodDelete, "/api/jobs/a", `{"reason":"r"}`).StatusCode)
	require.Equal(t, wire.Command{ID: w.commands[0].ID, Command: wire.CommandDelete, Stream: wire.Retries, JID: "a", Offset: &offset, Reason: "r", Actor: "http"}, w.commands[0])

	w.add(wire.DeadJobs, dead("a", 1_000_000_000))
	require.Len(t, gjson.Get(w.get("/api/jobs/a").body, "entries").Array(), 2)
	w.do(http.MethodDelete, "/api/jobs/a", "").problem(t, http.StatusConflict, "conflict")

	w.add(wire.ScheduledJobs, scheduled("fired", 2_000_000_000))
	dispatch := wire.Dispatch{Op: wire.OpFired, Stream: wire.ScheduledJobs, Offset: 0, JIDTag: "fired", Epoch: epoch, Seq: 1}
	w.fold(wire.Record{Stream: wire.Journal, UserID: user, Headers: dispatch.Headers(), Body: []byte("{}")})
	require.Equal(t, "fired", gjson.Get(w.get("/api/jobs/fired").body, "events.0.what").String())
	p := w.do(http.MethodDelete, "/api/jobs/fired", "").problem(t, http.StatusConflict, "conflict")
	require.Equal(t, "fired", p.Happened.What)

	w.add(wire.ScheduledJobs, scheduled("gone", 2_000_000_000))
	w.journal(wire.JournalRecord{Type: wire.TypeDeleted, Epoch: epoch, Stream: wire.ScheduledJobs, Offset: 1, JID: "gone", Actor: "ann"})
	require.Contains(t, w.do(http.MethodDelete, "/api/jobs/gone", "").problem(t, http.StatusNotFound, "not_found").Reason, "was deleted by ann")
	require.Len(t, w.commands, 1)
}

func TestErrorGroups(t *testing.T) {
	w := newWorld(t)
	failed := func(stream, jid, class, message string, at int) {
		record := map[string]any{"jid": jid, "retry_at": at, "died_at": at, "error_class": "Timeout", "error_message": message, "job": map[string]any{"jid": jid, "class": class, "queue": "q", "args": []any{}}}
		body, err := json.Marshal(record)
		require.NoError(t, err)
		w.add(stream, string(body))
	}
	for i := range 5 {
		failed(wire.Retries, fmt.Sprint("r", i), "Mail", fmt.Sprintf("no answer from 10.0.0.%d:%d in %d ms for \"user %d\"\nmore", i, 8000+i, i*10, i), 2_000_000_000+i)
	}
	failed(wire.DeadJobs, "d", "Mail", `no answer from 10.9.9.9:1 in 7 ms for "x"`, 1_000_000_000)
	failed(wire.DeadJobs, "other", "Mail", "connection refused", 1_000_000_001)
	failed(wire.DeadJobs, "class", "Import", "connection refused", 1_000_000_002)
	w.add(wire.Retries, large("big", 2_000_000_009))

	a := w.get("/api/errors")
	groups := gjson.Get(a.body, "items").Array()
	require.Len(t, groups, 3, a.body)
	require.JSONEq(t, `{"fingerprint":"`+groups[0].Get("fingerprint").String()+`","class":"Mail","error_class":"Timeout","message":"no answer from <n> in <n> ms for <text>","example":"no answer from 10.0.0.0:8000 in 0 ms for \"user 0\"","count":6,"retries":5,"dead":1,"first":1000000000,"last":2000000004,"jid":"r0","recent":0,"hosts":[],"host_count":0}`, groups[0].Raw)
	require.True(t, gjson.Get(a.body, "complete").Bool())
	require.EqualValues(t, 9, gjson.Get(a.body, "searched").Int())
	require.EqualValues(t, 1, gjson.Get(a.body, "unsearched").Int())
	fp := groups[0].Get("fingerprint").String()
	require.Equal(t, []string{"r0", "r1", "r2", "r3", "r4"}, w.jids("/api/retries?error="+fp))
	require.Equal(t, []string{"d"}, w.jids("/api/dead-jobs?error="+fp))
	require.Equal(t, 5, strings.Count(w.get("/api/retries?format=ndjson&error="+fp).body, "\n"))
	require.False(t, gjson.Get(a.body, "as_of").Exists(), "two streams have two")
	require.Equal(t, gjson.Get(w.get("/api/dead-jobs?page=1").body, "as_of").Raw, gjson.Get(w.get("/api/errors?set=dead-jobs").body, "as_of").Raw)
	require.Len(t, gjson.Get(w.get("/api/errors?set=dead-jobs").body, "items").Array(), 3)
	require.Len(t, gjson.Get(w.get("/api/errors?set=retries").body, "items").Array(), 1)
	require.Len(t, gjson.Get(w.get("/api/errors?class=Import").body, "items").Array(), 1)
	require.Len(t, gjson.Get(w.get("/api/errors?from=1000000002&to=1000000003").body, "items").Array(), 1)
	w.server.SetMaxSearched(3)
	require.False(t, gjson.Get(w.get("/api/errors").body, "complete").Bool())
	w.get("/api/errors?set=scheduled-jobs").problem(t, http.StatusBadRequest, "bad_request")
	w.get("/api/errors?page=1").problem(t, http.StatusBadRequest, "bad_request")
}

func TestErrorGroupsQuoteOneMessage(t *testing.T) {
	pattern, err := httpapi.ParseHideArgs("^error_message$")
	require.NoError(t, err)
	w := newSecured(t, func(c *httpapi.Config) { c.HideArgs = pattern })
	failed := func(jid, class, message string) {
		w.add(wire.Retries, strings.Replace(retry(jid, 2_000_000_000, "q", class, "SMTPError"), `"it broke"`, strconv.Quote(message), 1))
	}
	failed("a", "Mail", "\n 535 5.7.8 Authentication credentials invalid \nTry again")
	failed("b", "Long", strings.Repeat("é", 400))
	failed("c", "Empty", "")
	example := func(user, class string) gjson.Result {
		return gjson.Get(w.as(user, http.MethodGet, "/api/errors?class="+class, "").body, "items.0.example")
	}
	require.Equal(t, "535 5.7.8 Authentication credentials invalid", example("management", "Mail").String())
	require.Equal(t, strings.Repeat("é", 250)+"…", example("management", "Long").String())
	require.False(t, example("management", "Empty").Exists())
	require.False(t, example("monitoring", "Mail").Exists(), "a user who may not see error_message does not see it here either")
	require.True(t, example("management", "Mail").Exists())
}

func TestDueTimes(t *testing.T) {
	w := newWorld(t)
	for i := range 60 {
		w.add(wire.ScheduledJobs, scheduled(fmt.Sprint(i), float64(2_000_000_000+i*60)))
	}
	a := w.get("/api/due-times?from=2000000600&to=2000001800&step=600")
	require.JSONEq(t, `{"set":"scheduled-jobs","from":2000000600,"step":600,"counts":[10,10],"before":10,"after":30,"complete":true}`, a.body)
	require.JSONEq(t, `{"set":"retries","from":2000000600,"step":86400,"counts":[0],"before":0,"after":0,"complete":true}`, w.get("/api/due-times?set=retries&from=2000000600&step=86400").body)
	w.server.SetMaxSearched(15)
	require.JSONEq(t, `{"set":"scheduled-jobs","from":2000000600,"step":600,"counts":[5,0],"before":10,"after":45,"complete":false}`, w.get("/api/due-times?from=2000000600&to=2000001800&step=600").body)
	for query, steps := range map[string]int{"": 100, "?from=0&to=253402300799": 1000, "?from=-62135596800&to=253402300799000&step=1": 1000, "?from=10&to=5": 0, "?from=10&to=10.5": 1, "?to=0": 0} {
		counts := gjson.Get(w.get("/api/due-times"+query).body, "counts")
		require.LessOrEqual(t, len(counts.Array()), steps, query)
		if steps > 0 {
			require.NotEmpty(t, counts.Array(), query)
		}
	}
	for _, query := range []string{"?set=dead-jobs", "?step=0", "?step=x", "?from=x", "?to=x", "?x=1"} {
		w.get("/api/due-times"+query).problem(t, http.StatusBadRequest, "bad_request")
	}
}

func TestHealthChecks(t *testing.T) {
	w := newWorld(t)
	check := func(w *world, name string) int { return w.get("/api/health/checks/" + name).StatusCode }
	require.Equal(t, http.StatusServiceUnavailable, check(w, "views-caught-up"))
	defer w.catchUp()()
	require.Equal(t, http.StatusOK, check(w, "views-caught-up"))
	require.Equal(t, http.StatusOK, check(w, "broker-connection"))
	w.connected = false
	require.Equal(t, http.StatusServiceUnavailable, check(w, "broker-connection"))
	require.Equal(t, http.StatusOK, check(w, "alarms"))
	w.status.Blocked = "memory"
	require.Contains(t, w.get("/api/health/checks/alarms").body, "memory")
	require.Equal(t, http.StatusOK, check(w, "leader"))
	require.Equal(t, http.StatusOK, check(w, "leader"))
	require.Len(t, w.commands, 1, "for any number of requests")
	alone := newWorld(t, func(c *httpapi.Config) { c.Ask = nil })
	require.Contains(t, alone.get("/api/health/checks/leader").body, "no leader responds: ")
	require.Contains(t, w.get("/api/health/checks/workers").body, `"reason":"no live worker processes"`)
	require.Equal(t, http.StatusNotFound, check(w, "nope"))
}
