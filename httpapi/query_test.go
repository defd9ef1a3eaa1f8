package httpapi

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	_ "github.com/millrace-jobs/millrace/internal/rapidseed"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

func asked(raw string) *problem.Request {
	r := &http.Request{URL: &url.URL{Path: "/api/retries", RawQuery: raw}}
	return problem.Read(echo.New().NewContext(r, nil))
}

// checkQuery holds for every query that is accepted.
func checkQuery(t require.TestingT, q *query) {
	require.Equal(t, wire.Retries, q.stream)
	if q.format != "" {
		require.False(t, q.paged)
		return
	}
	require.True(t, q.size >= 1 && q.size <= maxSize)
	require.GreaterOrEqual(t, q.skip, int64(0))
	require.Equal(t, q.paged, q.page > 0)
	if q.behind.Set {
		require.Zero(t, q.skip)
		in := asked("next=" + cursorText(q.behind))
		in.Query("next")
		require.Equal(t, q.behind, readCursor(in))
		require.NoError(t, in.Err())
	}
	if q.sorting.key != "" {
		require.Contains(t, sortKeys[q.stream], q.sorting.key)
		require.False(t, q.behind.Set)
	}
	f := q.filter
	for _, s := range []string{f.Queue, f.Class, f.JID, f.Error, f.Tag, f.Text, f.Args} {
		require.True(t, utf8.ValidString(s))
	}
	for _, at := range []time.Time{f.From, f.To} {
		require.True(t, at.IsZero() || at.Year() >= 0 && at.Year() <= 10_000)
	}
	require.Equal(t, f.set() == 0, f.unset())
	if f.countable() {
		require.False(t, f.LooksInside())
	}
}

func FuzzParseQuery(f *testing.F) {
	for _, seed := range []string{
		"", "page=1&page_size=500", "limit=5&offset=9", "next=1700000000000000,5", "next=-1,-1", "from=1e9&to=2033-05-18T03:33:24Z", "from=-62135596800", "to=253402300799.5",
		"text=%F0%9F%98%80&tag=a&error=b&jid=c&queue=d&class=e", "format=csv", "page=1;", "%", "page=99999999999999999999", "from=1e400", "from=nan", "next=,", "next=9223372036854775807,9",
		"from=0001-01-01T00:00:00Z", "sort=-failed_at&page=3", "sort=at&next=1,1",
		"args=0.customer:42", `args=0.a\.b\:c\\:`, "args=0..a:1", "args=:", `args=\`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		in := asked(raw)
		q := readQuery(in, wire.Retries, time.Now())
		if in.Err() != nil {
			p := problem.From(in.Err())
			require.Equal(t, http.StatusBadRequest, p.Status)
			require.True(t, p.Reason != "" && len(p.Reason) < 1000, p.Reason)
			return
		}
		checkQuery(t, q)
		q.start()
	})
}

// A valid query of any form is parsed as it was meant.
func TestParseQueryKeepsMeaning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values, want := url.Values{}, query{stream: wire.Retries, paging: paging{size: defaultSize}}
		text := rapid.StringN(1, 20, -1)
		maybe := func(name string, g *rapid.Generator[string]) string {
			if !rapid.Bool().Draw(t, "has "+name) {
				return ""
			}
			v := g.Draw(t, name)
			values.Set(name, v)
			return v
		}
		f := &want.filter
		f.Queue, f.Class, f.JID = maybe("queue", text), maybe("class", text), maybe("jid", text)
		failure, tag, contains := maybe("error", text), maybe("tag", text), maybe("text", text)
		args := maybe("args", rapid.Map(text, func(value string) string { return `0.a\.b:` + value }))
		f.Contents = tracker.NewContents(failure, tag, contains, args)
		micros := rapid.Int64Range(-1e11*1e6, 1e11*1e6).Draw(t, "from")
		micros = max(micros, problem.Earliest*1e6)
		if rapid.Bool().Draw(t, "has from") {
			f.From = time.UnixMicro(micros).UTC()
			values.Set("from", f.From.Format(time.RFC3339Nano))
		}
		switch rapid.SampledFrom([]string{"page", "bare", "next", "export"}).Draw(t, "shape") {
		case "page":
			want.paged, want.page = true, rapid.Int64Range(1, maxPage).Draw(t, "page")
			want.size = rapid.IntRange(1, maxSize).Draw(t, "page_size")
			want.skip = (want.page - 1) * int64(want.size)
			values.Set("page", strconv.FormatInt(want.page, 10))
			values.Set("page_size", strconv.Itoa(want.size))
		case "bare":
			want.skip = rapid.Int64Range(0, 1e9).Draw(t, "offset")
			values.Set("offset", strconv.FormatInt(want.skip, 10))
		case "next":
			want.behind = tracker.Cursor{At: time.UnixMicro(micros).UTC(), Offset: rapid.Int64().Draw(t, "cursor"), Set: true}
			values.Set("next", cursorText(want.behind))
		case "export":
			want.size, want.format = 0, formatNDJSON
			values.Set("format", want.format)
		}
		if !want.behind.Set && want.format == "" && rapid.Bool().Draw(t, "has sort") {
			want.sorting = sorting{rapid.SampledFrom(sortKeys[wire.Retries]).Draw(t, "sort"), rapid.Bool().Draw(t, "reversed")}
			values.Set("sort", map[bool]string{true: "-"}[want.sorting.reversed]+want.sorting.key)
			if want.sorting == (sorting{key: sortAt}) { // as the list is
				want.sorting = sorting{}
			}
		}
		in := asked(values.Encode())
		got := readQuery(in, wire.Retries, time.Now())
		require.NoError(t, in.Err())
		require.Equal(t, &want, got)
		checkQuery(t, got)
	})
}

func TestTextMatchesAnySpelling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(1, 10, -1).Draw(t, "text")
		plain, err := json.Marshal(text)
		require.NoError(t, err)
		f := filter{Matcher: tracker.Matcher{Contents: tracker.NewContents("", "", text, "")}}
		var scratch []byte
		require.True(t, f.Contains(plain, &scratch))
		require.True(t, f.Contains([]byte(quote(text)), &scratch))
	})
}

func TestStartIsTheLaterOfTwo(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0).UTC() }
	cursor := func(s, o int64) tracker.Cursor { return tracker.Cursor{At: at(s), Offset: o, Set: true} }
	for i, c := range []struct {
		q    query
		want tracker.Cursor
	}{
		{query{stream: wire.Retries}, tracker.Cursor{}},
		{query{stream: wire.Retries, behind: cursor(5, 1)}, cursor(5, 1)},
		{query{stream: wire.Retries, filter: filter{Matcher: tracker.Matcher{From: at(5)}}}, cursor(5, math.MinInt64)},
		{query{stream: wire.Retries, filter: filter{Matcher: tracker.Matcher{From: at(5)}}, behind: cursor(6, 1)}, cursor(6, 1)},
		{query{stream: wire.Retries, filter: filter{Matcher: tracker.Matcher{From: at(5)}}, behind: cursor(5, 1)}, cursor(5, 1)},
		{query{stream: wire.Retries, filter: filter{Matcher: tracker.Matcher{From: at(5)}}, behind: cursor(4, 1)}, cursor(5, math.MinInt64)},
		{query{stream: wire.DeadJobs, filter: filter{Matcher: tracker.Matcher{From: at(5)}}, behind: cursor(4, 1)}, cursor(4, 1)},
		{query{stream: wire.DeadJobs, filter: filter{Matcher: tracker.Matcher{To: at(5)}}}, cursor(5, math.MinInt64)},
		{query{stream: wire.DeadJobs, filter: filter{Matcher: tracker.Matcher{To: at(5)}}, behind: cursor(4, 1)}, cursor(4, 1)},
		{query{stream: wire.DeadJobs, filter: filter{Matcher: tracker.Matcher{To: at(5)}}, behind: cursor(5, 1)}, cursor(5, math.MinInt64)},
		{query{stream: wire.DeadJobs, filter: filter{Matcher: tracker.Matcher{To: at(5)}}, behind: cursor(6, 1)}, cursor(5, math.MinInt64)},
	} {
		require.Equal(t, c.want, c.q.start(), fmt.Sprint(i))
	}
}
