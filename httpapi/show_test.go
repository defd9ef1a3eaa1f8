package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/wire"
)

// odd are names that paths are made of, or that are difficult in paths.
var odd = []string{
	"a/b", "a%2Fb", "a%252Fb", "%", "%41", ".", "..", "../..", "/", "//", "a b", "a+b", "é", "日本", "a?b", "a#b", "a;b", "a:b", ":jid", "*", "a&b=c", `"`, `\`, "<x>",
	"trigger", "retry", "kill", "resubmit", "release", "kill/retry", "api", "/api/retries", "scheduled-jobs", "retries", "dead-jobs", "rejected", "overview",
	"metrics", "healthz", "a\nb", "😀", "a'b", "~", "a,b", "\u2028",
}

func TestOddNamesThroughEveryRoute(t *testing.T) {
	w := newWorld(t)
	for i, jid := range odd {
		w.add(wire.ScheduledJobs, entry("scheduled_job", "scheduled_at", jid, i))
		w.add(wire.Retries, entry("retry", "retry_at", jid, i))
		w.add(wire.DeadJobs, entry("dead_job", "died_at", jid, i))
	}
	live := httptest.NewServer(w.server.Handler()) // a real client and server: they must not clean the path
	defer live.Close()
	w.checkOdd(t, func(r *http.Request) answer {
		u, err := url.Parse(live.URL + r.URL.EscapedPath())
		require.NoError(t, err)
		r.URL, r.RequestURI, r.Host = u, "", u.Host
		response, err := live.Client().Do(r)
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		body := new(strings.Builder)
		_, err = fmt.Fprint(body, readAll(t, response))
		require.NoError(t, err)
		return answer{response, body.String()}
	})
	w.checkOdd(t, w.send)
}

func (w *world) checkOdd(t *testing.T, send func(*http.Request) answer) {
	for i, jid := range odd {
		escaped := url.PathEscape(jid)
		if strings.Trim(jid, ".") == "" {
			escaped = strings.ReplaceAll(jid, ".", "%2e") // otherwise URL parsers treat it as a relative path
		}
		for _, set := range []string{"scheduled-jobs", "retries", "dead-jobs"} {
			a := send(request(http.MethodGet, "/api/"+set+"/"+escaped, ""))
			require.Equal(t, http.StatusOK, a.StatusCode, "%q: %s", jid, a.body)
			require.Equal(t, []string{jid}, jids(t, []json.RawMessage{json.RawMessage(a.body)}))
			require.Contains(t, a.body, fmt.Sprintf(`"millrace":{"offset":%d,`, i))
		}
		for _, action := range actions {
			w.commands = nil
			a := send(request(action.method, fmt.Sprintf(action.path, escaped), ""))
			require.Equal(t, http.StatusNoContent, a.StatusCode, "%q: %s", jid, a.body)
			require.Len(t, w.commands, 1)
			require.Equal(t, jid, w.commands[0].JID)
			require.Equal(t, action.command, w.commands[0].Command)
			require.Equal(t, action.stream, w.commands[0].Stream)
		}
	}
}

func entry(kind, at, jid string, i int) string {
	quoted, _ := json.Marshal(jid)
	return fmt.Sprintf(`{"type":%q,%q:%d,"jid":%s,"job":{"class":"C"}}`, kind, at, 2_000_000_000+i, quoted)
}

var actions = []struct{ method, path, command, stream string }{
	{http.MethodDelete, "/api/scheduled-jobs/%s", wire.CommandDelete, wire.ScheduledJobs},
	{http.MethodDelete, "/api/retries/%s", wire.CommandDelete, wire.Retries},
	{http.MethodDelete, "/api/dead-jobs/%s", wire.CommandDelete, wire.DeadJobs},
	{http.MethodPost, "/api/scheduled-jobs/%s/trigger", wire.CommandTrigger, wire.ScheduledJobs},
	{http.MethodPost, "/api/scheduled-jobs/%s/kill", wire.CommandKill, wire.ScheduledJobs},
	{http.MethodPost, "/api/retries/%s/retry", wire.CommandRetry, wire.Retries},
	{http.MethodPost, "/api/retries/%s/kill", wire.CommandKill, wire.Retries},
	{http.MethodPost, "/api/dead-jobs/%s/retry", wire.CommandRetry, wire.DeadJobs},
}

func TestGoneEntryShowsLastOutcome(t *testing.T) {
	w := newWorld(t)
	epoch := w.journal(wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format, Identity: "host:1"})
	offset := w.add(wire.Retries, retry("a", 2_000_000_000, "q", "C", "E"))
	w.journal(wire.JournalRecord{Type: wire.TypeDeleted, Epoch: epoch, At: 1_700_000_000, Stream: wire.Retries, Offset: offset, JID: "a", Actor: "ann"})

	p := w.get("/api/retries/a").problem(t, http.StatusNotFound, "not_found")
	require.Equal(t, &wire.Happened{What: "deleted", At: 1_700_000_000, Offset: offset, Record: 1, Actor: "ann"}, p.Happened)
	require.Contains(t, p.Reason, "was deleted by ann at 2023-11-14T22:13:20Z")
	p = w.get("/api/retries/never").problem(t, http.StatusNotFound, "not_found")
	require.Nil(t, p.Happened)
}

func TestSharedJIDNeedsOffset(t *testing.T) {
	w := newWorld(t)
	w.add(wire.DeadJobs, dead("same", 1_000_000_000))
	w.add(wire.DeadJobs, dead("other", 1_000_000_000))
	w.add(wire.DeadJobs, dead("same", 1_000_000_001))
	p := w.get("/api/dead-jobs/same").problem(t, http.StatusConflict, "conflict")
	require.Equal(t, []int64{0, 2}, p.Offsets)
	require.Contains(t, w.get("/api/dead-jobs/same?offset=2").body, `"offset":2,`)
	w.get("/api/dead-jobs/same?offset=1").problem(t, http.StatusNotFound, "not_found")
	w.get("/api/dead-jobs/same?offset=x").problem(t, http.StatusBadRequest, "bad_request")
	w.get("/api/dead-jobs/same?offset=-1").problem(t, http.StatusBadRequest, "bad_request")
}

func TestParkedEntryShowsReason(t *testing.T) {
	w := newWorld(t)
	epoch := w.journal(wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format})
	offset := w.add(wire.Retries, retry("a", 2_000_000_000, "q", "C", "E"))
	w.journal(wire.JournalRecord{Type: wire.TypeRefused, Epoch: epoch, Stream: wire.Retries, Offset: offset, JID: "a", Error: `it said "no"`})
	a := w.get("/api/retries/a")
	require.True(t, strings.HasSuffix(a.body, `,"attempt":2,"refused":"it said \"no\""}}`), a.body)
	require.True(t, json.Valid([]byte(a.body)))
}

func TestLargeRecordsAreReadFromStream(t *testing.T) {
	w := newWorld(t)
	body := strings.Replace(retry("big", 2_000_000_000, "q", "C", "E"), `"args":[]`, `"args":["`+strings.Repeat("x", 70<<10)+`"]`, 1)
	offset := w.add(wire.Retries, body)
	w.add(wire.Retries, retry("small", 2_000_000_001, "q", "C", "E"))
	want := strings.TrimSuffix(body, "}") + `,"millrace":{"offset":0,"first_offset":0,"at":2000000000,"queue":"q","class":"C","attempt":2}}`
	require.Equal(t, want, w.get("/api/retries/big").body)
	require.True(t, strings.HasPrefix(w.get("/api/retries").body, "["+want+`,{"type":"retry","jid":"small"`))
	require.True(t, strings.HasPrefix(w.get("/api/retries?format=ndjson").body, want+"\n"))
	require.Contains(t, w.get("/api/retries?format=csv").body, strings.ReplaceAll(body, `"`, `""`))

	p := w.page("/api/retries?page=1&error=E")
	require.Equal(t, []string{"small"}, jids(t, p.Items))
	require.EqualValues(t, 1, p.Unread)
	p = w.page("/api/retries?page=1&jid=big&text=xxx")
	require.Empty(t, p.Items)
	require.EqualValues(t, 1, p.Unread)
	w.get("/api/retries/"+strings.Repeat("é", 200)).problem(t, http.StatusNotFound, "not_found")

	for name, gone := range map[string]func(){
		"unreadable": func() { delete(w.streams[wire.Retries], offset) },
		"another":    func() { w.streams[wire.Retries][offset] = w.streams[wire.Retries][offset+1] },
		"other jid": func() {
			w.streams[wire.Retries][offset] = wire.Record{Offset: offset, Body: []byte(retry("x", 2_000_000_000, "q", "C", "E"))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			gone()
			w.get("/api/retries/big").problem(t, http.StatusServiceUnavailable, "service_unavailable")
			for _, list := range []string{w.get("/api/retries").body, w.get("/api/retries?page=1").body} {
				require.Contains(t, list, `[{"jid":"big","millrace":{"offset":0,"first_offset":0,"at":2000000000,"queue":"q","class":"C","attempt":2,"omitted":"`)
				require.True(t, json.Valid([]byte(list)))
			}
			require.Contains(t, w.get("/api/retries?format=ndjson").body, `"omitted":"`)
			require.Contains(t, w.get("/api/retries?format=csv").body, "big,q,C,2033-05-18T03:33:20Z,2,,,,0,0,\r\n")
		})
	}
}

func TestListLimitsReadsFromStream(t *testing.T) {
	w := newWorld(t)
	w.server.SetMaxFetchTime(time.Hour)
	filler := strings.Repeat("x", 12<<20)
	for i := range 5 {
		w.add(wire.DeadJobs, fmt.Sprintf(`{"jid":"d%d","died_at":%d,"job":{"class":"C","args":[%q]}}`, i, 1_000_000_000-i, filler))
	}
	body := w.get("/api/dead-jobs").body
	require.Equal(t, 3, strings.Count(body, filler))
	require.Equal(t, 2, strings.Count(body, `"omitted":"the record is over 64 KiB, and this list has read enough`))
}

func TestUnknownPathsAndWrongMethods(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/nope", "/jobs/", "/assets/", "/api", "/api/", "/api/nope", "/api/retries/", "/api/retries/a/b/c", "/api/retries/a/trigger/", "/api/rejected/retries", "/api/retries//retry"} {
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			if path == "/api/retries//retry" {
				method = http.MethodPost
			}
			w.do(method, path, "").problem(t, http.StatusNotFound, "not_found")
		}
	}
	for path, allow := range map[string][]string{
		"/api/retries":                      {http.MethodGet, http.MethodHead},
		"/api/retries/a":                    {http.MethodGet, http.MethodHead, http.MethodDelete, http.MethodPatch},
		"/api/retries/a/kill":               {http.MethodPost},
		"/api/rejected/retries/1":           {http.MethodGet, http.MethodHead, http.MethodDelete},
		"/api/rejected/retries/1/resubmit":  {http.MethodPost},
		"/api/release":                      {http.MethodPost},
		"/metrics":                          {http.MethodGet, http.MethodHead},
		"/api/scheduled-jobs/a%2Fb/trigger": {http.MethodPost},
	} {
		a := w.do(http.MethodPut, path, "")
		a.problem(t, http.StatusMethodNotAllowed, "method_not_allowed")
		for _, method := range allow {
			require.Contains(t, a.Header.Get("Allow"), method, path)
		}
		require.NotContains(t, a.Header.Get("Allow"), "PUT")
	}
	w.get("/api/retries/%FF").problem(t, http.StatusBadRequest, "bad_request")
}

func TestHeadAnswersLikeGetWithoutBody(t *testing.T) {
	w := newWorld(t)
	w.add(wire.Retries, retry("a", 2_000_000_000, "q", "C", "E"))
	live := httptest.NewServer(w.server.Handler())
	defer live.Close()
	for path, status := range map[string]int{
		"/api/retries": 200, "/api/retries?page=1": 200, "/api/retries/a": 200, "/api/retries/b": 404, "/api/rejected": 200, "/api/overview": 200,
		"/api/retries?format=csv": 200, "/healthz": 200, "/metrics": 200, "/nope": 404, "/api/retries?page=0": 400,
	} {
		response, err := live.Client().Head(live.URL + path)
		require.NoError(t, err)
		require.Empty(t, readAll(t, response))
		require.Equal(t, status, response.StatusCode, path)
		require.NoError(t, response.Body.Close())
	}
}

func TestServerWithoutBackends(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config) {
		*c = httpapi.Config{Entries: c.Entries, View: c.View}
	})
	big := strings.Replace(retry("big", 2_000_000_000, "q", "C", "E"), `"args":[]`, `"args":["`+strings.Repeat("x", 70<<10)+`"]`, 1)
	w.add(wire.Retries, big)
	w.get("/api/retries/big").problem(t, http.StatusServiceUnavailable, "service_unavailable")
	a := w.do(http.MethodDelete, "/api/retries/big", "")
	a.problem(t, http.StatusServiceUnavailable, "no_leader")
	require.Equal(t, "1", a.Header.Get("Retry-After"))
	offset := w.add(wire.Retries, "garbage")
	w.do(http.MethodPost, fmt.Sprintf("/api/rejected/retries/%d/resubmit", offset), retry("x", 1, "q", "C", "E")).
		problem(t, http.StatusServiceUnavailable, "service_unavailable")
	require.Equal(t, http.StatusServiceUnavailable, w.get("/readyz").StatusCode)
	require.Equal(t, http.StatusOK, w.get("/api/overview").StatusCode)
	require.Equal(t, http.StatusOK, w.get("/metrics").StatusCode)
}
