package httpapi_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

type rejected struct {
	Stream    string
	Offset    int64
	Reason    string
	Size      int64
	Body      string
	Encoding  string
	Truncated bool
}

func (w *world) rejected(target string) (all []rejected) {
	w.t.Helper()
	a := w.get(target)
	require.Equal(w.t, http.StatusOK, a.StatusCode, a.body)
	require.NoError(w.t, json.Unmarshal([]byte(a.body), &all), a.body)
	return all
}

func (w *world) rejectedOne(target string) (one rejected) {
	w.t.Helper()
	a := w.get(target)
	require.Equal(w.t, http.StatusOK, a.StatusCode, a.body)
	require.NoError(w.t, json.Unmarshal([]byte(a.body), &one))
	return one
}

func TestRejectedRecords(t *testing.T) {
	w := newWorld(t)
	require.Equal(t, "[]\n", w.get("/api/rejected").body)
	for i := range 3 {
		w.add(wire.Retries, fmt.Sprint("garbage ", i))
		w.add(wire.ScheduledJobs, "\xff\xfe")
	}
	all := w.rejected("/api/rejected")
	require.Len(t, all, 6)
	require.Equal(t, rejected{Stream: wire.Retries, Offset: 2, Reason: "record is not valid JSON", Size: 9, Body: "garbage 2", Encoding: "utf-8"}, all[0])
	require.Equal(t, "base64", all[3].Encoding)
	require.Equal(t, base64.StdEncoding.EncodeToString([]byte("\xff\xfe")), all[3].Body)

	require.Equal(t, all[2:4], w.rejected("/api/rejected?offset=2&limit=2"))
	require.Equal(t, all[3:], w.rejected("/api/rejected?stream=scheduled_jobs"))
	require.Empty(t, w.rejected("/api/rejected?stream=nope"))
	p := w.page("/api/rejected?page=2&page_size=4")
	require.Len(t, p.Items, 2)
	require.EqualValues(t, 6, p.Total)
	require.EqualValues(t, 2, *p.PageCount)
	p = w.page("/api/rejected?page=1&stream=retries")
	require.EqualValues(t, 6, p.Total)
	require.EqualValues(t, 3, *p.Filtered)

	require.Equal(t, all[0], w.rejectedOne("/api/rejected/retries/2"))
	for _, path := range []string{"/api/rejected/retries/3", "/api/rejected/nope/1", "/api/rejected/job_journal/0"} {
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			w.do(method, path, "").problem(t, http.StatusNotFound, "not_found")
		}
	}
	for _, path := range []string{"/api/rejected/retries/x", "/api/rejected/retries/1?offset=2", "/api/rejected?x=1", "/api/rejected?page=0", "/api/rejected/retries/-1", "/api/rejected/%ff/1"} {
		w.get(path).problem(t, http.StatusBadRequest, "bad_request")
	}
	require.Empty(t, w.commands)
}

func TestLargeRejectedRecord(t *testing.T) {
	w := newWorld(t)
	body := strings.Repeat("é", 50_000)
	w.add(wire.Retries, body)
	listed := w.rejected("/api/rejected")[0]
	require.True(t, listed.Truncated)
	require.Equal(t, strings.Repeat("é", 512), listed.Body)
	one := w.rejectedOne("/api/rejected/retries/0")
	require.Equal(t, body, one.Body)
	require.False(t, one.Truncated)

	w.streams[wire.Retries] = nil // the stream has truncated it
	one = w.rejectedOne("/api/rejected/retries/0")
	require.True(t, one.Truncated)
	require.Equal(t, strings.Repeat("é", 32<<10), one.Body)
	require.EqualValues(t, 100_000, one.Size)
}

func TestPreviewEndsBetweenCharacters(t *testing.T) {
	w := newWorld(t)
	w.add(wire.Retries, "x"+strings.Repeat("é", 1000))
	w.add(wire.Retries, "x"+strings.Repeat("\xe9", 2000))
	all := w.rejected("/api/rejected")
	require.Equal(t, "base64", all[0].Encoding)
	require.Equal(t, "utf-8", all[1].Encoding)
	require.Equal(t, "x"+strings.Repeat("é", 511), all[1].Body)
}

func TestDismiss(t *testing.T) {
	w := newWorld(t)
	w.add(wire.Heartbeats, "garbage")
	require.Equal(t, http.StatusNoContent, w.do(http.MethodDelete, "/api/rejected/heartbeats/0", `{"reason":"seen"}`).StatusCode)
	c := w.commands[0]
	require.Equal(t, wire.CommandDismiss, c.Command)
	require.Equal(t, wire.Heartbeats, c.Stream)
	require.EqualValues(t, 0, *c.Offset)
	require.Equal(t, "seen", c.Reason)
	w.do(http.MethodDelete, "/api/rejected/heartbeats/0", `{"x":1}`).problem(t, http.StatusBadRequest, "bad_request")
	w.reply = wire.Reply{Status: 503, Error: "no_leader", Reason: "there is no leader"}
	w.do(http.MethodDelete, "/api/rejected/heartbeats/0", "").problem(t, http.StatusServiceUnavailable, "no_leader")
}

func TestResubmit(t *testing.T) {
	w := newWorld(t)
	epoch := w.journal(wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format})
	job := `{"jid":"j","class":"Mail","queue":"mail","args":[1e400, 9007199254740993]}`
	for i, c := range []struct{ stream, body, exchange, key, id, class string }{
		{wire.ScheduledJobs, scheduled("a", 2_000_000_000), "", wire.ScheduledJobs, "a", "Mail"},
		{wire.Retries, retry("b", 2_000_000_000, "q", "C", "E"), "", wire.Retries, "b", "C"},
		{wire.DeadJobs, `{"died_at":1,"job":` + job + `}`, "", wire.DeadJobs, "j", "Mail"},
		{wire.Heartbeats, `{"identity":"h","beat":1}`, "", wire.Heartbeats, "", ""},
		{wire.JobMetrics, `[{"job_class":"C","status":"success","timestamp":1}]`, "", wire.JobMetrics, "", ""},
		{wire.Gated, job, "", wire.Gated, "j", "Mail"},
		{wire.Unrouted, job, wire.ExchangeRoute, "mail", "j", "Mail"},
		{wire.DeadLetters, job, "", wire.DeadLetters, "j", "Mail"},
		{wire.DeadLetters, dead("d", 1_000_000_000), "", wire.DeadLetters, "", ""},
	} {
		t.Run(c.stream, func(t *testing.T) {
			w.commands, w.published = nil, nil
			var offset int64
			if c.stream == wire.Unrouted || c.stream == wire.DeadLetters { // classic queues: the leader journals what it found there
				offset = w.journal(wire.JournalRecord{Type: wire.TypeRejected, Epoch: epoch, Queue: c.stream, Reason: "no job", Body: []byte("x"), Count: 1})
			} else {
				offset = w.add(c.stream, "garbage")
			}
			path := fmt.Sprintf("/api/rejected/%s/%d/resubmit", c.stream, offset)
			require.Equal(t, http.StatusNoContent, w.do(http.MethodPost, path, c.body).StatusCode, i)
			m := w.published[0]
			require.False(t, m.Timestamp.IsZero())
			require.Equal(t, c.body, string(m.Body))
			require.Equal(t, []string{c.exchange, c.key, c.id, c.class}, []string{m.Exchange, m.Key, m.MessageID, m.Type})
			require.Empty(t, m.Headers)
			require.Equal(t, wire.CommandDismiss, w.commands[0].Command)
			require.Equal(t, c.stream, w.commands[0].Stream)
			require.Equal(t, offset, *w.commands[0].Offset)

			w.commands, w.published = nil, nil
			w.do(http.MethodPost, path, `{"still":"garbage"}`).problem(t, http.StatusBadRequest, "bad_request")
			w.do(http.MethodPost, path, "").problem(t, http.StatusBadRequest, "bad_request")
			require.Empty(t, w.commands)
			require.Empty(t, w.published)
		})
	}
}

// A record that a client was not trusted to write must not be written under Millrace's own name.
func TestResubmitRefusesRecordsOfMillrace(t *testing.T) {
	w := newWorld(t)
	w.add(wire.Retries, `{"type":"barrier","epoch":99}`)
	w.do(http.MethodPost, "/api/rejected/retries/0/resubmit", `{"type":"barrier","epoch":99}`).problem(t, http.StatusBadRequest, "bad_request")
	w.add(wire.Journal, `{"type":"released"}`)
	w.do(http.MethodPost, "/api/rejected/job_journal/0/resubmit", `{"type":"released"}`).problem(t, http.StatusConflict, "conflict")
	w.do(http.MethodPost, "/api/rejected/retries/1/resubmit", retry("a", 1, "q", "C", "E")).problem(t, http.StatusNotFound, "not_found")
	require.Empty(t, w.published)
	require.Empty(t, w.commands)
}

func TestFailedResubmit(t *testing.T) {
	w := newWorld(t)
	w.add(wire.Retries, "garbage")
	body := retry("a", 1, "q", "C", "E")
	w.publish = errors.New("nacked")
	w.do(http.MethodPost, "/api/rejected/retries/0/resubmit", body).problem(t, http.StatusServiceUnavailable, "service_unavailable")
	require.Contains(t, w.log.String(), "nacked")
	w.publish = fmt.Errorf("confirm: %w", context.DeadlineExceeded)
	w.do(http.MethodPost, "/api/rejected/retries/0/resubmit", body).problem(t, http.StatusGatewayTimeout, "outcome_unknown")
	require.Empty(t, w.commands, "a record that was not published stays listed")

	w.publish, w.reply = nil, wire.Reply{Status: 503, Error: "no_leader", Reason: "there is no leader"}
	p := w.do(http.MethodPost, "/api/rejected/retries/0/resubmit", body).problem(t, http.StatusServiceUnavailable, "no_leader")
	require.Contains(t, p.Reason, "was published")

	published := len(w.published)
	r := request(http.MethodPost, "/api/rejected/retries/0/resubmit", body)
	r.Header.Set("X-Reason", strings.Repeat("x", 5000))
	w.send(r).problem(t, http.StatusBadRequest, "bad_request")
	require.Len(t, w.published, published, "a refused record was not published")
}
