package tracker_test

import (
	"fmt"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// How many entries are folded, how many records come at once, and how many fires are unconfirmed.
const (
	benchEntries = 50_000
	benchBatch   = 64
	benchFlight  = 1024
)

// BenchmarkFold folds entries, looks each up as the leader does before it fires, looks for
// repetitions in two ways, and folds their fires. It reports CPU time, including the store's own
// goroutines, because CPU time hardly depends on the load of the machine.
func BenchmarkFold(b *testing.B) {
	var entries, lookups, repeats, instants, fires time.Duration
	for b.Loop() {
		store, err := view.Open(view.Config{Schema: tracker.Schema, Identity: "bench", Log: slog.New(slog.DiscardHandler)})
		require.NoError(b, err)
		all, err := tracker.NewEntries(store, "millrace")
		require.NoError(b, err)
		apply := func(from, n int64, record func(i int64) wire.Record) {
			for at := from; at < from+n; at += benchBatch {
				batch := make([]wire.Record, 0, benchBatch)
				for i := at; i < min(at+benchBatch, from+n); i++ {
					batch = append(batch, record(i))
				}
				guard, commit := func() error { return nil }, func([]string) {}
				require.NoError(b, store.Apply(all, batch[0].Stream, batch, guard, commit))
			}
		}
		apply(0, 1, func(int64) wire.Record {
			return wire.Record{Stream: wire.Journal, UserID: "millrace", Body: []byte(`{"type":"opened","format":1,"identity":"bench"}`)}
		})
		entries += cpu(b, func() { apply(0, benchEntries, benchEntry) })
		lookups += cpu(b, func() { lookUp(b, all) })
		repeats += cpu(b, func() { lookForRepeats(b, all) })
		instants += cpu(b, func() { readInstant(b, all) })
		fires += cpu(b, func() { apply(1, benchEntries, benchFire) })
		require.Zero(b, all.Total(wire.ScheduledJobs))
		require.NoError(b, store.Close())
	}
	for name, took := range map[string]time.Duration{"entry": entries, "lookup": lookups, "jid-lookup": repeats, "jid-read": instants, "fire": fires} {
		b.ReportMetric(float64(took.Microseconds())/float64(b.N)/benchEntries, "cpu-µs/"+name)
	}
}

func benchEntry(i int64) wire.Record {
	body := fmt.Appendf(nil, `{"type":"scheduled_job","jid":"job-%08d","scheduled_at":1700000000.5,"job":{"class":"SendWelcomeMail","args":[%d,`+
		`"someone@example.com",{"template":"welcome","locale":"en","note":"what a job carries along, so that it has the size of one"}],`+
		`"queue":"bench","retry":25,"enqueued_at":1700000000.123,"tags":["mail","welcome"]}}`, i, i)
	return wire.Record{Stream: wire.ScheduledJobs, Offset: i, Body: body}
}

func benchFire(i int64) wire.Record {
	entry := benchEntry(i - 1)
	dispatch := wire.Dispatch{Op: wire.OpFired, Stream: wire.ScheduledJobs, Offset: i - 1, JIDTag: fmt.Sprintf("job-%08d", i-1), Seq: i, Confirmed: max(0, i-benchFlight)}
	return wire.Record{Stream: wire.Journal, Offset: i, Time: time.Unix(1_900_000_001, 0), UserID: "millrace", Headers: dispatch.Headers(), Body: entry.Body}
}

// lookUp goes through all entries in due order, as the leader does.
func lookUp(b *testing.B, all *tracker.Entries) {
	behind, n := tracker.DueKey{}, 0
	for {
		snapshot := all.Snapshot()
		var keys []tracker.DueKey
		require.NoError(b, snapshot.Due("bench", behind, func(k tracker.DueKey) bool {
			keys = append(keys, k)
			return len(keys) < 128
		}))
		if len(keys) == 0 {
			require.Equal(b, benchEntries, n)
			require.NoError(b, snapshot.Close())
			return
		}
		for _, k := range keys {
			s, err := snapshot.Get(k.Stream, k.Offset)
			require.NoError(b, err)
			require.Equal(b, k.Offset, s.Offset)
			n++
		}
		behind = keys[len(keys)-1]
		require.NoError(b, snapshot.Close())
	}
}

// lookForRepeats looks each jid up.
func lookForRepeats(b *testing.B, all *tracker.Entries) {
	snapshot := all.Snapshot()
	for i := range int64(benchEntries) {
		repeated, err := snapshot.Repeated(wire.ScheduledJobs, fmt.Sprintf("job-%08d", i))
		require.NoError(b, err)
		require.False(b, repeated)
	}
	require.NoError(b, snapshot.Close())
}

// readInstant reads all jids in order.
func readInstant(b *testing.B, all *tracker.Entries) {
	snapshot, seen := all.Snapshot(), map[string]bool{}
	require.NoError(b, snapshot.DueAt(wire.ScheduledJobs, time.Unix(1_700_000_000, 500_000_000), -1, func(r tracker.Row) bool {
		seen[r.JID] = true
		return true
	}))
	require.Len(b, seen, benchEntries)
	require.NoError(b, snapshot.Close())
}

func cpu(b *testing.B, fn func()) time.Duration {
	used := func() time.Duration {
		var u syscall.Rusage
		require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	fn()
	return used() - before
}
