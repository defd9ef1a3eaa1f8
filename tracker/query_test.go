package tracker_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// queried is entries on a store in memory, filled by folding records.
type queried struct {
	*tracker.Entries
	t     *testing.T
	store *view.Store
}

func newQueried(t *testing.T) *queried {
	store, err := view.Open(view.Config{Schema: tracker.Schema, Identity: "test", Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	entries, err := tracker.NewEntries(store, "millrace")
	require.NoError(t, err)
	return &queried{entries, t, store}
}

func (q *queried) fold(stream string, offset int64, body string) {
	require.NoError(q.t, q.store.Update(func(tx *view.Tx) error {
		if err := q.Fold(tx, &wire.Record{Stream: stream, Offset: offset, UserID: "millrace", Body: []byte(body)}); err != nil {
			return err
		}
		return q.Commit(tx)
	}))
}

func (q *queried) rows(stream string, behind tracker.Cursor) (offsets []int64) {
	require.NoError(q.t, q.List(stream, behind, func(r tracker.Row) bool {
		offsets = append(offsets, r.Offset)
		return true
	}))
	return offsets
}

func TestSkipFollowsListOrder(t *testing.T) {
	q := newQueried(t)
	for i := range int64(10) {
		q.fold(wire.Retries, i, fmt.Sprintf(`{"jid":"r%d","retry_at":%d,"job":{"class":"C"}}`, i, 2_000_000_000+i*7%10))
		q.fold(wire.DeadJobs, i, fmt.Sprintf(`{"jid":"d%d","died_at":%d,"job":{"class":"C"}}`, i, 1_000_000_000+i*7%10))
	}
	for _, stream := range []string{wire.Retries, wire.DeadJobs} {
		all := q.rows(stream, tracker.Cursor{})
		require.Len(t, all, 10)
		for n := range int64(13) {
			at, err := q.Skip(stream, tracker.Cursor{}, n)
			require.NoError(t, err)
			require.Equal(t, n > 0, at.Set)
			require.ElementsMatch(t, all[min(n, 10):], q.rows(stream, at))
			further, err := q.Skip(stream, at, 2)
			require.NoError(t, err)
			require.ElementsMatch(t, all[min(n+2, 10):], q.rows(stream, further))
		}
	}
	empty, err := q.Skip(wire.ScheduledJobs, tracker.Cursor{}, 5)
	require.NoError(t, err)
	require.False(t, empty.Set)
}

func TestOverdueUsesOldestFireableEntry(t *testing.T) {
	q := newQueried(t)
	now := time.Unix(2_000_000_000, 0)
	overdue := func() time.Duration {
		late, err := q.Overdue(now)
		require.NoError(t, err)
		return late
	}
	require.Zero(t, overdue())
	q.fold(wire.ScheduledJobs, 0, `{"jid":"later","scheduled_at":2000000001,"job":{"class":"C"}}`)
	require.Zero(t, overdue())
	q.fold(wire.DeadJobs, 0, `{"jid":"dead","died_at":1000000000,"job":{"class":"C"}}`)
	require.Zero(t, overdue())
	q.fold(wire.ScheduledJobs, 1, `{"jid":"due","scheduled_at":1999999990,"job":{"class":"C"}}`)
	require.Equal(t, 10*time.Second, overdue())
	q.fold(wire.Retries, 0, `{"jid":"older","retry_at":1999999980,"job":{"class":"C"}}`)
	require.Equal(t, 20*time.Second, overdue())

	q.fold(wire.Journal, 0, `{"type":"opened","format":1,"offset":0}`)
	q.fold(wire.Journal, 1, `{"type":"refused","stream":"retries","offset":0,"jid":"older","error":"no"}`)
	require.Equal(t, 10*time.Second, overdue(), "a parked entry waits for a user")
}

func TestOverdueSkipsBoundedNumberOfParkedEntries(t *testing.T) {
	q := newQueried(t)
	q.fold(wire.Journal, 0, `{"type":"opened","format":1,"offset":0}`)
	for i := range int64(1002) {
		q.fold(wire.Retries, i, fmt.Sprintf(`{"jid":"r%d","retry_at":%d,"job":{"class":"C"}}`, i, 1_999_990_000+i))
		q.fold(wire.Journal, i+1, fmt.Sprintf(`{"type":"refused","stream":"retries","offset":%d,"jid":"r%d","error":"no"}`, i, i))
	}
	late, err := q.Overdue(time.Unix(2_000_000_000, 0))
	require.NoError(t, err)
	require.Equal(t, 9000*time.Second, late, "after a thousand parked entries, the next one counts as overdue")
}
