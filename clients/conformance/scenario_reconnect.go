package main

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// soon is how long a worker may take to react to a message, or to a timer of some seconds.
const soon = 20 * time.Second

// reconnect takes the worker's connection away for a while. Afterwards its heartbeats and metrics
// must come, commands must reach it, traceparents must reach its handlers and its retries, and it
// must know which queues were paused and resumed meanwhile.
func reconnect(t *trial) {
	t.serve()
	t.declare("default", "held", "freed")
	h := t.host(t.brokerHost(), nil)
	var w *worker
	t.by(h.addr, func() {
		w = t.worker(settings{Queues: []string{"default", "held", "freed"}, Concurrency: 3, Tag: "again"}).ready("freed")
	})
	w.keepsTraceparents("before")
	t.must(http.MethodPut, "/api/job-queues/freed/pause")
	t.eventually(func() bool { return !t.consumed("freed") }, "freed is paused")
	t.put("freed", job("Append", 0, "freed"))

	h.down()
	t.eventually(func() bool { return !t.consumed("default") }, "the worker is away")
	t.must(http.MethodPut, "/api/job-queues/held/pause")
	t.must(http.MethodPut, "/api/job-queues/freed/resume")
	t.put("held", job("Append", 0, "held"))
	t.put("default", job("Append", 0, "connected again"))
	back := now()
	h.up(t)

	w.did("ran", "connected again")
	t.pause(time.Second)
	require.Zero(t, w.count("ran", "held"), "a queue that was paused while the worker was away is not served")
	t.within(soon, func() bool { return w.count("ran", "freed") > 0 }, "a queue that was resumed while the worker was away is served")
	t.put("default", job("Wait", 0, "cancelled", 600))
	w.did("began", "cancelled")
	t.control(map[string]any{"id": "1", "op": "cancel", "identity": "*", "jid": "raw-Wait-cancelled"})
	t.within(soon, func() bool { return w.count("stopped", "cancelled") > 0 }, "commands reach the worker after a reconnect")
	w.keepsTraceparents("after a reconnect")
	t.within(3*beatInterval, func() bool { return t.beatsSince("again", back) >= 2 }, "heartbeats come after a reconnect")
	t.metric("raw-Append-connected again")
	t.must(http.MethodPut, "/api/job-queues/held/resume")
	w.did("ran", "held")
	w.stop(t, 20*time.Second)
	require.Empty(t, t.records(wire.DeadJobs))
	require.Len(t, t.records(wire.Retries), 2, "one before, and one after the reconnect")
}

// keepsTraceparents checks that a handler gets the header traceparent of its job, and that a retry
// has it.
func (w *worker) keepsTraceparents(when string) {
	t, before := w.t, w.count("trace", "")
	t.put("default", traced(job("Trace", 0, when)), traced(job("FailSoon", 0, when, 1)))
	t.within(soon, func() bool { return w.count("trace", "") > before }, "a handler runs, %s", when)
	require.Equal(t, before+1, w.count("trace", traceparent), "a handler gets the job's traceparent, %s", when)
	require.Equal(t, []string{traceparent}, t.traceparents(wire.Retries, "raw-FailSoon-"+when, 1), "a retry has the job's traceparent, %s", when)
	t.eventually(func() bool { return w.count("ran", when) == 2 }, "the retry runs, %s", when)
}

// traceparent is a valid value of the header.
const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// traced returns the job with that header.
func traced(m amqp.Publishing) amqp.Publishing {
	m.Headers = amqp.Table{"traceparent": traceparent}
	return m
}

// beatInterval is the time between two heartbeats of a worker.
const beatInterval = 10 * time.Second

// beatsSince counts the heartbeats of running workers with this tag since a time.
func (s *streams) beatsSince(tag string, since float64) (n int) {
	for _, body := range s.seen(wire.Heartbeats) {
		h, err := wire.ParseHeartbeat(body)
		require.NoError(s, err, "%s", body)
		if h.Tag == tag && h.State == wire.StateRunning && wire.Seconds(h.Beat) > since {
			n++
		}
	}
	return n
}

// brokerHost returns the host and port of the broker.
func (r *room) brokerHost() string {
	u, err := url.Parse(r.runnerURL)
	require.NoError(r, err)
	return u.Host
}

// by starts programs that connect to these hosts in place of the broker's own.
func (r *room) by(hosts string, start func()) {
	direct := r.amqpURL
	r.amqpURL = strings.Replace(direct, r.brokerHost(), hosts, 1)
	start()
	r.amqpURL = direct
}

// noticed is how soon a client must be connected elsewhere after its network falls silent. It is
// two of its AMQP heartbeats, half of another one because the library checks late, and the time to
// connect.
const noticed = 40 * time.Second

// silent makes the network between the broker and its clients lose everything. The clients must
// notice by the AMQP heartbeat.
func silent(t *trial) {
	t.serve()
	t.declare("default")
	first, second := t.host(t.brokerHost(), nil), t.host(t.brokerHost(), nil)
	second.down()
	const concurrency, n = 4, 2000
	var w *worker
	var enqueued func() []string
	t.by(first.addr+","+second.addr, func() {
		w = t.worker(settings{Queues: []string{"default"}, Concurrency: concurrency, MaxDeaths: 1}).ready("default")
		t.put("default", job("Wait", 0, "cut off", 600))
		w.did("began", "cut off")
		enqueued = t.outage("job-", n)
	})
	first.silence()
	second.up(t)
	t.within(noticed, func() bool { return second.connections() == 2 }, "worker and producer notice that the network is silent")
	t.eventually(func() bool { return w.count("began", "cut off") >= 2 }, "what was in flight comes again")
	t.control(map[string]any{"id": "1", "op": "cancel", "identity": "*", "jid": "raw-Wait-cut off"})
	texts := enqueued()
	t.all(w, func(i int) string { return texts[i] }, n)
	t.eventually(func() bool { return t.empty("default") }, "every job is acknowledged")
	w.stop(t, 20*time.Second)
	require.Empty(t, t.records(wire.DeadJobs))
	require.Empty(t, t.records(wire.Retries))
	require.LessOrEqual(t, w.count("ran", "")-n, 2*(concurrency+1), "jobs ran twice that were not in flight")
}
