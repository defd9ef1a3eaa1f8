package metrics

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// reports is a store with the folded reports of workers.
type reports struct {
	*Metrics
	*Reader
	t     *testing.T
	store *view.Store
	now   time.Time
	next  int64
}

func newReports(t *testing.T, bounds RunBounds) *reports {
	r := &reports{t: t, now: time.Unix(1_700_000_000, 0), next: 1}
	var err error
	r.store, err = view.Open(view.Config{Identity: "test", Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.store.Close()) })
	r.restart(bounds)
	return r
}

func (r *reports) restart(bounds RunBounds) {
	var err error
	r.Metrics, err = New(r.store, func() time.Time { return r.now }, "millrace")
	require.NoError(r.t, err)
	r.Reader = r.Metrics.Reader()
	r.Keep(bounds)
}

// report folds messages of one run each, and writes them.
func (r *reports) report(n int, record func(i int) string) {
	r.t.Helper()
	require.NoError(r.t, r.store.Update(func(tx *view.Tx) error {
		for i := range n {
			_, refused, err := r.Fold(tx, &wire.Record{Stream: wire.JobMetrics, Offset: r.next, Time: r.now, Body: []byte(record(i))})
			if require.Nil(r.t, refused); err != nil {
				return err
			}
			r.next++
		}
		r.now = r.now.Add(2 * time.Second)
		return r.Commit(tx)
	}))
}

func metricOf(jid, class, status string, at time.Time) string {
	return fmt.Sprintf(`{"type":"job_metric","timestamp":%d,"job_class":%q,"queue":"q","duration_ms":12,"status":%q,"worker_identity":"w","jid":%q,"attempt":1,"error_class":"E"}`,
		at.Unix(), class, status, jid)
}

func (r *reports) jids(q RunQuery) (jids []string, f RunsFound) {
	r.t.Helper()
	if q.Limit == 0 {
		q.Limit = 100_000
	}
	if q.Most == 0 {
		q.Most = 1_000_000
	}
	f, err := r.Runs(q)
	require.NoError(r.t, err)
	for i := range f.Runs {
		jids = append(jids, f.Runs[i].JID)
	}
	return jids, f
}

// Runs are found by each condition, the newest first, before and after they are written, and after
// a restart.
func TestRunsAreFound(t *testing.T) {
	r := newReports(t, RunBounds{})
	begin := r.now
	var want []string
	for batch := range 4 {
		r.report(200, func(i int) string {
			n := batch*200 + i
			want = append([]string{fmt.Sprint("j", n)}, want...)
			return metricOf(fmt.Sprint("j", n), fmt.Sprint("C", n%3), []string{"success", "failed", "dead"}[n%3], begin.Add(time.Duration(n)*time.Second))
		})
	}
	body := "[" + metricOf("a", "D", "expired", begin) + "," + metricOf("b", "D", "discarded", begin) + "]"
	r.report(1, func(int) string { return body })
	want = append([]string{"b", "a"}, want...)
	for range 2 {
		jids, f := r.jids(RunQuery{})
		require.Equal(t, want, jids)
		require.Equal(t, []any{802, false, (*RunPlace)(nil)}, []any{f.Searched, f.Older, f.Next})
		require.Equal(t, Run{Offset: 800, At: begin.Add(799 * time.Second).UTC(), JID: "j799", Class: "C1", Queue: "q", Status: "failed", Duration: 12 * time.Millisecond, Wait: -1,
			Attempt: 1, Worker: "w", Error: "E"}, f.Runs[2])
		for expect, q := range map[string]RunQuery{
			"[j5]": {JID: "j5"}, "[]": {JID: "unknown"}, "[b a]": {Class: "D"}, "[a]": {Status: []string{"expired"}},
			"[j799 j798 j796]": {From: begin.Add(796 * time.Second), Status: []string{"success", "failed"}, To: begin.Add(time.Hour), Limit: 3},
			"[b a j1 j0]":      {To: begin.Add(2 * time.Second)},
		} {
			jids, _ := r.jids(q)
			require.Equal(t, expect, fmt.Sprint(append([]string{}, jids...)))
		}
		jids, f = r.jids(RunQuery{JID: "j5"})
		require.LessOrEqual(t, f.Searched, 2*blockRuns, "blocks that cannot have the jid are skipped")
		require.Len(t, jids, 1)
		var all []string
		for q := (RunQuery{Limit: 100, Most: 300}); ; { // a page at a time
			jids, f := r.jids(q)
			all = append(all, jids...)
			if q.Behind = f.Next; q.Behind == nil {
				break
			}
		}
		require.Equal(t, want, all)
		r.restart(RunBounds{})
	}
	jids, f := r.jids(RunQuery{Queue: "other"})
	require.Empty(t, jids)
	require.Nil(t, f.Next)
	r.report(1, func(int) string { return metricOf("after", "C", "success", begin) })
	jids, _ = r.jids(RunQuery{Limit: 2})
	require.Equal(t, []string{"after", "b"}, jids, "an unfinished block gets more runs")
}

// The number, the bytes and the age of the kept runs are bounded.
func TestRunsAreBounded(t *testing.T) {
	for name, bounds := range map[string]RunBounds{"runs": {Runs: 1000}, "bytes": {Bytes: 64 << 10}, "age": {Age: time.Minute}} {
		r := newReports(t, bounds)
		for batch := range 60 {
			r.report(50, func(i int) string { return metricOf(fmt.Sprint("j", batch*50+i), "C", "success", r.now) })
		}
		jids, f := r.jids(RunQuery{})
		require.Less(t, len(jids), 2200, name)
		require.Greater(t, len(jids), 500, name)
		require.Equal(t, "j2999", jids[0])
		require.True(t, f.Older, name)
		_, f = r.jids(RunQuery{From: r.now.Add(-10 * time.Second)})
		require.False(t, f.Older, name)
		lines, blocks := 0, 0
		for table, n := range map[byte]*int{tableLines: &lines, tableRuns: &blocks} {
			require.NoError(t, r.store.Scan(keyRows(table), keyRows(table+1), false, func(_, _ []byte) bool { *n++; return true }))
		}
		require.Equal(t, lines, blocks)
		require.LessOrEqual(t, lines, len(jids)/blockRuns+2)
	}
}

// A stream that was created again begins at offset 0. Its runs still come after the old ones.
func TestRunsOfRecreatedStream(t *testing.T) {
	r := newReports(t, RunBounds{})
	r.next = 50
	r.report(3, func(i int) string { return metricOf(fmt.Sprint("old", i), "C", "success", r.now) })
	require.NoError(t, r.store.Update(func(tx *view.Tx) error { return r.Forget(tx, wire.JobMetrics) }))
	r.next = 1
	r.report(3, func(i int) string { return metricOf(fmt.Sprint("new", i), "C", "success", r.now) })
	jids, f := r.jids(RunQuery{Limit: 4})
	require.Equal(t, []string{"new2", "new1", "new0", "old2"}, jids)
	jids, f = r.jids(RunQuery{Limit: 4, Behind: f.Next})
	require.Equal(t, []string{"old1", "old0"}, jids)
	require.True(t, f.Older, "retention had deleted the stream's beginning when it was first read")
}

func TestDamagedRuns(t *testing.T) {
	_, err := decodeLine([]byte{1})
	require.Error(t, err)
	for _, raw := range []string{"\x01", "\x01\x01\x01\x01\x01\x01", "\x01\x01\x01\x01\x01\x01\x00\x09"} {
		_, err = decodeRuns([]byte(raw))
		require.Error(t, err)
	}
	r := newReports(t, RunBounds{})
	r.report(300, func(int) string { return metricOf("j", "C", "success", r.now) })
	require.NoError(t, r.store.Update(func(tx *view.Tx) error { return tx.Set(keyStart(tableRuns, 0), []byte{1}) }))
	_, err = r.Runs(RunQuery{Limit: 500, Most: 500})
	require.Error(t, err)
	for _, key := range [][]byte{keyRows(tableKept), keyStart(tableLines, 1)} {
		require.NoError(t, r.store.Update(func(tx *view.Tx) error { return tx.Set(key, []byte("x")) }))
		_, err := New(r.store, nil)
		require.Error(t, err)
		require.NoError(t, r.store.Update(func(tx *view.Tx) error { return tx.Set(keyRows(tableKept), []byte(`{"next":1}`)) }))
	}
	require.Empty(t, statusOf(9))
}
