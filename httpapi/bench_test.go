package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/tracker/feed"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// fill folds n retries in batches, as the view does. Queue q0 has every tenth of them, and rare
// only the last.
func (w *world) fill(n int) {
	w.t.Helper()
	const batch = 1000
	for from := 0; from < n; from += batch {
		require.NoError(w.t, w.store.Update(func(tx *view.Tx) error {
			for i := from; i < min(n, from+batch); i++ {
				queue := fmt.Sprint("q", i%10)
				if i == n-1 {
					queue = "rare"
				}
				body := retry(fmt.Sprintf("job-%07d", i), float64(2_000_000_000+i*7919%n), queue, fmt.Sprint("Class", i%7), fmt.Sprint("Error", i%3))
				r := wire.Record{Stream: wire.Retries, Offset: int64(i), Body: []byte(body)}
				if err := w.entries.Fold(tx, &r); err != nil {
					return err
				}
			}
			return w.entries.Commit(tx)
		}))
	}
}

// BenchmarkAmongAMillion prints how long answers take with a million pending entries. The first and
// the next page must take less than 5 ms, one entry less than 1 ms.
func BenchmarkAmongAMillion(b *testing.B) {
	w := newWorld(b)
	w.fill(1_000_000)
	next := *w.page("/api/retries?page=5000&page_size=100").Next
	for _, c := range []struct{ name, target string }{
		{"jid", "/api/retries/job-0500000"},
		{"page=1", "/api/retries?page=1"},
		{"page=100", "/api/retries?page=100"},
		{"page=1,size=500", "/api/retries?page=1&page_size=500"},
		{"page=100,size=500", "/api/retries?page=100&page_size=500"},
		{"next", "/api/retries?page=1&next=" + next},
		{"queue", "/api/retries?page=1&queue=q3"},
		{"queue,page=100", "/api/retries?page=100&queue=q3"},
		{"class,next", "/api/retries?page=1&class=Class5&next=" + next},
		{"filter=jid", "/api/retries?page=1&jid=job-0500000"},
		{"from", "/api/retries?page=1&from=2000500000"},
		{"text", "/api/retries?page=1&text=nothing"},
		{"error", "/api/retries?page=1&error=Error1"},
		{"last page", "/api/retries?page=10000"},
		{"overview", "/api/overview"},
		{"metrics", "/metrics"},
	} {
		b.Run(c.name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				recorder := httptest.NewRecorder()
				w.server.Handler().ServeHTTP(recorder, request(http.MethodGet, c.target, ""))
				took = append(took, time.Since(began))
				require.Equal(b, http.StatusOK, recorder.Code)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

// BenchmarkIdleViewers measures how much of a core 500 viewers of events take while nothing
// happens.
func BenchmarkIdleViewers(b *testing.B) {
	happens := feed.New(slog.New(slog.DiscardHandler))
	w := newWorld(b, func(c *httpapi.Config) { c.Feed = happens })
	w.entries.SetObserver(happens)
	w.fill(10_000)
	stop := w.catchUp()
	server := httptest.NewServer(w.server.Handler())
	ctx, cancel := context.WithCancel(context.Background())
	var viewers sync.WaitGroup
	for range 500 {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/api/events", nil)
		require.NoError(b, err)
		response, err := http.DefaultClient.Do(r)
		require.NoError(b, err)
		viewers.Go(func() { _, _ = io.Copy(io.Discard, response.Body); _ = response.Body.Close() })
	}
	<-time.After(2 * time.Second) // they have received what there is
	var before, after syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &before))
	began := time.Now()
	b.ResetTimer()
	<-time.After(16 * time.Second) // it includes a keep-alive for each
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &after))
	spent := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
	b.ReportMetric(100*spent.Seconds()/time.Since(began).Seconds(), "%core")
	b.ReportMetric(0, "ns/op")
	cancel()
	viewers.Wait()
	server.Close()
	stop()
}
