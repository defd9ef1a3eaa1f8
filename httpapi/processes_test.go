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
		"lanes":[{"name":"l","queues":["low"],"concurrency":0,"busy":0}],"work":[{"jid":"j","class":"C","queue":"low","started_at":null}]}]`,
		w.get("/api/processes?queue=low").body)
	require.Contains(t, w.get("/api/processes?state=quiet").body, `"identity":"h:2:x"`)
	require.Equal(t, "[]\n", w.get("/api/processes?state=live").body)
	p := w.page("/api/processes?page=2&page_size=1")
	require.EqualValues(t, []int64{2, 2, 2}, []int64{p.Total, *p.Filtered, *p.PageCount})
	require.Contains(t, string(p.Items[0]), `"h:2:x"`)
	require.Empty(t, w.page("/api/processes?page=3").Items)
	w.get("/api/processes?nonsense=1").problem(t, http.StatusBadRequest, "bad_request")

	require.Contains(t, w.get("/api/processes/h:2:x").body, `"state":"quiet"`)
	w.get("/api/processes/h:3:x").problem(t, http.StatusNotFound, "not_found")

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
	require.Len(t, w.commands, journaled, "what was not done is not journaled")
}

// What the journal does not have is not done.
func TestWorkersAreToldWhatIsJournaled(t *testing.T) {
	w := newWorld(t)
	w.add(wire.Heartbeats, beat("h:1:x", ""))
	for _, c := range []struct {
		reply wire.Reply
		code  string
	}{
		{wire.Reply{Status: wire.StatusUnavailable, Error: "no_leader", Reason: "nobody leads"}, "no_leader"},
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

func TestWithoutProcesses(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config) { c.Processes = nil })
	require.Equal(t, "[]\n", w.get("/api/processes").body)
	w.get("/api/processes/x").problem(t, http.StatusNotFound, "not_found")
	w.do(http.MethodPut, "/api/processes/x/stop", "").problem(t, http.StatusNotFound, "not_found")
	require.NotContains(t, w.get("/metrics").body, "millrace_processes")
}
