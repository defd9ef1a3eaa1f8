package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/wire"
)

// whats are the events of a job, the oldest first.
func (w *world) whats(jid string) []string {
	w.t.Helper()
	all := []string{}
	for _, e := range gjson.Get(w.get("/api/jobs/"+jid).body, "events").Array() {
		all = append([]string{strings.TrimSpace(e.Get("what").Str + " " + e.Get("set").Str + " " + e.Get("actor").Str)}, all...)
	}
	return all
}

// A job is changed, deleted, restored and sent. Its timeline has all of it, in order, with what was
// changed.
func TestTimelineHasWholeHistory(t *testing.T) {
	w := newWorld(t)
	epoch := w.journal(wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format, At: 1})
	was := strings.Replace(scheduled("j", 2_000_000_000), `"args":[1]`, `"args":[9007199254740993,{"password":"old"}]`, 1)
	is := strings.Replace(strings.Replace(was, `740993,{"password":"old"}`, `740995,{"password":"new"}`, 1), `"queue":"default"`, `"queue":"low"`, 1)
	first := w.add(wire.ScheduledJobs, was)
	announced := func(what string, offset int64) map[string]any {
		return wire.Announcement{What: what, Stream: wire.ScheduledJobs, Replaces: offset, JIDTag: "j"}.Headers(epoch)
	}
	second := w.fold(wire.Record{Stream: wire.ScheduledJobs, UserID: user, Headers: announced(wire.TypeChanged, first), Body: []byte(is)})
	w.journal(wire.JournalRecord{Type: wire.TypeChanged, Epoch: epoch, At: 10, Stream: wire.ScheduledJobs, Offset: first, JID: "j", Actor: "ann", Reason: "a typo", Entry: []byte(was), By: &second})
	w.journal(wire.JournalRecord{Type: wire.TypeDeleted, Epoch: epoch, At: 20, Stream: wire.ScheduledJobs, Offset: second, JID: "j", Actor: "bob"})
	third := w.fold(wire.Record{Stream: wire.ScheduledJobs, UserID: user, Headers: announced(wire.TypeUndone, second), Body: []byte(is)})
	w.journal(wire.JournalRecord{Type: wire.TypeUndone, Epoch: epoch, At: 30, Stream: wire.ScheduledJobs, Offset: second, JID: "j", Actor: "cyn", By: &third})
	dispatch := wire.Dispatch{Op: wire.OpTriggered, Stream: wire.ScheduledJobs, Offset: third, JIDTag: "j", Epoch: epoch, Seq: 9, Actor: "dan"}
	sent := `{"jid":"j","class":"Mail","queue":"low","args":[9007199254740995,{"password":"new"}]}`
	w.fold(wire.Record{Stream: wire.Journal, UserID: user, Headers: dispatch.Headers(), Body: []byte(sent), Time: time.Unix(40, 0)})
	w.journal(wire.JournalRecord{Type: wire.TypeNoted, Epoch: epoch, At: 50, Noted: &wire.Noted{Op: wire.NotedCancelled, Identity: "h:1:x", JID: "j"}, Actor: "eve"})

	w.unread = errors.New("the broker does not answer in time")
	body := w.get("/api/jobs/j").body
	require.False(t, gjson.Get(body, "job").Exists())
	require.False(t, gjson.Get(body, `events.#(what=="changed").changes`).Exists())
	w.unread = nil // the next request reads what this one could not
	gone, leave := context.WithCancel(t.Context())
	leave()
	body = w.send(request(http.MethodGet, "/api/jobs/j", "").WithContext(gone)).body
	require.Equal(t, sent, gjson.Get(body, "job").Raw, "others may wait for what is read for a client that has left")

	require.Equal(t, []string{"changed scheduled-jobs ann", "deleted scheduled-jobs bob", "undone scheduled-jobs cyn", "triggered scheduled-jobs dan", "cancelled  eve"}, w.whats("j"))
	body = w.get("/api/jobs/j").body
	changed := gjson.Get(body, `events.#(what=="changed")`)
	require.Equal(t, "a typo", changed.Get("reason").Str)
	require.Equal(t, "args queue", fmt.Sprint(changed.Get("changes.0.member").Str, " ", changed.Get("changes.1.member").Str))
	require.Equal(t, `[9007199254740993,{"password":"old"}]`, changed.Get("changes.0.was").Str)
	require.Equal(t, `[9007199254740995,{"password":"new"}]`, changed.Get("changes.0.is").Str)
	require.Equal(t, []string{`"default"`, `"low"`}, []string{changed.Get("changes.1.was").Str, changed.Get("changes.1.is").Str})
	require.Equal(t, "h:1:x", gjson.Get(body, `events.#(what=="cancelled").identity`).Str)
	require.Equal(t, sent, gjson.Get(body, "job").Raw, "no entry has the arguments any more: as they were sent")
	require.False(t, gjson.Get(body, "older_than_kept").Bool(), "the journal is kept from its beginning")

	w.journal(wire.JournalRecord{Type: wire.TypeChanged, Epoch: epoch, At: 60, Stream: wire.ScheduledJobs, Offset: 99, JID: "j", Entry: []byte(was), By: &third})
	w.streams[wire.ScheduledJobs] = nil
	require.Equal(t, gjson.Null, gjson.Get(w.get("/api/jobs/j").body, "events.0.changes").Type, "the stream has truncated its replacement")
}

// The job is shown as it was fired, whether its key was journaled before the fire or after it.
func TestTimelineHasJobEnqueuedUnderKey(t *testing.T) {
	for _, keyFirst := range []bool{true, false} {
		w := newWorld(t)
		epoch := w.journal(wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format, At: 1})
		announced := wire.Announcement{What: wire.OpEnqueued, Key: "k", Sum: "s"}.Headers(epoch)
		entry := w.fold(wire.Record{Stream: wire.ScheduledJobs, UserID: user, Headers: announced, Body: []byte(scheduled("j", 30))})
		key := func() {
			w.journal(wire.JournalRecord{Type: wire.OpEnqueued, Epoch: epoch, At: 30, Stream: wire.ScheduledJobs, Offset: entry, By: &entry, JID: "j", Actor: "ann",
				Enqueued: &wire.Enqueued{Key: "k", Sum: "s", JID: "j", At: 30}})
		}
		fire := func() {
			dispatch := wire.Dispatch{Op: wire.OpFired, Stream: wire.ScheduledJobs, Offset: entry, JIDTag: "j", Epoch: epoch, Seq: 9}
			w.fold(wire.Record{Stream: wire.Journal, UserID: user, Headers: dispatch.Headers(), Body: []byte(`{"jid":"j","class":"Mail","args":[1]}`), Time: time.Unix(31, 0)})
		}
		acts := []func(){fire, key}
		if keyFirst {
			acts = []func(){key, fire}
		}
		for _, act := range acts {
			act()
		}
		body := w.get("/api/jobs/j").body
		require.Equal(t, `{"jid":"j","class":"Mail","args":[1]}`, gjson.Get(body, "job").Raw, body)
		require.Len(t, gjson.Get(body, "events").Array(), 2, body)
	}
}

// A user who may not see hidden arguments sees neither their old nor their new values.
func TestTimelineHidesChangesOfHiddenArguments(t *testing.T) {
	pattern, err := httpapi.ParseHideArgs(httpapi.DefaultHideArgs)
	require.NoError(t, err)
	w := newSecured(t, func(c *httpapi.Config) { c.HideArgs = pattern })
	was := `{"type":"scheduled_job","jid":"j","scheduled_at":2000000000,"job":{"jid":"j","class":"Mail","args":[{"password":"old"}]}}`
	first := w.add(wire.ScheduledJobs, was)
	second := w.add(wire.ScheduledJobs, strings.Replace(was, "old", "new", 1))
	w.journal(wire.JournalRecord{Type: wire.TypeChanged, At: 10, Stream: wire.ScheduledJobs, Offset: first, JID: "j", Entry: []byte(was), By: &second})
	for who, seen := range map[string]string{"monitoring": `[{"password":"[hidden]"}]`, "management": `[{"password":"old"}]`} {
		require.Equal(t, seen, gjson.Get(w.as(who, http.MethodGet, "/api/jobs/j", "").body, "events.0.changes.0.was").Str, who)
	}
}

// The timeline says that earlier history is missing only for a job that may have one.
func TestTimelineSaysWhenHistoryMayBeMissing(t *testing.T) {
	const begun, made, ended = 1_699_930_000, 1_699_990_000, 1_699_999_000
	w := newWorld(t)
	w.offsets[wire.Journal], w.offsets[wire.JobMetrics] = 40, 40 // the streams have truncated their beginning
	epoch := w.journal(wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format, At: begun})
	ran := func(jid string, at, attempt int) {
		w.add(wire.JobMetrics, fmt.Sprintf(`{"type":"job_metric","timestamp":%d,"job_class":"C","queue":"q","status":"success","worker_identity":"w","jid":%q,"attempt":%d}`, at, jid, attempt))
	}
	ran("other", begun, 1)
	waits := func(jid string, made int) {
		w.add(wire.Retries, strings.Replace(retry(jid, 2_000_000_000, "q", "C", "E"), `"args":[]`, fmt.Sprintf(`"args":[],"enqueued_at":%d`, made), 1))
	}
	sent := func(jid string, made int) {
		d := wire.Dispatch{Op: wire.OpFired, Stream: wire.ScheduledJobs, JIDTag: jid, Epoch: epoch, Seq: w.offsets[wire.ScheduledJobs] + 1}
		d.Offset = w.add(wire.ScheduledJobs, scheduled(jid, ended))
		body := fmt.Sprintf(`{"jid":%q,"class":"C","queue":"q","args":[],"created_at":%d}`, jid, made)
		w.fold(wire.Record{Stream: wire.Journal, UserID: user, Headers: d.Headers(), Body: []byte(body), Time: time.Unix(ended, 0)})
	}
	waits("old", 1_600_000_000)
	waits("new", made)
	sent("sent-old", 1_600_000_000)
	sent("sent-new", made)
	sent("done-new", made)
	ran("done-new", ended, 1)
	ran("published", ended, 1) // by a client, to its queue: the journal has nothing of it
	ran("published-third", ended, 3)
	want := map[string]bool{"old": true, "new": false, "sent-old": true, "sent-new": false, "done-new": false, "published": false, "published-third": true}
	for jid, older := range want {
		require.Equal(t, older, gjson.Get(w.get("/api/jobs/"+jid).body, "older_than_kept").Bool(), jid)
	}
}

func TestTimelineOfRunningJob(t *testing.T) {
	w := newWorld(t)
	w.add(wire.Heartbeats, beat("h:1:x", `,"busy":1,"work":[{"jid":"j","class":"C","queue":"queue.low","started_at":1699999000}]`))
	require.JSONEq(t, `{"jid":"j","entries":[],"events":[],"older_than_kept":false,
		"running":[{"identity":"h:1:x","state":"live","heard_at":1700000000,"jid":"j","class":"C","queue":"low","started_at":1699999000,"usual_ms":null}]}`, w.get("/api/jobs/j").body)
	w.add(wire.JobMetrics, `{"type":"job_metric","timestamp":1699999500,"job_class":"C","queue":"low","status":"success","worker_identity":"h:1:x","jid":"j"}`)
	require.False(t, gjson.Get(w.get("/api/jobs/j").body, "running").Exists(), "a report of the process before the end of the run is outdated")
}
