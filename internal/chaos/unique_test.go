package chaos

import (
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/crew"
)

func TestUniqueJobs(t *testing.T) {
	w := begin(t, brokertest.Own(t), seed)
	uniqueJobs(w, 1000, 100, 6, 8)
	t.Log(w.note)
}

// uniqueJobs kills leaders, workers and the broker while producers race: each publishes unique jobs
// with few keys, and awaits the answers. From outside, with the lines that the workers write, no
// two jobs of a key may be unfinished at once, and no job may be lost that is not another's
// duplicate.
func uniqueJobs(w *world, jobs, keys, workers, kills int) {
	const producers = 4
	w.two()
	w.ask(http.MethodPut, "/api/job-queues/limited", "")
	path := filepath.Join(w.t.TempDir(), "log")
	team := w.team(workers, crew.Limited(), path, "w", "limited")
	source := &crew.Source{URLs: []string{w.v.AMQPURL()}, Every: 10 * time.Millisecond, Job: func(n int) (string, []byte) {
		jid, key := fmt.Sprintf("unique-%05d", n), fmt.Sprintf("key-%d", (n/producers*7+n%producers)%keys)
		return jid, fmt.Appendf(nil, `{"jid":%q,"class":"Unique","args":[],"queue":"limited","gate":{"key":%[2]q,"unique":{"key":%[2]q}}}`, jid, key)
	}}
	var ended sync.WaitGroup
	for range producers {
		ended.Go(func() { source.Run(w.t.Context(), jobs/producers) })
	}
	w.killUntil(kills, 500*time.Millisecond, 1500*time.Millisecond, shares{3, 5}, func() { w.killOf(team) })
	ended.Wait()
	w.jobs = len(source.Sure())
	brokertest.EventuallyWithin(w.t, 3*time.Minute, func() bool { return string(w.ask(http.MethodGet, "/api/unique-keys", "")) == "[]\n" }, "no key is taken when all jobs have ended")
	w.pause(quiet)
	all := w.epochs()
	w.unconfirmed, w.settling = moments(all, w.killed)
	w.took, w.broken = time.Since(w.began), nil
	log := w.work(path)
	verdict, err := source.Judge(log, func(jid string) (string, error) {
		return gjson.ParseBytes(w.ask(http.MethodGet, "/api/jobs/"+jid, "")).Get(`events.#(what=="duplicate").other`).String(), nil
	})
	require.NoError(w.t, err)
	w.note = fmt.Sprintf("%d of %d jobs were duplicates, %d publishers got no answer, %d workers killed, %d begun again after a worker died",
		verdict.Duplicates, w.jobs, w.jobs-len(source.Answers()), team.Killed, log.Repeats)
	for _, jid := range first(append(verdict.Lost, verdict.Wrong...)) {
		w.t.Logf("%s: %s\n%s%s", jid, log.History(jid), w.ask(http.MethodGet, "/api/jobs/"+jid, ""), history(all, jid))
	}
	both := log.Overlaps()
	w.must(len(both) == 0, "%d pairs of jobs of one key were unfinished at once: %v", len(both), first(both))
	w.onceEach(log)
	w.must(len(verdict.Lost) == 0, "%d jobs are lost: %v", len(verdict.Lost), first(verdict.Lost))
	w.must(len(verdict.Wrong) == 0, "%d answers were wrong: %v", len(verdict.Wrong), first(verdict.Wrong))
	w.must(verdict.Duplicates > 0, "no job was a duplicate")
}
