package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// leasing is a group of workers that use only HTTP, with the account of their jobs. No job may be
// lost. A job may arrive twice only if a call that took it, or reported its failure, was not
// answered.
type leasing struct {
	w      *world
	broken *faults

	mu     sync.Mutex
	acked  map[string]int // by jid: leases that were acknowledged
	taken  int
	ranOut int // leases that a worker let run out, or was too late for
	unsure int // jobs that may have been taken, or made a retry, twice
	// lostAcks counts acknowledgements without an answer to the first call. The metrics may lack
	// them.
	lostAcks int
	dead     int
	twice    int
}

// job returns a job for a worker.
func job(jid, queue string) amqp.Publishing {
	return amqp.Publishing{DeliveryMode: amqp.Persistent, Body: fmt.Appendf(nil, `{"jid":%q,"class":"Leased","args":[1],"queue":%q}`, jid, queue)}
}

// publish adds n jobs to the queue.
func (l *leasing) publish(n int) {
	l.w.t.Helper()
	all := make([]amqp.Publishing, n)
	l.mu.Lock()
	for i := range all {
		jid := fmt.Sprintf("leased-%05d", len(l.acked))
		all[i], l.acked[jid] = job(jid, leasedQueue), 0
	}
	l.mu.Unlock()
	l.w.v.Publish(l.w.t, wire.ExchangeDirect, leasedQueue, all...)
	l.w.row.jobs += n
}

type takenJob struct {
	ID     string
	JID    string
	RanOut int `json:"ran_out"`
}

const mostTaken = 3

func (l *leasing) work(ctx context.Context, c *caller, _ int) {
	for ctx.Err() == nil {
		status, answer := c.try(http.MethodPost, "/api/job-queues/"+leasedQueue+"/lease", fmt.Sprintf(`{"max":%d,"wait_ms":500,"lease_ms":4000}`, mostTaken))
		var all []takenJob
		if unsure(status) || json.Unmarshal(answer, &all) != nil {
			l.add(&l.unsure, mostTaken)
			l.w.pause(100 * time.Millisecond)
			continue
		}
		l.add(&l.taken, len(all))
		for _, j := range all {
			l.settle(c, &j)
		}
		if len(all) > 0 {
			l.w.pause(time.Duration(c.random.IntN(400)) * time.Millisecond)
		}
	}
}

func (l *leasing) add(to *int, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*to += n
}

// settle ends a job like a worker: most often it is done.
func (l *leasing) settle(c *caller, j *takenJob) {
	verb, body := "ack", ""
	switch dice := c.random.IntN(100); {
	case dice < 10 && j.RanOut == 0:
		l.add(&l.ranOut, 1)
		return // this worker is never heard of again
	case dice < 25:
		verb, body = "fail", `{"error_class":"E","retry_in":0.5}`
	case dice < 35:
		if status, answer, _ := c.call(http.MethodPost, "/api/leases/"+j.ID+"/extend", `{"lease_ms":6000}`); status != http.StatusNoContent && status != http.StatusConflict {
			l.broken.note("extending the lease %s of %s is answered %d %s", j.ID, j.JID, status, answer)
		}
	}
	status, answer, repeated := c.call(http.MethodPost, "/api/leases/"+j.ID+"/"+verb, body)
	if verb == "fail" {
		l.add(&l.unsure, repeated)
	}
	switch {
	case status == http.StatusConflict && !ended(answer):
		l.add(&l.ranOut, 1)
	case status != http.StatusNoContent:
		l.broken.note("%s of the lease %s of %s is answered %d %s after %d repeats", verb, j.ID, j.JID, status, answer, repeated)
	case verb == "ack":
		l.mu.Lock()
		defer l.mu.Unlock()
		l.acked[j.JID]++
		l.lostAcks += min(repeated, 1)
	}
}

// ended reports whether a lease is over because its worker ended it. No other client does.
func ended(answer []byte) bool {
	var p struct{ Happened *wire.Happened }
	return json.Unmarshal(answer, &p) == nil && p.Happened != nil && p.Happened.What == wire.TypeDeleted
}

// missing returns the jobs that were never acknowledged.
func (l *leasing) missing() (jids []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for jid, n := range l.acked {
		if n == 0 {
			jids = append(jids, jid)
		}
	}
	return jids
}

// drain waits until every job has been acknowledged, or is dead because too many of its leases ran
// out, and the queue is empty.
func (l *leasing) drain() {
	l.w.t.Helper()
	p := l.w.awaitLeader().p
	few := func() bool { return len(l.missing()) <= 20 }
	brokertest.EventuallyWithin(l.w.t, 10*time.Minute, few, "the jobs are leased and done")
	brokertest.EventuallyWithin(l.w.t, 2*time.Minute, func() bool {
		for _, jid := range l.missing() { // the API's figures for a queue are some seconds old
			if sets := l.w.where(p, jid); len(sets) != 1 || sets[0] != "dead-jobs" {
				return false
			}
		}
		status, answer, err := p.Do(http.MethodGet, "/api/job-queues/"+leasedQueue, "")
		var q struct{ Retries, Leased int }
		return err == nil && status == http.StatusOK && json.Unmarshal(answer, &q) == nil && q.Retries+q.Leased == 0 &&
			l.w.v.QueueLength(l.w.t, wire.QueuePrefix+leasedQueue) == 0
	}, "nothing is leased, or waits")
}

// reckon compares the acknowledged jobs with all jobs, and with the metrics.
func (l *leasing) reckon() {
	w, p := l.w, l.w.awaitLeader().p
	w.t.Helper()
	var lost []string
	for jid, n := range l.acked {
		sets := w.where(p, jid)
		switch {
		case n == 0 && len(sets) == 1 && sets[0] == "dead-jobs":
			l.dead++
		case n == 0:
			lost = append(lost, fmt.Sprintf("%s is in %v", jid, sets))
		default:
			l.twice += n + len(sets) - 1
		}
	}
	w.must(len(lost) == 0, "%d leased jobs are lost: %v", len(lost), first(lost))
	w.must(l.twice <= l.unsure, "%d leased jobs came twice, of which only %d may", l.twice, l.unsure)
	counted := w.counted()
	all, acks := 0, 0
	for jid, n := range l.acked {
		w.must(counted[jid] <= n, "%s was acknowledged %d times and counted %d times", jid, n, counted[jid])
		all, acks = all+counted[jid], acks+n
	}
	w.must(all >= acks-l.lostAcks, "%d of %d acknowledgements are counted, and only %d may be missing", all, acks, l.lostAcks)
}

// counted returns the number of successes of each job in the metrics.
func (w *world) counted() map[string]int {
	w.t.Helper()
	counted := map[string]int{}
	for _, d := range w.v.ReadStream(w.t, wire.JobMetrics) {
		good, _, err := wire.ParseMetrics(nil, d.Body)
		w.must(err == nil, "a metric cannot be read: %v", err)
		for _, m := range good {
			if m.Status == wire.MetricSuccess {
				counted[m.JID]++
			}
		}
	}
	return counted
}

func (l *leasing) String() string {
	return fmt.Sprintf("%d leases, %d ran out, %d jobs came twice of %d that might, %d dead of that", l.taken, l.ranOut, l.twice, l.unsure, l.dead)
}
