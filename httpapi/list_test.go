package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

func TestItemIsByteForByteTheRecord(t *testing.T) {
	w := newWorld(t)
	record := "{ \"type\": \"scheduled_job\",\n \"jid\":\"a\", \"scheduled_at\": 2000000000.25, \"x\": 1e400,\n" +
		" \"job\": {\"class\":\"Mail <b>\", \"args\": [9007199254740993, 1e400, \"\\u0000é\", {\"b\":1,\"a\":2}], \"queue\":\"q\\\"1\"} }"
	w.add(wire.ScheduledJobs, "{}") // takes offset 0
	w.add(wire.ScheduledJobs, record)
	want := strings.TrimSuffix(record, "}") +
		`,"millrace":{"offset":1,"first_offset":1,"at":2000000000.25,"queue":"q\"1","class":"Mail \u003cb\u003e","attempt":0}}`

	require.Equal(t, want, w.get("/api/scheduled-jobs/a").body)
	require.Equal(t, "["+want+"]\n", w.get("/api/scheduled-jobs").body)
	require.Contains(t, w.get("/api/scheduled-jobs?page=1").body, `"items":[`+want+"]}")
	require.Equal(t, strings.ReplaceAll(want, "\n", " ")+"\n", w.get("/api/scheduled-jobs?format=ndjson").body)
	require.True(t, json.Valid([]byte(want)))
}

func TestListIsOrderedAndPaged(t *testing.T) {
	w := newWorld(t)
	for i := range 25 {
		w.add(wire.ScheduledJobs, scheduled(fmt.Sprintf("j%02d", 24-i), float64(2_000_000_000-i%5*0-i)))
		w.add(wire.DeadJobs, dead(fmt.Sprintf("d%02d", i), float64(1_000_000_000+i)))
	}
	p := w.page("/api/scheduled-jobs?page=1&page_size=10")
	require.Equal(t, "j00", jids(t, p.Items)[0])
	require.EqualValues(t, 25, p.Total)
	require.EqualValues(t, 25, *p.Filtered)
	require.EqualValues(t, 3, *p.PageCount)
	require.Equal(t, 10, p.PageSize)
	require.Nil(t, p.Searched)
	require.Nil(t, p.AtLeast)
	require.NotNil(t, p.Next)

	third := w.page("/api/scheduled-jobs?page=3&page_size=10")
	require.Equal(t, []string{"j20", "j21", "j22", "j23", "j24"}, jids(t, third.Items))
	require.Nil(t, third.Next)
	require.Empty(t, w.page("/api/scheduled-jobs?page=4&page_size=10").Items)

	second := w.page("/api/scheduled-jobs?page=2&page_size=10&next=" + *p.Next)
	require.Equal(t, w.page("/api/scheduled-jobs?page=2&page_size=10").Items, second.Items)
	require.EqualValues(t, 2, second.Page)

	require.Equal(t, "d24", w.jids("/api/dead-jobs")[0], "dead jobs: newest first")
	require.Equal(t, []string{"d04", "d03"}, w.jids("/api/dead-jobs?offset=20&limit=2"))
	first := w.page("/api/dead-jobs?page=1&page_size=20")
	require.Equal(t, []string{"d04", "d03", "d02", "d01", "d00"}, w.jids("/api/dead-jobs?next="+*first.Next))
}

func TestBareArrayHasLinkToNextPage(t *testing.T) {
	w := newWorld(t)
	for i := range 150 {
		w.add(wire.Retries, retry(fmt.Sprintf("r%03d", i), float64(2_000_000_000+i), "q", "C", "E"))
	}
	a := w.get("/api/retries")
	next := a.Header.Get("Millrace-Next")
	require.NotEmpty(t, next)
	rest := w.jids("/api/retries?next=" + next)
	require.Len(t, rest, 50)
	require.Equal(t, "r100", rest[0])
	require.Empty(t, w.get("/api/retries?limit=500").Header.Get("Millrace-Next"))
	require.Equal(t, "[]\n", w.get("/api/retries?offset=150").body)
	require.Equal(t, "[]\n", w.get("/api/dead-jobs").body)
}

func TestEmptyListHasEnvelope(t *testing.T) {
	w := newWorld(t)
	p := w.page("/api/retries?page=1")
	require.Zero(t, p.Total)
	require.Zero(t, *p.Filtered)
	require.NotNil(t, p.Items)
	require.EqualValues(t, -1, *p.AsOf)
}

func TestFilters(t *testing.T) {
	w := newWorld(t)
	w.add(wire.Retries, retry("a", 2_000_000_001, "mail", "Welcome", "Timeout"))
	w.add(wire.Retries, retry("b", 2_000_000_002, "mail", "Bye", "Timeout"))
	w.add(wire.Retries, retry("c", 2_000_000_003, "default", "Bye", "Refused"))
	w.add(wire.Retries, `{"type":"retry","jid":"d","retry_at":2000000004,"retry_count":1,"job":{"class":"Bye","tags":["vip","eu"],"args":["Gr\u00fc\u00dfe \"Bob\" <x> \ud83d\ude00"]}}`)
	w.add(wire.Retries, `{"type":"retry","jid":"e","retry_at":2000000005,"retry_count":1,"job":{"class":"Hi","args":["Grüße & 😀"]}}`)
	for query, want := range map[string][]string{
		"queue=mail":                            {"a", "b"},
		"class=Bye":                             {"b", "c", "d"},
		"queue=mail&class=Bye":                  {"b"},
		"error=Timeout":                         {"a", "b"},
		"error=time":                            {},
		"tag=vip":                               {"d"},
		"jid=c":                                 {"c"},
		"jid=c&queue=mail":                      {},
		"jid=c&from=2000000004":                 {},
		"text=REFUSED":                          {"c"},
		"text=gr%C3%BC%C3%9Fe":                  {"d", "e"},
		"text=%F0%9F%98%80":                     {"d", "e"},
		"text=%22bob%22":                        {"d"},
		"text=<x>":                              {"d"},
		"text=%26":                              {"e"},
		"from=2000000002&to=2000000004":         {"b", "c"},
		"from=2000000002000&to=2000000004000":   {"b", "c"},
		"from=2033-05-18T03:33:24Z":             {"d", "e"},
		"to=2033-05-18T03:33:22Z":               {"a"},
		"text=it+broke&class=Bye&to=2000000003": {"b"},
		"queue=none":                            {},
	} {
		t.Run(query, func(t *testing.T) {
			require.Equal(t, want, w.jids("/api/retries?"+query))
			p := w.page("/api/retries?page=1&" + query)
			require.Equal(t, want, jids(t, p.Items))
			require.EqualValues(t, len(want), *p.Filtered, "the whole set was read: the count is exact")
			require.EqualValues(t, 5, p.Total)
			require.Nil(t, p.Next)
		})
	}
}

func TestFilterDeadJobsByTime(t *testing.T) {
	w := newWorld(t)
	for i := range 5 {
		w.add(wire.DeadJobs, dead(fmt.Sprintf("d%d", i), float64(1_000_000_000+i)))
	}
	require.Equal(t, []string{"d3", "d2", "d1"}, w.jids("/api/dead-jobs?from=1000000001&to=1000000004"))
	p := w.page("/api/dead-jobs?page=1&page_size=2&to=1000000004")
	require.Equal(t, []string{"d3", "d2"}, jids(t, p.Items))
	require.EqualValues(t, 4, *p.AtLeast)
	require.Equal(t, []string{"d1"}, w.jids("/api/dead-jobs?from=1000000001&to=1000000004&next="+*p.Next))
}

func TestPagesOfFilteredList(t *testing.T) {
	w := newWorld(t)
	for i := range 30 {
		w.add(wire.Retries, retry(fmt.Sprintf("r%02d", i), float64(2_000_000_000+i), "q", []string{"Odd", "Even"}[i%2], fmt.Sprint("E", i%3)))
	}
	p := w.page("/api/retries?page=2&page_size=4&class=Odd")
	require.Equal(t, []string{"r08", "r10", "r12", "r14"}, jids(t, p.Items))
	require.EqualValues(t, 15, *p.Filtered)
	require.Nil(t, p.AtLeast)

	p = w.page("/api/retries?page=2&page_size=3&error=E1")
	require.Equal(t, []string{"r10", "r13", "r16"}, jids(t, p.Items))
	require.EqualValues(t, 10, *p.Filtered)
	require.EqualValues(t, 10, *p.AtLeast)
	require.EqualValues(t, 30, *p.Searched)
	p = w.page("/api/retries?page=3&page_size=3&error=E1&next=" + *p.Next)
	require.Equal(t, []string{"r19", "r22", "r25"}, jids(t, p.Items))
	require.Nil(t, p.Filtered, "entries before the cursor are not counted")
	require.EqualValues(t, 4, *p.AtLeast)
	require.Len(t, w.jids("/api/retries?limit=4&error=E1"), 4)
}

func TestListOfEntriesThatShareAJID(t *testing.T) {
	w := newWorld(t)
	for i := range 5 {
		w.add(wire.DeadJobs, dead("same", float64(1_000_000_000+i)))
	}
	p := w.page("/api/dead-jobs?page=2&page_size=2&jid=same")
	require.EqualValues(t, 5, *p.Filtered)
	require.Len(t, p.Items, 2)
	require.Contains(t, string(p.Items[0]), `"offset":2,`)
	p = w.page("/api/dead-jobs?page=3&page_size=2&jid=same&next=" + *p.Next)
	require.Len(t, p.Items, 1)
	require.Contains(t, string(p.Items[0]), `"offset":0,`)
	require.Nil(t, p.Next)
}

func TestInvalidQueriesAreRefused(t *testing.T) {
	w := newWorld(t)
	for _, query := range []string{
		"page=0", "page=-1", "page=x", "page=1000000001", "page=1&page_size=501", "page=1&page_size=0", "page_size=10", "page=1&limit=5", "page=1&offset=5",
		"limit=x", "limit=0", "limit=501", "offset=-1", "offset=1.5", "from=abc", "to=NaN", "from=inf", "from=0x1p4", "to=999999999999999999", "to=", "queue=",
		"que=mail", "queue=a&queue=b", "next=1", "next=a,b", "next=99999999999999999999,1", "offset=1&next=1,1", "format=xml", "format=csv&page=1",
		"format=csv&limit=1", "text=%ff", "text=%zz", "a;b",
	} {
		t.Run(query, func(t *testing.T) {
			w.get("/api/retries?"+query).problem(t, http.StatusBadRequest, "bad_request")
		})
	}
	require.Contains(t, w.get("/api/retries?que=mail").body, "use page, page_size")
	require.Contains(t, w.get("/api/retries/x?page=1").body, "use offset")
	require.Contains(t, w.get("/api/overview?page=1").body, "takes none")
}

func TestAsOfIsOffsetOfStream(t *testing.T) {
	w := newWorld(t)
	for i := range int64(3) {
		w.source[wire.Retries] = append(w.source[wire.Retries],
			wire.Record{Stream: wire.Retries, Offset: i, Body: []byte(retry(fmt.Sprint("j", i), 2_000_000_000, "q", "C", "E"))})
	}
	w.source[wire.Journal] = make([]wire.Record, 9)
	for i := range w.source[wire.Journal] {
		w.source[wire.Journal][i] = wire.Record{Stream: wire.Journal, Offset: int64(i), Body: []byte("{}")}
	}
	defer w.catchUp()()
	p := w.page("/api/retries?page=1")
	require.EqualValues(t, 2, *p.AsOf)
	require.EqualValues(t, 3, p.Total)
}

// A call reads at most so many entries, and returns where to continue.
func TestSearchIsBounded(t *testing.T) {
	const n = 2500
	w := newWorld(t)
	w.server.SetMaxSearched(2000)
	w.server.SetMaxTally(time.Hour)
	w.fill(n)
	p := w.page("/api/retries?page=1&text=nothing-like-it")
	require.Empty(t, p.Items)
	require.EqualValues(t, 2000, *p.Searched)
	require.EqualValues(t, 0, *p.AtLeast)
	require.Nil(t, p.Filtered, "it is not known")
	require.Nil(t, p.PageCount)
	require.NotNil(t, p.Next)
	p = w.page("/api/retries?page=1&text=nothing-like-it&next=" + *p.Next)
	require.EqualValues(t, 500, *p.Searched)
	require.Nil(t, p.Next)

	p = w.page("/api/retries?page=1&page_size=10&error=Error1")
	require.Len(t, p.Items, 10)
	require.EqualValues(t, 2000, *p.Searched)
	require.Greater(t, *p.AtLeast, int64(600))

	found := 0
	target := "/api/retries?page=1&queue=rare"
	for target != "" {
		p = w.page(target)
		require.EqualValues(t, 1, *p.Filtered, "counts of a queue are exact, even if its entries are far away")
		found += len(p.Items)
		if target = ""; p.Next != nil {
			target = "/api/retries?page=1&queue=rare&next=" + *p.Next
		}
	}
	require.Equal(t, 1, found)
	require.Len(t, w.page(fmt.Sprintf("/api/retries?page=%d&page_size=500", n/500)).Items, 500)
}
