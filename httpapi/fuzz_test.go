package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/wire"
)

// FuzzRequests sends anything to every route: there must be no panic and no error 500, and every answer must be one that the contract
// describes. Each query and each body that is read at all is read on the way.
func FuzzRequests(f *testing.F) {
	for i := range 40 {
		f.Add(uint8(i), "a", "", "", "application/json")
		f.Add(uint8(i), "1", "page=1&page_size=2", `{"reason":"r"}`, "application/json; charset=utf-8")
	}
	for _, query := range []string{"from=1e400", "next=1,2", "format=csv", "text=%ff", "offset=-1", "set=retries&step=1", "page=1;", "limit=500&error=fp-0123456789abcdef", "to=0001-01-01T00:00:00Z"} {
		for i := range uint8(8) {
			f.Add(i*4, "%2F", query, "", "")
		}
	}
	for _, body := range []string{
		`{"class":"C","args":[{"password":1}],"at":"2033-05-18T03:33:20Z"}`, `[{"class":"C"},null,1]`, `{"name":"x","password":"y"}`, `{"token":"\ud800"}`, `{"discard":true}`,
		retry("a", 2_000_000_000, "q", "C", "E"), `{"a":`, "\xff", strings.Repeat("[", 20_000), `{"class":"C","jid":null}`, `{}x`, `{"CLASS":"C"}`,
	} {
		for i := range uint8(8) {
			f.Add(i*4+1, "é", "", body, "application/json")
		}
	}
	w := fuzzed(f)
	routes := w.server.Routes()
	doc := document(f)
	f.Fuzz(func(t *testing.T, which uint8, parameter, query, body, media string) {
		method, path, _ := strings.Cut(routes[int(which)%len(routes)], " ")
		path = braces.ReplaceAllStringFunc(path, func(string) string { return url.PathEscape(parameter) })
		target := &url.URL{Scheme: "http", Host: "localhost", RawQuery: query}
		var err error
		if target.Path, err = url.PathUnescape(path); err != nil {
			return
		}
		target.RawPath = path
		r := httptest.NewRequest(method, "/", strings.NewReader(body))
		r.URL, r.Host = target, "localhost"
		r.Header.Set("Content-Type", media)
		answer := &tee{ResponseWriter: httptest.NewRecorder(), whole: true}
		w.server.Handler().ServeHTTP(answer, r)
		require.NotEqual(t, http.StatusInternalServerError, answer.status(), "%s", answer.body.String())
		if len(body) < 1<<16 {
			require.NoError(t, compare(doc, r, []byte(body), answer), "%s", answer.body.String())
		}
		w.commands, w.published = nil, nil
	})
}

// fuzzed is a world with something in every list, before a server that is not wrapped: the target compares by itself.
func fuzzed(f *testing.F) *world {
	w := newWorld(f)
	pattern, err := httpapi.ParseHideArgs(httpapi.DefaultHideArgs)
	require.NoError(f, err)
	w.unchecked(func(c *httpapi.Config) { c.HideArgs, c.Log = pattern, nil })
	for i, jid := range []string{"a", "1", "é", "/"} {
		w.add(wire.ScheduledJobs, scheduled(jid, float64(2_000_000_000+i)))
		w.add(wire.Retries, retry(jid, float64(2_000_000_000+i), "q", "C", "E"))
		w.add(wire.DeadJobs, dead(jid, float64(1_000_000_000+i)))
		w.add(wire.Retries, "garbage")
	}
	return w
}
