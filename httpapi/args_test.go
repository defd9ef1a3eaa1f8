package httpapi_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// withArgs returns a retry with these arguments.
func withArgs(jid string, at float64, args string) string {
	return strings.Replace(retry(jid, at, "q", "C", "E"), `"args":[]`, `"args":`+args, 1)
}

// newOrders is a world with retries that name a customer.
func newOrders(t *testing.T) *world {
	w := newWorld(t)
	for i, args := range []string{
		`[{"customer":42,"items":[{"sku":"x-1"}]}]`, `[{"customer":"42"}]`, `[{"customer":43,"note":"42"}]`, `[{"customer":{"id":42}}]`, `{"customer":42}`, `[42]`,
		`[{"customer":4.2e1,"a.b":null,"items":[{"sku":"x-2"}]}]`,
	} {
		w.add(wire.Retries, withArgs(fmt.Sprintf("r%d", i), float64(2_000_000_000+i), args))
	}
	return w
}

func TestFilterByArguments(t *testing.T) {
	w := newOrders(t)
	for args, want := range map[string][]string{
		"0.customer:42":     {"r0", "r1", "r6"},
		"0.customer.id:42":  {"r3"},
		"customer:42":       {"r4"},
		"0:42":              {"r5"},
		"0.items.0.sku:x-1": {"r0"},
		"0.items.0.sku:X-1": {},
		"0.items.1.sku:x-1": {},
		`0.a\.b:null`:       {"r6"},
		"0.customer:":       {},
	} {
		t.Run(args, func(t *testing.T) {
			query := "args=" + url.QueryEscape(args)
			require.Equal(t, want, w.jids("/api/retries?"+query))
			p := w.page("/api/retries?page=1&page_size=2&" + query)
			require.EqualValues(t, len(want), *p.AtLeast)
			require.EqualValues(t, len(want), *p.Filtered, "the whole set was read: the count is exact")
			require.EqualValues(t, 7, p.Total)
			require.EqualValues(t, 7, *p.Searched)
			require.Equal(t, len(want), strings.Count(w.get("/api/retries?format=ndjson&"+query).body, "\n"))
			rows, err := csv.NewReader(strings.NewReader(w.get("/api/retries?format=csv&" + query).body)).ReadAll()
			require.NoError(t, err)
			require.Len(t, rows, len(want)+1)
		})
	}
	require.Equal(t, []string{"r6", "r1", "r0"}, w.jids("/api/retries?args=0.customer:42&sort=-at"))
	require.Equal(t, []string{"r1"}, w.jids("/api/retries?args=0.customer:42&jid=r1"))
	require.Equal(t, []string{"r1", "r6"}, w.jids("/api/retries?args=0.customer:42&from=2000000001&queue=q&class=C&error=E"))
	require.Equal(t, []string{"r0"}, w.jids("/api/retries?args=0.customer:42&text=x-1"))
	require.Empty(t, w.jids("/api/retries?args=0.customer:42&tag=vip"))
}

func TestArgumentsOfEachListAreSearched(t *testing.T) {
	w := newWorld(t)
	for stream, record := range map[string]string{
		wire.ScheduledJobs: scheduled("a", 2_000_000_000), wire.Retries: withArgs("a", 2_000_000_000, "[1]"),
		wire.DeadJobs: strings.Replace(dead("a", 1_000_000_000), "[]", "[1]", 1), wire.Gated: `{"jid":"a","class":"C","queue":"q","args":[1]}`,
	} {
		w.add(stream, record)
	}
	for _, set := range []string{"scheduled-jobs", "retries", "dead-jobs", "gated-jobs"} {
		require.Equal(t, []string{"a"}, w.jids("/api/"+set+"?args=0:1"), set)
		require.Empty(t, w.jids("/api/"+set+"?args=0:2"), set)
	}
}

func TestArgumentsOfLargeRecordsAreNotSearched(t *testing.T) {
	w := newWorld(t)
	w.add(wire.Retries, withArgs("small", 2_000_000_000, `[1]`))
	w.add(wire.Retries, withArgs("large", 2_000_000_001, `[1,"`+strings.Repeat("x", 70<<10)+`"]`))
	for _, query := range []string{"", "&jid=large", "&sort=class"} {
		p := w.page("/api/retries?page=1&args=0:1" + query)
		require.EqualValues(t, 1, p.Unread, query)
		require.NotContains(t, jids(t, p.Items), "large", query)
	}
}

// An operation acts on the jobs that the list shows, and on no others.
func TestOperationHasArgumentsOfList(t *testing.T) {
	w := newOrders(t)
	w.journal(wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format})
	w.reply, w.onCommand = wire.Reply{Status: wire.StatusAccepted}, w.beginOperation
	for i, args := range []string{"0.customer:42", "0.items.0.sku:x-2", `0.a\\.b:null`, "0.customer:44"} {
		body := fmt.Sprintf(`{"action":"retry","set":"retries","filter":{"args":"%s","queue":"q"}}`, args)
		require.Equal(t, http.StatusAccepted, w.do(http.MethodPost, "/api/operations", body).StatusCode)
		op := w.commands[i].Bulk
		require.Equal(t, &wire.Filter{Args: strings.ReplaceAll(args, `\\`, `\`), Queue: "q"}, op.Filter)

		chosen := []string{}
		matcher := tracker.NewMatcher(op.Filter)
		require.NoError(t, w.entries.List(wire.Retries, tracker.Cursor{}, func(r tracker.Row) bool {
			e, err := w.entries.Get(wire.Retries, r.Offset)
			require.NoError(t, err)
			if matcher.Match(e) {
				chosen = append(chosen, e.JID)
			}
			return true
		}))
		require.Equal(t, w.jids("/api/retries?queue=q&args="+url.QueryEscape(op.Filter.Args)), chosen)
	}
}

func TestInvalidArgsAreRefused(t *testing.T) {
	w := newWorld(t)
	for args, why := range map[string]string{
		"0.customer": "no colon", ":42": "no path", "0..sku:1": "an empty step", `0.a\b:1`: "a backslash", strings.Repeat("x", 1000) + ":": "at most 1000",
		strings.Repeat("0.", 32) + "0:1": "over 32 steps",
	} {
		p := w.get("/api/retries?args="+url.QueryEscape(args)).problem(t, http.StatusBadRequest, "bad_request")
		require.Contains(t, p.Reason, why)
		require.Contains(t, p.Reason, "such as 0.customer:42")
		body := fmt.Sprintf(`{"action":"retry","set":"retries","filter":{"args":%q}}`, args)
		p = w.do(http.MethodPost, "/api/operations", body).problem(t, http.StatusBadRequest, "bad_request")
		require.Contains(t, p.Reason, why)
	}
	for _, query := range []string{"args=", "args=0:1&args=0:2"} {
		w.get("/api/retries?"+query).problem(t, http.StatusBadRequest, "bad_request")
	}
	w.get("/api/errors?args=0:1").problem(t, http.StatusBadRequest, "bad_request")
	require.Empty(t, w.commands)
}

// A user who may not see an argument cannot find it by guessing its value.
func TestHiddenArgumentsAreNotFound(t *testing.T) {
	pattern, err := httpapi.ParseHideArgs(httpapi.DefaultHideArgs)
	require.NoError(t, err)
	w := newSecured(t, func(c *httpapi.Config) { c.HideArgs = pattern })
	w.add(wire.Retries, withArgs("a", 2_000_000_000, `[{"user":"ann","apiKey":"k-1","deep":{"pass\u0077ord":{"pin":7}},"token":1,"token":"k-2"}]`))
	found := func(name, args string) bool {
		query := "args=" + url.QueryEscape(args)
		list := w.as(name, http.MethodGet, "/api/retries?"+query, "").body
		for _, more := range []string{"&jid=a", "&sort=class", "&format=ndjson"} {
			require.Equal(t, list != "[]\n", strings.Contains(w.as(name, http.MethodGet, "/api/retries?"+query+more, "").body, `"ann"`), more)
		}
		return list != "[]\n"
	}
	for _, args := range []string{"0.apiKey:k-1", "0.deep.password.pin:7", "0.token:k-2"} {
		require.True(t, found("management", args), args)
		require.False(t, found("monitoring", args), args)
	}
	require.False(t, found("monitoring", "0.token:1"))
	for _, name := range []string{"management", "monitoring"} {
		require.True(t, found(name, "0.user:ann"), name)
	}

	pattern, err = httpapi.ParseHideArgs("^args$")
	require.NoError(t, err)
	w = newSecured(t, func(c *httpapi.Config) { c.HideArgs = pattern })
	w.add(wire.Retries, withArgs("a", 2_000_000_000, `["ann"]`))
	require.True(t, found("management", "0:ann"))
	require.False(t, found("monitoring", "0:ann"))
}
