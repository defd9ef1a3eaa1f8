package spectest

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// govern governs the queue default, of which three jobs may run at once.
func (s *sidecar) govern(t *testing.T) {
	t.Helper()
	s.put(t, "/api/governed-queues/default", `{}`)
	s.put(t, "/api/limits/three", `{"queues":["default"],"concurrency":3}`)
	s.isGoverned(t, "governed")
}

func (s *sidecar) isGoverned(t *testing.T, state string) {
	t.Helper()
	brokertest.EventuallyWithin(t, time.Minute, func() bool {
		return s.get(t, "/api/governed-queues/default").Get("state").String() == state
	}, "the queue is %s", state)
}

func (s *sidecar) put(t *testing.T, path, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.url+path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.http.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusNoContent, resp.StatusCode, path)
}

// moment is the begin or the end of a job, as its worker wrote it.
type moment struct {
	at     float64
	change int
}

var written = regexp.MustCompile(`(?m)^(begins|ends) (\d+\.\d+) (\d+)$`)

// counts waits until the jobs with some numbers have ended, and requires that each has begun once,
// and that no more than three ran at once.
func counts(t *testing.T, first, n int, workers ...*process) {
	t.Helper()
	var all []moment
	begun := map[string]int{}
	brokertest.EventuallyWithin(t, 5*time.Minute, func() bool {
		all, begun = nil, map[string]int{}
		ended := 0
		for _, w := range workers {
			for _, m := range written.FindAllStringSubmatch(w.said(), -1) {
				at, err := strconv.ParseFloat(m[2], 64)
				require.NoError(t, err)
				if m[1] == "begins" {
					begun[m[3]]++
					all = append(all, moment{at, 1})
				} else {
					ended++
					all = append(all, moment{at, -1})
				}
			}
		}
		return ended >= n
	}, "%d jobs have ended", n)
	for i := range n {
		require.Equal(t, 1, begun[fmt.Sprint(first+i)], "job %d", first+i)
	}
	slices.SortFunc(all, func(a, b moment) int { return cmp.Or(cmp.Compare(a.at, b.at), a.change-b.change) })
	running, most := 0, 0
	for _, m := range all {
		running += m.change
		most = max(most, running)
	}
	require.Equal(t, 3, most, "jobs at once")
}

// The workers of the specification know nothing of limits. On a governed queue, with a limit of
// three, each job runs once, and three at once.
func TestWorkersOfGovernedQueue(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := serve(t, v)
	python.client(t, v, "").run(t, "declare", "queue.critical", "queue.default")
	s.govern(t)
	code := specification(t, "3.3-worker.py", imports("import json, random, time"), supplied)
	workers := []*process{python.client(t, v, code).start(t, "work"), python.client(t, v, code).start(t, "work"), rubyWorker(t, v, priority).start(t, "specification")}
	for range 2 {
		workers = append(workers, python.client(t, v, code).start(t, "work"))
	}
	brokertest.Eventually(t, func() bool {
		q, _ := inspect(t, v, "queue.default")
		return q.Consumers >= len(workers)
	}, "the workers consume")
	python.client(t, v, "").run(t, "plain", "default", "0", "5")
	counts(t, 0, 5, workers...)
}

// With one more publish a plain worker needs no rounds. It binds its queue when it starts, as many
// do. Then its jobs are limited again as soon as the leader has removed the binding.
func TestExactWorkersOfGovernedQueue(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := serve(t, v)
	python.client(t, v, "").run(t, "declare", "queue.default")
	s.govern(t)
	var workers []*process
	for range 5 {
		w := python.client(t, v, "").start(t, "exact", "default")
		w.says(t, "Worker started")
		workers = append(workers, w)
	}
	s.isGoverned(t, "bypassed")
	time.Sleep(2 * time.Second) // the last one has bound the queue a moment ago
	python.client(t, v, "").run(t, "plain", "default", "0", "40")
	counts(t, 0, 40, workers...)
}
