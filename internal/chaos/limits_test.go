package chaos

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/crew"
	"github.com/millrace-jobs/millrace/wire"
)

func TestLimitedJobs(t *testing.T) {
	w := begin(t, brokertest.Own(t), seed)
	limitedJobs(w, 600, 3, 12, 8)
	t.Log(w.note)
}

// perKey is how many jobs of a key may run at once.
const perKey = 3

// limitedJobs kills leaders, workers and the broker while workers run jobs that a limit per key
// counts.
func limitedJobs(w *world, jobs, keys, workers, kills int) {
	w.two()
	w.ask(http.MethodPut, "/api/limits/each", fmt.Sprintf(`{"per":["key"],"concurrency":%d}`, perKey))
	w.ask(http.MethodPut, "/api/job-queues/limited", "")
	path := filepath.Join(w.t.TempDir(), "log")
	team := w.team(workers, crew.Limited(), path, "w", "limited")
	var jids []string
	for i := range jobs {
		jid := fmt.Sprintf("limited-%05d", i)
		jids = append(jids, jid)
		body := fmt.Appendf(nil, `{"jid":%q,"class":"Limited","args":[],"queue":"limited","gate":{"key":"key-%d"}}`, jid, i%keys)
		w.publish(wire.Gated, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: body})
	}
	w.jobs = jobs
	w.killUntil(kills, 300*time.Millisecond, 1500*time.Millisecond, shares{5, 4}, func() { w.killOf(team) })
	for missing := jobs + 1; missing > 0; {
		before := missing
		brokertest.EventuallyWithin(w.t, time.Minute, func() bool {
			missing = len(w.work(path).Missing(jids))
			return missing < before
		}, "fewer than %d of %d jobs are missing; slots: %s", before, jobs, w.ask(http.MethodGet, "/api/slots", ""))
		w.pause(time.Second)
	}
	w.pause(quiet)
	all := w.epochs()
	w.unconfirmed, w.settling = moments(all, w.killed)
	w.took, w.broken = time.Since(w.began), nil
	log := w.work(path)
	w.note = fmt.Sprintf("at most %d of a key at once, %d workers killed, %d begun again after a worker died", log.Most, team.Killed, log.Repeats)
	w.must(log.Most == perKey, "%d jobs of one key ran at once, and the limit is %d", log.Most, perKey)
	w.onceEach(log)
	missing := log.Missing(jids)
	w.must(len(missing) == 0, "%d of %d jobs are not done: %v", len(missing), jobs, first(missing))
	brokertest.EventuallyWithin(w.t, time.Minute, func() bool { return string(w.ask(http.MethodGet, "/api/slots", "")) == "[]\n" }, "all slots are free")
}

// onceEach checks that no job ran twice, but for those of workers that died.
func (w *world) onceEach(log *crew.Work) {
	w.t.Helper()
	w.must(len(log.Again) == 0, "%d jobs began again although their end was confirmed: %v", len(log.Again), first(log.Again))
	w.must(len(log.Twice) == 0, "%d jobs began again that the broker had not given out again: %v", len(log.Twice), first(log.Twice))
}

// team starts workers or producers, which end with the scenario.
func (w *world) team(n int, program crew.Program, path, name, queue string) *crew.Team {
	w.t.Helper()
	team, err := crew.Start(n, program, []string{w.v.AMQPURL()}, path, name, queue)
	require.NoError(w.t, err)
	w.t.Cleanup(team.Stop)
	return team
}

// killOf kills one of a team.
func (w *world) killOf(team *crew.Team) {
	w.t.Helper()
	require.NoError(w.t, team.Kill(w.random.IntN(team.Size())))
}

func (w *world) work(path string) *crew.Work {
	w.t.Helper()
	log, err := crew.ReadWork(path)
	require.NoError(w.t, err)
	return log
}
