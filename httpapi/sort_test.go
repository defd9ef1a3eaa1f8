package httpapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// failedRetry is a retry that failed some seconds ago.
func failedRetry(jid string, at float64, queue, class, errorClass string, attempt int, failedAt float64) string {
	return fmt.Sprintf(`{"type":"retry","jid":%q,"retry_at":%f,"retry_count":%d,"failed_at":%f,"error_class":%q,"job":{"class":%q,"queue":%q,"args":[]}}`,
		jid, at, attempt, failedAt, errorClass, class, queue)
}

func TestListsAreSortedByTheServer(t *testing.T) {
	w := newWorld(t)
	w.add(wire.Retries, failedRetry("a", 2_000_000_001, "mail", "Welcome", "Timeout", 3, 1_700_000_300))
	w.add(wire.Retries, failedRetry("b", 2_000_000_002, "mail", "Bye", "Refused", 1, 1_700_000_100))
	w.add(wire.Retries, failedRetry("c", 2_000_000_003, "default", "Bye", "Timeout", 2, 1_700_000_200))
	w.add(wire.Retries, `{"type":"retry","jid":"d","retry_at":2000000004,"job":{"class":"Bye","queue":"zoo","args":[]}}`)
	for sort, want := range map[string]string{
		"at": "abcd", "-at": "dcba", "class": "bcda", "-class": "abcd", "queue": "cabd", "-queue": "dabc", "attempt": "dbca", "-attempt": "acbd",
		"error": "bacd", "-error": "acbd", "failed_at": "bcad", "-failed_at": "acbd",
	} {
		t.Run(sort, func(t *testing.T) {
			require.Equal(t, want, strings.Join(w.jids("/api/retries?sort="+sort), ""), "jobs with the same key keep their order, those without one are the last")
			p := w.page("/api/retries?page=2&page_size=3&sort=" + sort)
			require.Equal(t, want[3:], strings.Join(jids(t, p.Items), ""))
			require.EqualValues(t, 4, *p.Filtered)
			require.EqualValues(t, 2, *p.PageCount)
			require.NotNil(t, p.AsOf)
			require.Nil(t, p.Next)
			require.Empty(t, w.page("/api/retries?page=3&page_size=3&sort="+sort).Items)
		})
	}
	require.Equal(t, []string{"c", "b"}, w.jids("/api/retries?sort=-at&offset=1&limit=2"))
	for query, want := range map[string]string{
		"queue=mail&sort=-at": "ba", "class=Bye&sort=-attempt": "cbd", "error=Timeout&sort=-at": "ca", "text=refused&sort=error": "b", "jid=c&sort=-at": "c", "jid=none&sort=class": "",
		"from=2000000002&to=2000000004&sort=-at": "cb",
	} {
		require.Equal(t, want, strings.Join(w.jids("/api/retries?"+query), ""), query)
		p := w.page("/api/retries?page=1&" + query)
		require.EqualValues(t, len(want), *p.Filtered, query)
	}
}

func TestEachListCanBeReversed(t *testing.T) {
	w := newWorld(t)
	for i := range 3 {
		w.add(wire.ScheduledJobs, scheduled(fmt.Sprint("s", i), float64(2_000_000_000+i)))
		w.add(wire.DeadJobs, dead("same", float64(1_000_000_000+i)))
		w.add(wire.Gated, fmt.Sprintf(`{"jid":"g%d","class":"C","queue":"q","args":[]}`, i))
	}
	require.Equal(t, []string{"s2", "s1", "s0"}, w.jids("/api/scheduled-jobs?sort=-at"))
	died := func(query string) (at []string) {
		for _, i := range w.page("/api/dead-jobs?page=1" + query).Items {
			at = append(at, string(i[strings.Index(string(i), `"at":`)+5:])[:10])
		}
		return at
	}
	require.Equal(t, []string{"1000000000", "1000000001", "1000000002"}, died("&sort=at"))
	require.Equal(t, died("&sort=at"), died("&sort=at&jid=same"))
	newest := died("")
	slices.Reverse(newest)
	require.Equal(t, newest, died("&sort=at"))
	require.Equal(t, died(""), died("&sort=-at"), "the order that the list has")
	require.NotNil(t, w.page("/api/dead-jobs?page=1&page_size=2&sort=-at").Next)
	gated := w.jids("/api/gated-jobs")
	slices.Reverse(gated)
	require.Equal(t, gated, w.jids("/api/gated-jobs?sort=-at"))
}

func TestInvalidSortingIsRefused(t *testing.T) {
	w := newWorld(t)
	for target, reason := range map[string]string{
		"scheduled-jobs?sort=due":             `parameter sort is \"due\": it must be one of at, class, queue, attempt, with a - in front for the reverse order`,
		"scheduled-jobs?sort=error":           "it must be one of at, class, queue, attempt,",
		"retries?sort=-":                      "it must be one of at, class, queue, attempt, error, failed_at,",
		"dead-jobs?sort=-failed_at":           "it must be one of at, class, queue, attempt, error,",
		"gated-jobs?sort=attempt":             "it must be one of at, class, queue,",
		"retries?sort=--at":                   "it must be one of",
		"retries?sort=-at&next=1,1":           "parameter next does not go with sort: use page or offset",
		"retries?sort=-at&format=csv":         "parameter sort does not go with format, which gives the whole list",
		"retries?sort=at&format=ndjson":       "parameter sort does not go with format",
		"retries?sort=at&sort=-at":            "parameter sort is given 2 times",
		"retries?page=1&sort=-at&page_size=0": "parameter page_size",
	} {
		a := w.get("/api/" + target)
		a.problem(t, http.StatusBadRequest, "bad_request")
		require.Contains(t, a.body, reason, target)
	}
}

// Records of over 64 KiB stay in their stream: their error is not known.
func TestLargeRecordsAreSortedLast(t *testing.T) {
	w := newWorld(t)
	w.add(wire.Retries, large("large", 2_000_000_000))
	w.add(wire.Retries, retry("small", 2_000_000_001, "q", "C", "E"))
	require.Equal(t, []string{"small", "large"}, w.jids("/api/retries?sort=error"))
	require.Equal(t, []string{"small", "large"}, w.jids("/api/retries?sort=-error"))
	require.Equal(t, []string{"large", "small"}, w.jids("/api/retries?sort=-attempt"))
}

// A call sorts at most so many entries, or fewer if a filter by time leaves fewer.
func TestTooLongListIsNotSorted(t *testing.T) {
	const n = 2500
	w := newWorld(t)
	w.server.SetMaxSearched(2000)
	w.fill(n)
	a := w.get("/api/retries?sort=-at")
	a.problem(t, http.StatusBadRequest, "bad_request")
	require.Contains(t, a.body, "at most 2000 entries are, so narrow it down with from and to")
	p := w.page("/api/retries?page=1&sort=-at&from=2000000600")
	require.EqualValues(t, n-600, *p.Filtered)
	require.EqualValues(t, n-600, *p.Searched)
}

// A sorted list that took long is cached for a while. It does not contain jobs that were deleted
// since.
func TestSortedListOmitsDeletedJobs(t *testing.T) {
	w := newWorld(t)
	w.fill(20_000)
	first := w.jids("/api/retries?sort=-attempt&limit=3")
	w.journal(wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format})
	w.journal(wire.JournalRecord{Type: wire.TypeDeleted, At: 5, Stream: wire.Retries, Offset: 0, JID: first[0], Actor: "ann"})
	require.NotContains(t, w.jids("/api/retries?sort=-attempt&limit=3"), first[0])
}
