package httpapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/wire"
)

func beat(identity, more string) string {
	return fmt.Sprintf(`{"identity":%q,"beat":1700000000,"hostname":"h","pid":7%s}`, identity, more)
}

func TestProcesses(t *testing.T) {
	w := newWorld(t)
	w.add(wire.Heartbeats, beat("h:1:x", `,"concurrency":10,"busy":2,"rss_kb":4,"queues":["queue.mails","low"],"started_at":1699999000.5,
		"lanes":[{"name":"l","queues":["queue.low"]}],"work":[{"jid":"j","class":"C","queue":"queue.low"}],"labels":["a"]`))
	w.clock = w.clock.Add(61 * time.Second)
	w.fold(wire.Record{Stream: wire.Heartbeats, Time: w.clock, Body: []byte(beat("h:2:x", `,"state":"quiet"`))})

	require.JSONEq(t, `[{"identity":"h:1:x","hostname":"h","pid":7,"tag":"","version":"","state":"lost","heard_at":1700000000,"silent_seconds":61,
		"beat":1700000000,"started_at":1699999000.5,"concurrency":10,"busy":2,"rss_kb":4,"rtt_us":0,"queues":["mails","low"],"labels":{"0":"a"},
		"lanes":[{"name":"l","queues":["low"],"concurrency":0,"busy":0}],"work":[{"jid":"j","class":"C","queue":"low","started_at":null,"usual_ms":null}]}]`,
		w.get("/api/processes?queue=low").body)
	require.Contains(t, w.get("/api/processes?state=quiet").body, `"identity":"h:2:x"`)
	require.Equal(t, "[]\n", w.get("/api/processes?state=live").body)
	p := w.page("/api/processes?page=2&page_size=1")
	require.EqualValues(t, []int64{2, 2, 2}, []int64{p.Total, *p.Filtered, *p.PageCount})
	require.Contains(t, string(p.Items[0]), `"h:2:x"`)
	require.Empty(t, w.page("/api/processes?page=3").Items)
	w.get("/api/processes?nonsense=1").problem(t, http.StatusBadRequest, "bad_request")

	require.Contains(t, w.get("/api/processes/h:2:x").body, `"state":"quiet"`)
	require.Equal(t, `no process "h:3:x": it has stopped, or sent no heartbeat in the last hour`, w.get("/api/processes/h:3:x").problem(t, http.StatusNotFound, "not_found").Reason)

	var o struct{ Processes json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(w.get("/api/overview").body), &o))
	require.JSONEq(t, `{"running":1,"states":{"live":0,"quiet":1,"stopping":0,"lost":1},"concurrency":0,"busy":0,"rss_kb":0}`, string(o.Processes))
	metrics := w.get("/metrics").body
	require.Contains(t, metrics, `millrace_processes{state="lost",vhost="/"} 1`)
	require.Contains(t, metrics, `millrace_process_heartbeat_age_seconds{host="h",pid="7",vhost="/"} 61`)
}

func TestProcessNames(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a/b", "a%2Fb", "..", ".", "quiet", "å b", "*", "?", "#"} {
		w.add(wire.Heartbeats, beat(name, ""))
		path := "/api/processes/" + url.PathEscape(name)
		a := w.get(path)
		require.Equal(t, http.StatusOK, a.StatusCode, name)
		require.Contains(t, a.body, fmt.Sprintf(`"identity":%q`, name))
		require.Equal(t, http.StatusAccepted, w.do(http.MethodPut, path+"/quiet", "").StatusCode, name)
		var said wire.Controls
		require.NoError(t, json.Unmarshal(w.published[len(w.published)-1].Body, &said))
		require.Equal(t, name, said.Identity)
	}
}

func TestControlOfProcesses(t *testing.T) {
	now := time.Unix(1_700_000_100, 0)
	w := newWorld(t, func(c *httpapi.Config) { c.Now = func() time.Time { return now } })
	w.add(wire.Heartbeats, beat("h:1:x", ""))
	a := w.do(http.MethodPut, "/api/processes/h:1:x/stop", `{"reason":"deploy"}`)
	require.Equal(t, http.StatusAccepted, a.StatusCode, a.body)
	var answer struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(a.body), &answer))
	m := w.published[1]
	require.Equal(t, wire.Control, m.Exchange)
	require.JSONEq(t, fmt.Sprintf(`{"id":%q,"op":"stop","identity":"h:1:x","at":1700000100,"actor":"http","reason":"deploy"}`, answer.ID), string(m.Body))
	noted := w.commands[0]
	require.Equal(t, wire.Command{ID: noted.ID, Command: wire.CommandNote, Noted: &wire.Noted{Op: wire.NotedStopped, Identity: "h:1:x"}, Actor: "http", Reason: "deploy"}, noted)
	require.NotEmpty(t, noted.ID)

	require.Equal(t, http.StatusAccepted, w.do(http.MethodPut, "/api/processes/*/quiet", "").StatusCode)
	w.do(http.MethodPut, "/api/processes/h:2:x/stop", "").problem(t, http.StatusNotFound, "not_found")
	w.do(http.MethodPut, "/api/processes/h:1:x/stop", `{"x":1}`).problem(t, http.StatusBadRequest, "bad_request")
	journaled := len(w.commands)
	w.publish = fmt.Errorf("x: %w", broker.ErrReturned)
	w.do(http.MethodPut, "/api/processes/h:1:x/stop", "").problem(t, http.StatusConflict, "conflict")
	w.do(http.MethodPut, "/api/processes/*/quiet", "").problem(t, http.StatusConflict, "conflict")
	w.publish = errors.New("lost")
	w.do(http.MethodPut, "/api/processes/h:1:x/stop", "").problem(t, http.StatusServiceUnavailable, "service_unavailable")
	require.Len(t, w.commands, journaled, "a failed action is not journaled")
}

// A command that is not journaled is not sent to workers.
func TestWorkersGetOnlyJournaledCommands(t *testing.T) {
	w := newWorld(t)
	w.add(wire.Heartbeats, beat("h:1:x", ""))
	for _, c := range []struct {
		reply wire.Reply
		code  string
	}{
		{wire.Reply{Status: wire.StatusUnavailable, Error: "no_leader", Reason: "there is no leader"}, "no_leader"},
		{wire.Reply{Status: wire.StatusUnknown, Error: "outcome_unknown", Reason: "no answer"}, "service_unavailable"},
		{wire.Reply{Status: wire.StatusBad, Error: "bad_request", Reason: `command "note" is not known`}, "service_unavailable"},
	} {
		w.reply = c.reply
		w.do(http.MethodPut, "/api/processes/h:1:x/stop", "").problem(t, http.StatusServiceUnavailable, c.code)
	}
	for _, m := range w.published {
		require.Contains(t, string(m.Body), `"identity":""`, "only the question whether a process listens")
	}
}

func TestJobsThatRunTooLong(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config) { c.Now = func() time.Time { return time.Unix(1_700_000_000, 0) } })
	for range 20 {
		w.add(wire.JobMetrics, metric(1_699_999_000, "C", "q", "success", 3000, ""))
	}
	w.add(wire.Heartbeats, beat("h:1:x", `,"concurrency":3,"busy":3,"work":[{"jid":"a","class":"C","queue":"q","started_at":1699990000},
		{"jid":"b","class":"C","queue":"q","started_at":1699999999},{"jid":"c","class":"D","queue":"q","started_at":1}]`))
	body := w.get("/api/processes/h:1:x").body
	require.InDelta(t, 3000, gjson.Get(body, "work.0.usual_ms").Float(), 60)
	require.Equal(t, `[true]`, gjson.Get(body, "work.#.stuck").Raw)
	require.Equal(t, "null", gjson.Get(body, "work.2.usual_ms").Raw)
	item := gjson.Get(w.get("/api/attention").body, `items.#(kind=="job_stuck")`)
	require.Equal(t, "a", item.Get("subject").Str)
	require.Regexp(t, `^C has run for 2 h 46 min on h:1:x, 33\d\d times as long as usual$`, item.Get("text").Str)
	require.Contains(t, w.get("/metrics").body, `millrace_stuck_jobs{vhost="/"} 1`)
}

func TestRunningJobs(t *testing.T) {
	require.JSONEq(t, `{"items":[],"searched":0,"next":null,"older_than_kept":false}`, newWorld(t).get("/api/jobs?status=running").body)
	w := newWorld(t, func(c *httpapi.Config) { c.Now = func() time.Time { return time.Unix(1_700_000_000, 0) } })
	for range 20 {
		w.add(wire.JobMetrics, metric(1_699_999_000, "C", "q", "success", 3000, ""))
	}
	w.add(wire.Heartbeats, beat("h:1:x", `,"concurrency":3,"busy":3,"work":[{"jid":"b","class":"D","queue":"queue.low","started_at":1699999990},
		{"jid":"a","class":"C","queue":"q","started_at":1699990000.25},{"jid":"e","class":"D","queue":"q"}]`))
	w.add(wire.Heartbeats, beat("h:2:x", `,"concurrency":2,"busy":2,"work":[{"jid":"d","class":"D","queue":"q","started_at":1699999990},
		{"jid":"c","class":"D","queue":"q","started_at":1699999990}]`))
	first := gjson.Get(w.get("/api/jobs?status=running").body, "items.0")
	require.InDelta(t, 3000, first.Get("usual_ms").Num, 60)
	require.JSONEq(t, fmt.Sprintf(`{"identity":"h:1:x","state":"live","heard_at":1700000000,"jid":"a","class":"C","queue":"q","started_at":1699990000.25,
		"usual_ms":%s,"stuck":true}`, first.Get("usual_ms").Raw), first.Raw)
	jids := func(query string) (all string, next *string) {
		p := w.past("/api/jobs?status=running" + query)
		for _, i := range p.Items {
			all += i["jid"].(string)
		}
		return all, p.Next
	}
	for query, want := range map[string]string{
		"": "abcde", "&class=C": "a", "&queue=low": "b", "&jid=d": "d", "&worker=h:2:x": "cd", "&worker=h:2:x&jid=a": "", "&limit=2": "ab",
	} {
		all, next := jids(query)
		require.Equal(t, want, all, query)
		require.Equal(t, query == "&limit=2", next != nil)
	}
	var pages []string
	for query := "&limit=2"; query != ""; {
		page, next := jids(query)
		pages, query = append(pages, page), ""
		if next != nil {
			query = "&limit=2&next=" + url.QueryEscape(*next)
		}
	}
	require.Equal(t, []string{"ab", "cd", "e"}, pages)
	_, next := jids("&limit=3")
	w.add(wire.Heartbeats, beat("h:1:x", `,"concurrency":3,"busy":0`))
	rest, _ := jids("&next=" + url.QueryEscape(*next))
	require.Equal(t, "d", rest, "jobs that have ended meanwhile move no other")
	for _, query := range []string{"error=E", "failed=true", "from=1", "to=1", "limit=0", "next=x", "next=1,0", "next=-1,a,b", "next=1,%25,b", "page=1"} {
		w.get("/api/jobs?status=running&"+query).problem(t, http.StatusBadRequest, "bad_request")
	}
}

// A job is cancelled while it runs, after a record in the journal.
func TestCancelJob(t *testing.T) {
	w := newWorld(t)
	w.journal(wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format})
	path := "/api/jobs/a%2Fb/cancel"
	require.Contains(t, w.do(http.MethodPost, path, "").problem(t, http.StatusNotFound, "not_found").Reason, "no worker process says that it runs this job")
	w.add(wire.Retries, retry("waits", 2_000_000_000, "q", "C", "E"))
	require.Contains(t, w.do(http.MethodPost, "/api/jobs/waits/cancel", "").problem(t, http.StatusConflict, "conflict").Reason, "it waits in retries")
	require.Empty(t, w.commands)

	w.add(wire.Heartbeats, beat("h:1:x", `,"concurrency":2,"busy":1,"work":[{"jid":"a/b","class":"C","queue":"q"}]`))
	a := w.do(http.MethodPost, path, `{"reason":"it hangs"}`)
	require.Equal(t, http.StatusAccepted, a.StatusCode, a.body)
	require.Equal(t, "h:1:x", gjson.Get(a.body, "identity").Str)
	m := w.published[1]
	require.Equal(t, wire.Control, m.Exchange)
	require.Equal(t, []string{"cancel", "h:1:x", "a/b", "http", "it hangs", gjson.Get(a.body, "id").Str}, func() (all []string) {
		for _, name := range []string{"op", "identity", "jid", "actor", "reason", "id"} {
			all = append(all, gjson.GetBytes(m.Body, name).Str)
		}
		return all
	}())
	require.Equal(t, &wire.Noted{Op: wire.NotedCancelled, Identity: "h:1:x", JID: "a/b"}, w.commands[0].Noted)
	require.Equal(t, "it hangs", w.commands[0].Reason)

	w.add(wire.Heartbeats, beat("h:2:x", `,"concurrency":2,"busy":1,"work":[{"jid":"a/b","class":"C","queue":"q"}]`))
	require.Equal(t, "*", gjson.Get(w.do(http.MethodPost, path, "").body, "identity").Str, "two processes report that they run it")
	w.add(wire.Heartbeats, beat("h:2:x", `,"concurrency":2,"busy":2,"work":[{"jid":"c","class":"C","queue":"q"}]`))
	require.Equal(t, "*", gjson.Get(w.do(http.MethodPost, "/api/jobs/d/cancel", "").body, "identity").Str, "one process does not list all its jobs")
	w.do(http.MethodPost, path, `{"x":1}`).problem(t, http.StatusBadRequest, "bad_request")
	w.do(http.MethodPost, path+"?x=1", "").problem(t, http.StatusBadRequest, "bad_request")

	sent := len(w.published)
	w.reply = wire.Reply{Status: wire.StatusUnavailable, Error: "no_leader", Reason: "there is no leader"}
	w.do(http.MethodPost, path, "").problem(t, http.StatusServiceUnavailable, "no_leader")
	require.Len(t, w.published, sent+1, "an action that is not journaled is not done")
	require.Empty(t, gjson.GetBytes(w.published[sent].Body, "identity").Str, "only the question whether a process listens")
	journaled := len(w.commands)
	w.reply, w.publish = wire.Reply{Status: wire.StatusDone}, fmt.Errorf("x: %w", broker.ErrReturned)
	w.do(http.MethodPost, path, "").problem(t, http.StatusConflict, "conflict")
	require.Len(t, w.commands, journaled, "a failed action is not journaled")
	w.clock = w.clock.Add(61 * time.Second)
	w.do(http.MethodPost, path, "").problem(t, http.StatusNotFound, "not_found")
}

func TestProcessesDisabled(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config) { c.Processes = nil })
	require.Equal(t, "[]\n", w.get("/api/processes").body)
	w.get("/api/processes/x").problem(t, http.StatusNotFound, "not_found")
	w.do(http.MethodPut, "/api/processes/x/stop", "").problem(t, http.StatusNotFound, "not_found")
	require.NotContains(t, w.get("/metrics").body, "millrace_processes")
}
