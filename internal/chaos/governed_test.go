package chaos

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/crew"
	"github.com/millrace-jobs/millrace/internal/pause"
)

func TestGovernedQueues(t *testing.T) {
	w := begin(t, brokertest.Own(t), seed)
	governedQueues(w, 3, 3, 8)
	t.Log(w.note)
}

// governEvery is how often the queue is governed, or no longer.
const governEvery = 5 * time.Second

// governedQueues governs a queue and ends that, again and again, while programs with pika publish
// plain jobs for it and work on them, and while leaders, workers and the broker are killed.
func governedQueues(w *world, producers, workers, kills int) {
	w.two()
	w.ask(http.MethodPut, "/api/job-queues/governed", "")
	path := filepath.Join(w.t.TempDir(), "log")
	team := w.team(workers, crew.Plain(), path, "w", "governed")
	sources := w.team(producers, crew.Producer(4*time.Millisecond), path, "p", "governed")
	switches := 0
	stop := w.inBackground(func(ctx context.Context) {
		for pause.For(ctx, governEvery) == nil {
			method, body := http.MethodPut, `{"key":"args.0","ahead":50}`
			if switches%2 == 1 {
				method, body = http.MethodDelete, ""
			}
			if w.tryAsk(method, "/api/governed-queues/governed", body) {
				switches++
			}
		}
	})
	w.killUntil(kills, 2*time.Second, 4*time.Second, shares{4, 4}, func() { w.killOf(team) })
	stop()
	sources.Stop()
	brokertest.EventuallyWithin(w.t, time.Minute, func() bool { return w.tryAsk(http.MethodPut, "/api/governed-queues/governed", "{}") }, "it is governed at the end")
	read := func() *crew.Governed {
		log, err := crew.ReadGoverned(path)
		require.NoError(w.t, err)
		return log
	}
	brokertest.EventuallyWithin(w.t, 3*time.Minute, func() bool { return len(read().Missing()) == 0 }, "all jobs come")
	w.pause(quiet)
	log := read()
	w.jobs = len(log.Sure)
	w.took, w.broken = time.Since(w.began), nil
	missing, twice := log.Missing(), log.Twice()
	w.note = fmt.Sprintf("%d switches, %d refired", switches, log.Refired)
	w.must(len(missing) == 0, "%d jobs are lost: %v", len(missing), first(missing))
	w.must(len(twice) == 0, "%d jobs came twice: %v", len(twice), first(twice))
	w.must(switches > 3, "it was switched %d times", switches)
}

// tryAsk reports whether a sidecar did what it was asked to.
func (w *world) tryAsk(method, path, body string) bool {
	leader := w.leads()
	if leader == nil {
		return false
	}
	status, _, err := leader.p.Do(method, path, body)
	return err == nil && (status < http.StatusMultipleChoices || status == http.StatusNotFound && method == http.MethodDelete)
}
