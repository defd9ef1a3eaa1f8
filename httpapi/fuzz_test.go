package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/wire"
)

// queries and bodies are the seeds of FuzzRequests, at every route that may read them.
var (
	queries = []string{
		"", "page=1&page_size=2", "from=1e400", "next=1,2", "next=7", "format=csv", "text=%ff", "offset=-1", "set=retries&step=1", "page=1;", "limit=500&error=fp-0123456789abcdef",
		"to=0001-01-01T00:00:00Z", "from=0&to=253402300799&step=60", "actor=ann&op=deleted", "status=dead&failed=true", "topics=jobs,overview&for=0", "count=100", "args=0.a:1",
	}
	bodies = []string{
		"", `{"reason":"r"}`, `{"class":"C","args":[{"password":1}],"at":"2033-05-18T03:33:20Z"}`, `[{"class":"C","idempotency_key":"k"},null,1]`, `{"name":"x","password":"y"}`, `{"token":"\ud800"}`,
		`{"discard":true}`, retry("a", 2_000_000_000, "q", "C", "E"), `{"a":`, "\xff", strings.Repeat("[", 20_000), `{"class":"C","jid":null}`, `{}x`, `{"CLASS":"C"}`, `{"to":"r","reason":"r"}`,
		`{"exchange":"e","routing_key":"k","body_base64":"AA==","properties":{"priority":5,"headers":{"a":[1.5]}},"in":0.5}`,
		`{"max":2,"wait_ms":0,"lease_ms":1000}`, `{"error_class":"E","error_message":"m","backtrace":"b","retry_in":1.5,"kill":false}`, `{"label":"v1","at":1700000000}`, `{"priority":1,"args":[1e400]}`,
		`{"action":"kill","set":"retries","filter":{"class":"C","args":"0:1","from":1},"as_of":3,"expected_count":4,"rate":0.5}`, `{"action":"change","set":"retries","jids":["a"],"at":2e9}`,
	}
)

// FuzzRequests sends random input to every route. There must be no panic and no error 500, and the
// contract must describe every answer. Each query, body and header that the server reads is read
// during this.
func FuzzRequests(f *testing.F) {
	w := fuzzed(f)
	routes := w.server.Routes()
	doc := document(f)
	require.Less(f, len(routes), 256, "a byte selects the route")
	for i := range uint8(len(routes)) {
		known := "a"
		switch {
		case strings.Contains(routes[i], "/leases/"):
			known = someLease
		case strings.Contains(routes[i], "/operations/"):
			known = "op"
		case strings.Contains(routes[i], "/processes/"):
			known = "h:1:x"
		}
		f.Add(i, "%2F", "", "", "", "")
		if strings.HasPrefix(routes[i], http.MethodGet) {
			for _, query := range queries {
				f.Add(i, known, query, "", "", "1-1")
			}
			continue
		}
		for _, body := range bodies {
			f.Add(i, known, "", body, "application/json; charset=utf-8", "why")
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, parameter, query, body, media, header string) {
		method, path, _ := strings.Cut(routes[int(which)%len(routes)], " ")
		path = braces.ReplaceAllStringFunc(path, func(string) string { return url.PathEscape(parameter) })
		target := &url.URL{Scheme: "http", Host: "localhost", RawQuery: query}
		var err error
		if target.Path, err = url.PathUnescape(path); err != nil {
			return
		}
		target.RawPath = path
		lasts := time.Second // only event streams and waits need it
		if path == "/api/events" {
			lasts = 10 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), lasts)
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, method, "/", strings.NewReader(body))
		r.URL, r.Host = target, "localhost"
		r.Header.Set("Content-Type", media)
		for _, name := range []string{"X-Reason", "Idempotency-Key", "Last-Event-ID", "X-Request-Id", "Range", "If-None-Match"} {
			if header != "" && !strings.ContainsFunc(header, func(r rune) bool { return r < ' ' || r == 0x7f }) { // others do not get this far
				r.Header.Set(name, header)
			}
		}
		answer := &tee{ResponseWriter: httptest.NewRecorder(), whole: true}
		w.server.Handler().ServeHTTP(answer, r)
		require.NotEqual(t, http.StatusInternalServerError, answer.status(), "%s", answer.body.String())
		if len(body) < 1<<16 {
			require.NoError(t, compare(doc, r, []byte(body), answer), "%s", answer.body.String())
		}
		w.commands, w.published = nil, nil
	})
}

// fuzzed is a world with something in every list. Its server is not wrapped: the fuzz target
// compares answers itself.
func fuzzed(f *testing.F) *world {
	w := newWorld(f, watching(true, broker.QueueInfo{Name: "queue.a", Ready: 5}), func(c *httpapi.Config) {
		c.OnBroker = func(context.Context, func(*broker.Conn) error) error { return nil }
	})
	pattern, err := httpapi.ParseHideArgs(httpapi.DefaultHideArgs)
	require.NoError(f, err)
	w.unchecked(func(c *httpapi.Config) { c.HideArgs, c.Log = pattern, nil })
	for i, jid := range []string{"a", "1", "é", "/"} {
		w.add(wire.ScheduledJobs, scheduled(jid, float64(2_000_000_000+i)))
		w.add(wire.Retries, retry(jid, float64(2_000_000_000+i), "q", "C", "E"))
		w.add(wire.DeadJobs, dead(jid, float64(1_000_000_000+i)))
		w.add(wire.Retries, "garbage")
	}
	w.reply.JID = "a" // of a job that is enqueued under a key
	job, err := wire.ParseJob([]byte(`{"jid":"a","class":"C","queue":"q","args":[]}`))
	require.NoError(f, err)
	lease, err := wire.LeaseMessage(someLease, time.Unix(4_000_000_000, 0), &job, "", "")
	require.NoError(f, err)
	w.fold(wire.Record{Stream: wire.ScheduledJobs, UserID: user, Headers: lease.Headers, Body: lease.Body})
	w.add(wire.Heartbeats, beat("h:1:x", ""))
	w.add(wire.JobMetrics, `{"type":"job_metric","timestamp":1700000000,"job_class":"C","queue":"q","duration_ms":5,"status":"success","jid":"a"}`)
	w.journal(wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format})
	w.journal(wire.JournalRecord{Type: wire.TypeDeleted, At: 5, Stream: wire.Retries, Offset: 90, JID: "b", Actor: "ann", Reason: "old"})
	w.journal(wire.JournalRecord{Type: wire.TypeOperation, At: 8, Operation: &wire.Operation{ID: "op", Action: wire.CommandKill, Stream: wire.Retries,
		Filter: &wire.Filter{}, State: wire.OperationDone, Actor: "ann"}})
	return w
}
