package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// leasing is a worker that speaks only HTTP, beside a real broker.
type leasing struct {
	*running
	t *testing.T
	v *brokertest.Vhost
}

func (l *leasing) post(path, body string) (string, error) {
	answer, err := l.api.Do(l.t.Context(), apiclient.Request{Method: http.MethodPost, Path: path, Body: []byte(body)})
	return string(answer), err
}

func (l *leasing) get(path string) string {
	l.t.Helper()
	answer, err := l.api.Do(l.t.Context(), apiclient.Request{Path: path})
	require.NoError(l.t, err)
	return string(answer)
}

func (l *leasing) enqueue(queue, jid, more string) {
	l.t.Helper()
	_, err := l.api.Do(l.t.Context(), apiclient.Request{Method: http.MethodPut, Path: "/api/job-queues/" + queue})
	require.NoError(l.t, err)
	_, err = l.post("/api/jobs", fmt.Sprintf(`{"jid":%q,"class":"Mail","queue":%q,"args":[1]%s}`, jid, queue, more))
	require.NoError(l.t, err)
	brokertest.Eventually(l.t, func() bool { return l.v.QueueLength(l.t, wire.QueuePrefix+queue) > 0 }, "%s is in its queue", jid)
}

// take leases one job, waiting for it.
func (l *leasing) take(queue, terms string) answer.Lease {
	l.t.Helper()
	var all []answer.Lease
	answer, err := l.post("/api/job-queues/"+queue+"/lease", terms)
	require.NoError(l.t, err)
	require.NoError(l.t, json.Unmarshal([]byte(answer), &all))
	require.Len(l.t, all, 1, answer)
	return all[0]
}

func (l *leasing) settle(t answer.Lease, verb, body string) error {
	_, err := l.post("/api/leases/"+t.ID+"/"+verb, body)
	return err
}

const patiently = `{"wait_ms":20000,"lease_ms":600000}`

func TestLeases(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, beside(v))
	s.leads(t)
	for _, c := range []struct {
		name string
		test func(*leasing)
	}{
		{"a job that is done", leasedJobIsDone},
		{"a job that fails", leasedJobFails},
		{"a lease that is extended", leaseIsExtended},
		{"leases that run out", leasesRunOut},
		{"a job that no worker can run", jobThatNoWorkerCanRun},
		{"a job with a limit that has ended", jobThatHasEndedIsNotLeased},
		{"a paused queue", pausedQueueLeasesNothing},
		{"a crash before the acknowledgement", leaseStandsAfterCrash},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(&leasing{s, t, v}) })
	}

	// A lease survives its sidecar, and another one settles it.
	l := &leasing{s, t, v}
	l.enqueue("done", "k1", "")
	left := l.take("done", patiently)
	require.NoError(t, s.end())
	other := start(t, beside(v))
	other.leads(t)
	l = &leasing{other, t, v}
	require.NoError(t, l.settle(left, "ack", ""))
	require.Zero(t, v.QueueLength(t, "queue.done"))
}

func leasedJobIsDone(l *leasing) {
	l.enqueue("done", "d1", "")
	job := l.take("done", patiently)
	require.Equal(l.t, "d1", job.JID)
	require.Equal(l.t, int64(1), gjson.GetBytes(job.Job, "args.0").Int())
	require.Zero(l.t, l.v.QueueLength(l.t, "queue.done"))
	require.Equal(l.t, "[]", l.get("/api/scheduled-jobs")[:2], "a lease is not a scheduled job")
	require.Equal(l.t, job.ID, gjson.Get(l.get("/api/jobs/d1"), "leases.0.id").Str)
	require.Zero(l.t, gjson.Get(l.get("/api/overview"), "sets.scheduled-jobs.total").Int())
	require.NoError(l.t, l.settle(job, "ack", ""))
	require.NoError(l.t, l.settle(job, "ack", ""), "it is idempotent")
	require.ErrorContains(l.t, l.settle(job, "fail", "{}"), "was ended before")
	require.ErrorContains(l.t, l.settle(job, "extend", "{}"), "was ended before")
	brokertest.Eventually(l.t, func() bool { return gjson.Get(l.get("/api/job-metrics"), "total.success").Int() == 1 }, "it counts as done")
}

func leasedJobFails(l *leasing) {
	l.enqueue("fails", "f1", `,"retry":1`)
	job := l.take("fails", patiently)
	require.NoError(l.t, l.settle(job, "fail", `{"error_class":"Timeout","error_message":"no answer","retry_in":0}`))
	again := l.take("fails", patiently)
	require.Equal(l.t, "f1", again.JID)
	require.Equal(l.t, int64(1), gjson.GetBytes(again.Job, "retry_count").Int())
	require.NoError(l.t, l.settle(again, "fail", `{"error_class":"Timeout"}`))
	require.NoError(l.t, l.settle(again, "fail", `{"error_class":"Timeout"}`), "it is idempotent")
	brokertest.Eventually(l.t, func() bool { return gjson.Get(l.get("/api/dead-jobs?jid=f1"), "0.reason").Str == "exhausted" }, "it is dead")
	require.Equal(l.t, "1", gjson.Get(l.get("/api/dead-jobs?jid=f1"), "#").String())
}

func leaseIsExtended(l *leasing) {
	l.enqueue("longer", "e1", "")
	job := l.take("longer", `{"wait_ms":20000,"lease_ms":5000}`)
	require.NoError(l.t, l.settle(job, "extend", `{"lease_ms":3600000}`))
	brokertest.Eventually(l.t, func() bool {
		return gjson.Get(l.get("/api/jobs/e1"), "leases.0.until").Float() > job.Until+3000
	}, "it ends later")
	require.Equal(l.t, "[]", l.get("/api/scheduled-jobs")[:2], "the job is still leased")
	_, err := l.post("/api/scheduled-jobs/"+job.ID+"/trigger", "")
	require.NoError(l.t, err, "an operator returns it")
	require.Zero(l.t, l.take("longer", patiently).RanOut, "it did not expire")
}

func leasesRunOut(l *leasing) {
	l.enqueue("slow", "s1", "")
	var job answer.Lease
	for i := range wire.MaxRunOut {
		job = l.take("slow", `{"wait_ms":20000,"lease_ms":1000}`)
		require.Equal(l.t, []any{"s1", i}, []any{job.JID, job.RanOut})
		if i == 0 {
			brokertest.Eventually(l.t, func() bool { return l.v.QueueLength(l.t, "queue.slow") == 1 }, "it is back in its queue")
			require.ErrorContains(l.t, l.settle(job, "ack", ""), "ran out")
			require.ErrorContains(l.t, l.settle(job, "extend", ""), "ran out")
			require.ErrorContains(l.t, l.settle(job, "fail", ""), "ran out")
		}
	}
	brokertest.Eventually(l.t, func() bool { return l.v.QueueLength(l.t, "queue.slow") == 1 }, "the third lease has run out")
	answer, err := l.post("/api/job-queues/slow/lease", "{}")
	require.NoError(l.t, err)
	require.Equal(l.t, "[]", answer[:2])
	brokertest.Eventually(l.t, func() bool { return gjson.Get(l.get("/api/dead-jobs?jid=s1"), "0.reason").Str == "poison" }, "no worker gets it any more")
}

func jobThatNoWorkerCanRun(l *leasing) {
	l.v.Publish(l.t, "", "queue.done", amqp.Publishing{Body: []byte("garbage")})
	l.enqueue("done", "x1", `,"expires_at":1000000000`)
	answer, err := l.post("/api/job-queues/done/lease", `{"max":10}`)
	require.NoError(l.t, err)
	require.Equal(l.t, "[]", answer[:2])
	brokertest.Eventually(l.t, func() bool { return gjson.Get(l.get("/api/rejected"), "0.body").Str == "garbage" }, "it is listed as rejected")
	brokertest.Eventually(l.t, func() bool { return gjson.Get(l.get("/api/dead-jobs?jid=x1"), "0.error_class").Str == "expired" }, "it has expired")
	_, err = l.post("/api/job-queues/nowhere/lease", "{}")
	require.ErrorContains(l.t, err, "no queue")
}

// jobThatHasEndedIsNotLeased is about a worker that died after it had reported the end of a job, and
// before it acknowledged it.
func jobThatHasEndedIsNotLeased(l *leasing) {
	_, err := l.api.Do(l.t.Context(), apiclient.Request{Method: http.MethodPut, Path: "/api/limits/leased", Body: []byte(`{"queues":["limited"],"concurrency":1}`)})
	require.NoError(l.t, err)
	l.enqueue("limited", "l1", `,"gate":{}`)
	ch := l.v.Channel(l.t)
	got, ok, err := ch.Get("queue.limited", false)
	require.NoError(l.t, err)
	require.True(l.t, ok)
	slot, _ := got.Headers[wire.HeaderSlot].(string)
	require.NotEmpty(l.t, slot)
	end, err := wire.End{Type: wire.TypeEnded, Slot: slot, Process: "w"}.Message()
	require.NoError(l.t, err)
	l.v.Publish(l.t, "", wire.JobEnds, amqp.Publishing{Body: end.Body})
	require.NoError(l.t, got.Nack(false, true))
	answer, err := l.post("/api/job-queues/limited/lease", `{"wait_ms":2000}`)
	require.NoError(l.t, err)
	require.Equal(l.t, "[]", answer[:2])
	require.Zero(l.t, l.v.QueueLength(l.t, "queue.limited"), "it is dropped")
	l.enqueue("limited", "l2", `,"gate":{}`)
	require.NoError(l.t, l.settle(l.take("limited", patiently), "ack", ""))
}

func pausedQueueLeasesNothing(l *leasing) {
	_, err := l.api.Do(l.t.Context(), apiclient.Request{Method: http.MethodPut, Path: "/api/job-queues/done/pause"})
	require.NoError(l.t, err)
	brokertest.Eventually(l.t, func() bool { return gjson.Get(l.get("/api/journal"), "items.0.op").Str == "paused" }, "it is paused")
	l.enqueue("done", "p1", "")
	answer, err := l.post("/api/job-queues/done/lease", `{}`)
	require.NoError(l.t, err)
	require.Equal(l.t, "[]", answer[:2])
	_, err = l.api.Do(l.t.Context(), apiclient.Request{Method: http.MethodPut, Path: "/api/job-queues/done/resume"})
	require.NoError(l.t, err)
	require.NoError(l.t, l.settle(l.take("done", patiently), "fail", `{"kill":true}`))
	brokertest.Eventually(l.t, func() bool { return gjson.Get(l.get("/api/dead-jobs?jid=p1"), "0.reason").Str == "killed" }, "it was given up")
}

// leaseStandsAfterCrash is about a crash between the confirm and the acknowledgement: the lease
// stands, and the job is in its queue as well. It comes twice and is not lost.
func leaseStandsAfterCrash(l *leasing) {
	l.enqueue("crash", "c1", "")
	job, err := wire.LeasedJob(&wire.Delivery{Body: []byte(`{"jid":"c1","class":"Mail","queue":"crash"}`)}, "crash")
	require.NoError(l.t, err)
	m, err := wire.LeaseMessage(wire.NewLeaseID(wire.Lease{At: time.Now()}), time.Now().Add(time.Second), &job, "", "")
	require.NoError(l.t, err)
	l.v.Publish(l.t, "", wire.ScheduledJobs, amqp.Publishing{Body: m.Body, Headers: amqp.Table(m.Headers), UserId: l.v.Owner.Name})
	require.NoError(l.t, l.settle(l.take("crash", patiently), "ack", ""))
	second := l.take("crash", patiently)
	require.Equal(l.t, []any{"c1", 1}, []any{second.JID, second.RanOut})
	require.NoError(l.t, l.settle(second, "ack", ""))
	require.Zero(l.t, l.v.QueueLength(l.t, "queue.crash"))
}
