package feed_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/tracker/feed"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const user = "millrace"

// world folds records into a tracker that has a feed.
type world struct {
	t       *testing.T
	store   *view.Store
	entries *tracker.Entries
	feed    *feed.Feed
	offset  int64
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, feed: feed.New(slog.New(slog.DiscardHandler))}
	var err error
	w.store, err = view.Open(view.Config{Schema: tracker.Schema, Identity: "test", Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.store.Close()) })
	w.entries, err = tracker.NewEntries(w.store, user)
	require.NoError(t, err)
	w.entries.SetObserver(w.feed)
	return w
}

func (w *world) fold(r wire.Record) {
	w.t.Helper()
	require.NoError(w.t, w.try(r, nil))
}

func (w *world) try(r wire.Record, fails error) error {
	r.Offset = w.offset
	w.offset++
	return w.store.Update(func(tx *view.Tx) error {
		if err := w.entries.Fold(tx, &r); err != nil {
			return err
		}
		if fails != nil {
			return fails
		}
		return w.entries.Commit(tx)
	})
}

func (w *world) whats(from int64) (all []string) {
	events, _, _ := w.feed.Since(from, 100)
	for _, e := range events {
		all = append(all, e.What+" "+e.JID)
	}
	return all
}

func retry(jid string) []byte {
	return fmt.Appendf(nil, `{"type":"retry","jid":%q,"retry_at":2e9,"retry_count":1,"error_class":"E","error_message":"m","job":{"jid":%q,"class":"C","queue":"q","args":[]}}`, jid, jid)
}

func TestFoldedRecordsAreEvents(t *testing.T) {
	w := newWorld(t)
	w.fold(wire.Record{Stream: wire.Retries, Body: retry("before")}) // the feed keeps no events yet
	require.Zero(t, w.feed.Next())

	w.feed.Keep(time.Now().Add(time.Hour))
	now := time.Now()
	w.fold(wire.Record{Stream: wire.Retries, Body: retry("a"), Time: now})
	w.fold(wire.Record{Stream: wire.Retries, Body: retry("a"), UserID: user, Headers: map[string]any{wire.HeaderReplaces: int64(1)}})
	w.fold(wire.Record{Stream: wire.Retries, Body: []byte("garbage")})
	w.fold(wire.Record{Stream: wire.Retries, Body: retry("old"), Time: now.Add(-time.Hour)})
	dispatch := wire.Dispatch{Op: wire.OpRetried, Stream: wire.Retries, Offset: 1, JIDTag: "a", Actor: "ann"}
	job := []byte(`{"jid":"a","class":"C","queue":"q","args":[]}`)
	w.fold(wire.Record{Stream: wire.Journal, Headers: dispatch.Headers(), Body: job}) // from any user
	w.fold(wire.Record{Stream: wire.Journal, UserID: user, Headers: dispatch.Headers(), Body: job})
	w.fold(wire.Record{Stream: wire.Journal, UserID: user, Body: []byte(`{"type":"deleted","at":7,"jid":"b","actor":"bob","stream":"retries"}`)})
	w.fold(wire.Record{Stream: wire.Journal, UserID: user, Body: []byte(`{"type":"confirmed"}`)})
	w.fold(wire.Record{Stream: wire.JobMetrics, Body: []byte(`[{"type":"metric","timestamp":1700000000,"job_class":"C","queue":"q","duration_ms":1.5,"status":"failed","jid":"a","error_class":"E","worker_identity":"w"},
		{"type":"metric","timestamp":1700000000,"job_class":"C","queue":"q","status":"success","jid":"c"}]`)})
	w.fold(wire.Record{Stream: wire.JobMetrics, Body: []byte("garbage")})

	events, next, missed := w.feed.Since(0, 100)
	require.Zero(t, missed)
	require.EqualValues(t, 5, next)
	require.Equal(t, []feed.Event{
		{At: wire.Seconds(now), What: "retry", JID: "a", Class: "C", Queue: "q", ErrorClass: "E"},
		{At: events[1].At, What: "retried", JID: "a", Class: "C", Queue: "q", Actor: "ann"},
		{At: 7, What: "deleted", JID: "b", Actor: "bob"},
		{At: 1_700_000_000, What: "failed", JID: "a", Class: "C", Queue: "q", ErrorClass: "E", DurationMS: 1.5, Worker: "w"},
		{At: 1_700_000_000, What: "success", JID: "c", Class: "C", Queue: "q"},
	}, events)
	require.Equal(t, []string{"failed a", "success c"}, w.whats(3))
	require.Empty(t, w.whats(5))
	require.Empty(t, w.whats(99), "the number is of another run")
}

func TestOnlyNewestEventsAreKept(t *testing.T) {
	w := newWorld(t)
	w.feed.Keep(time.Now().Add(time.Hour))
	require.Error(t, w.try(wire.Record{Stream: wire.Retries, Body: retry("never written")}, fmt.Errorf("no")))
	for i := range 5010 {
		w.fold(wire.Record{Stream: wire.Retries, Body: retry(fmt.Sprint(i))})
	}
	events, next, missed := w.feed.Since(3, 10_000)
	require.EqualValues(t, []int64{5010, 7}, []int64{next, missed})
	require.Len(t, events, 5000)
	require.Equal(t, "10", events[0].JID)
	events, _, missed = w.feed.Since(5000, 4)
	require.EqualValues(t, 6, missed)
	require.Equal(t, "5006", events[0].JID)
	w.feed.Keep(time.Now().Add(-time.Second))
	w.fold(wire.Record{Stream: wire.Retries, Body: retry("x")})
	require.EqualValues(t, 5010, w.feed.Next())
}
