package chaos

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/sidecar"
)

// overHTTP kills sidecars at any moment while everything runs that only the API offers: workers
// lease jobs, clients enqueue with idempotency keys and repeat calls, operations begin and are
// undone, a large operation runs all the time, and a queue is paused.
func overHTTP(w *world, jobs, inOperation, kills int) {
	for _, name := range []string{"x", "y"} {
		w.run(w.slot(name, func(c *sidecar.Config) {
			if name == "x" {
				c.StateDir = w.t.TempDir()
			}
		}))
	}
	w.awaitLeader()
	w.warmUp()
	broken := &faults{}
	c := &caller{w: w, random: w.random}
	for _, queue := range []string{leasedQueue, pausedQueue} {
		status, answer, _ := c.call(http.MethodPut, "/api/job-queues/"+queue, "")
		require.Equal(w.t, http.StatusNoContent, status, "%s", answer)
	}
	status, answer, _ := c.call(http.MethodPut, "/api/job-queues/"+pausedQueue+"/pause", "")
	require.Equal(w.t, http.StatusNoContent, status, "%s", answer)

	leases, keys, some := &leasing{w: w, broken: broken, acked: map[string]int{}}, &keyed{w: w, broken: broken, jids: map[string]string{}}, &bulk{w: w, broken: broken}
	most := &large{bulk: some}
	most.publish(inOperation)
	most.begin(c, kills)
	stopLeases := w.callers(4, leases.work)
	stopKeys := w.callers(4, keys.work)
	stopBulk := w.callers(2, some.work)
	for i := range kills {
		leases.publish(jobs*(i+1)/kills - jobs*i/kills)
		w.killAny()
		most.killed(c)
	}
	stopKeys()
	stopBulk()
	most.end(c)
	leases.drain()
	stopLeases()

	stayPaused(w, c)
	keys.again(c)
	w.exactlyOnce()
	leases.reckon()
	w.must(len(broken.all) == 0, "%d promises of the API are broken: %v", len(broken.all), first(broken.all))
	w.note = fmt.Sprintf("%s; %s; %s; %s", leases, keys, some, most)
}

// killAny kills the leading sidecar most often, or another one, or both, and starts them again.
func (w *world) killAny() {
	w.t.Helper()
	w.pause(200*time.Millisecond + w.upTo(1500*time.Millisecond))
	which := w.slots[w.random.IntN(len(w.slots))]
	if s := w.leads(); s != nil && w.chance(60) {
		which = s
	}
	killed := []*slot{which}
	if w.chance(20) {
		killed = w.slots
	}
	for _, s := range killed {
		w.kill(s)
	}
	w.pause(w.upTo(300 * time.Millisecond))
	for _, s := range killed {
		w.run(s)
	}
	w.awaitLeader()
}

const (
	leasedQueue = "leased"
	pausedQueue = "paused"
)

// stayPaused checks that every sidecar knows which queue was paused before all the kills.
func stayPaused(w *world, c *caller) {
	w.t.Helper()
	w.v.Publish(w.t, "", "queue."+pausedQueue, job("waits", pausedQueue))
	for _, s := range w.slots {
		brokertest.EventuallyWithin(w.t, time.Minute, s.p.Ready, "%s is ready", s.name)
		status, answer, err := s.p.Do(http.MethodGet, "/api/job-queues/"+pausedQueue, "")
		var q struct{ State string }
		w.must(err == nil && status == http.StatusOK && json.Unmarshal(answer, &q) == nil && q.State == "paused", "%s does not know that a queue is paused: %s", s.name, answer)
	}
	status, answer, _ := c.call(http.MethodPost, "/api/job-queues/"+pausedQueue+"/lease", `{"max":1}`)
	w.must(status == http.StatusOK && string(answer) == "[]\n", "a job of a paused queue was leased: %d %s", status, answer)
}
