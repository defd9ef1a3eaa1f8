package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/wire"
)

func connection(t *trial) {
	t.serve()
	t.declare("default")
	w := t.worker(settings{Queues: []string{"default"}, Concurrency: 2, MaxDeaths: 1}).ready("default")
	// A busy broker lists a connection late, when the job would have ended.
	t.eventually(func() bool { return len(t.workerConnections()) > 0 }, "the worker's connection is listed")
	t.put("default", job("Sleep", 0, "cut", 10))
	w.did("began", "cut")
	t.closeWorkers()
	t.eventually(func() bool { return w.count("began", "cut") >= 2 }, "the job comes again")
	t.put("default", job("Append", 0, "afterwards"))
	w.did("ran", "afterwards")
	t.eventually(func() bool { return w.count("ran", "cut") >= 2 }, "it ends")
	w.stop(t, 20*time.Second)
	require.Zero(t, t.ready("default"))
	require.Empty(t, t.records(wire.DeadJobs))
	require.Empty(t, t.records(wire.Retries))
}

// workerConnection is the connection of a worker: its name, and the version of its AMQP library.
type workerConnection struct{ name, driver string }

// workerConnections returns the workers' connections that the management API lists so far.
func (r *room) workerConnections() (found []workerConnection) {
	var all []struct {
		Name       string `json:"name"`
		Properties struct {
			Name    string `json:"connection_name"`
			Version string `json:"version"`
		} `json:"client_properties"`
	}
	r.manage(http.MethodGet, "/api/vhosts/"+r.vhost+"/connections", nil, &all)
	for _, c := range all {
		if strings.HasPrefix(c.Properties.Name, "millrace worker ") {
			found = append(found, workerConnection{c.Name, c.Properties.Version})
		}
	}
	return found
}

// usesDriver checks that a worker has the AMQP library that was asked for, by what the library says
// to the broker.
func (t *trial) usesDriver() {
	if t.driver == "" {
		return
	}
	var found []workerConnection
	t.eventually(func() bool {
		found = t.workerConnections()
		return len(found) > 0 && found[0].driver != ""
	}, "the broker lists the worker's connection with the version of its AMQP library")
	require.True(t, strings.HasPrefix(found[0].driver, t.driver), "the AMQP library has the version %s, not %s", found[0].driver, t.driver)
}

// closeWorkers makes the broker close the connections of workers.
func (r *room) closeWorkers() {
	closed := 0
	r.eventually(func() bool {
		for _, c := range r.workerConnections() {
			if r.tryManage(http.MethodDelete, "/api/connections/"+url.PathEscape(c.name), nil, nil) == nil {
				closed++
			}
		}
		return closed > 0
	}, "a connection called `millrace worker …`")
}

func restart(t *trial) {
	t.serve()
	t.declare("default")
	times := 1
	if t.full {
		times = 5
	}
	w := t.worker(settings{Queues: []string{"default"}, Concurrency: 4}).ready("default")
	// If RabbitMQ 3.10 is killed while it creates a stream, it may look for the stream's file
	// forever. It then answers no client.
	for _, stream := range []string{wire.Journal, wire.Retries, wire.DeadJobs, wire.JobBegins} {
		t.records(stream)
	}
	for round := range times {
		text := func(i int) string { return fmt.Sprintf("round%d-%d", round, i) }
		var jobs []amqp.Publishing
		for i := range 200 {
			jobs = append(jobs, job("Sleep", 0, text(i), 0.02))
		}
		t.put("default", jobs...)
		t.eventually(func() bool { return len(w.ranLike(fmt.Sprintf("round%d-", round))) > 10 }, "some have run")
		enqueued := t.outage(fmt.Sprintf("outage%d-", round), 1000)
		if round%2 == 0 {
			require.NoError(t, t.broker.Kill())
		} else {
			require.NoError(t, t.broker.Stop(t.ctx))
		}
		require.NoError(t, t.broker.Restart(t.ctx))
		up := time.Now()
		// A queue of the broker may start late.
		t.within(3*time.Minute, func() bool { return t.consumed("default") }, "it consumes again")
		if t.full { // a busy machine is not a fault
			require.Less(t, time.Since(up), 12*time.Second, "it consumes again within 10 s (and the 2 that the runner needs to see it)")
		}
		t.all(w, text, 200)
		texts := enqueued()
		t.all(w, func(i int) string { return texts[i] }, len(texts))
	}
	t.runs(w.program)
	t.eventually(func() bool { return t.empty("default") }, "what came twice has been done twice")
	w.stop(t, 20*time.Second)
	require.Zero(t, t.ready("default"))
	require.Empty(t, t.records(wire.DeadJobs))
}

// all waits until each of n jobs has run.
func (t *trial) all(w *worker, text func(int) string, n int) {
	var missing []string
	t.within(3*time.Minute, func() bool {
		t.runs(w.program)
		missing = nil
		ran := map[string]bool{}
		for _, e := range w.effects() {
			if e.what == "ran" {
				ran[e.text] = true
			}
		}
		for i := range n {
			if !ran[text(i)] {
				missing = append(missing, text(i))
			}
		}
		return len(missing) == 0
	}, "each of %d jobs has run; %v", n, later(func() string {
		return fmt.Sprintf("the queue has %d, these have not: %.300q; dead: %.500q", t.ready("default"), missing, t.records(wire.DeadJobs))
	}))
}

func kill(t *trial) {
	t.serve()
	t.declare("default")
	times := 4
	if t.full {
		times = 30
	}
	n := times * 60
	text := func(i int) string { return fmt.Sprint("job-", i) }
	var jobs []amqp.Publishing
	for i := range n {
		jobs = append(jobs, job("Sleep", 0, text(i), 0.05))
	}
	t.put("default", jobs...)
	w := t.worker(settings{Queues: []string{"default"}, Concurrency: 5, MaxDeaths: 100})
	for i := range times {
		before := w.count("ran", "")
		t.eventually(func() bool { return w.count("ran", "") >= min(before+30, n) }, "it works, the %dth time", i+1)
		w.kill()
		w.launch()
	}
	t.all(w, text, n)
	t.eventually(func() bool { return t.empty("default") }, "what came twice has been done twice")
	w.stop(t, 30*time.Second)
	require.Zero(t, t.ready("default"))
	again := w.count("ran", "") - n
	require.LessOrEqual(t, again, times*10, "no more repeats than were in flight")
}

func poison(t *trial) {
	t.serve()
	t.declare("default")
	w := t.worker(settings{Queues: []string{"default"}, Concurrency: 2}).ready("default")
	t.put("default", job("Die", 0, "deadly"))
	for i := range 3 {
		t.eventually(w.hasExited, "the job kills its worker, the %dth time", i+1)
		require.Equal(t, i+1, w.count("began", "deadly"))
		w.launch()
	}
	body := t.record(wire.DeadJobs, "raw-Die-deadly")
	require.Equal(t, "poison", gjson.GetBytes(body, "reason").String())
	require.Equal(t, "poison", gjson.GetBytes(body, "error_class").String())
	require.Equal(t, 3, w.count("began", "deadly"), "it began three times, and never again")
	t.runs(w.program)
	w.stop(t, 20*time.Second)

	// A job is not poison because it was peeked at, or because a worker of its queue died before.
	t.put("default", job("Append", 0, "peeked"))
	for range 5 {
		t.peek("default")
	}
	w.launch()
	w.did("ran", "peeked")
	w.stop(t, 20*time.Second)
	require.Zero(t, t.ready("default"))
}

// crowd runs all producers and all workers together, on the same queues.
func crowd(t *trial) {
	t.serve()
	each := 10_000 / len(t.clients)
	if !t.full {
		each = 10_000 / 5
	}
	var workers []*worker
	var producers []*producer
	for _, c := range t.clients {
		workers = append(workers, t.workerOf(c, settings{Queues: []string{"one", "two"}, Concurrency: 5, Tag: c.name}))
	}
	t.eventually(func() bool { q, _ := t.queue("one"); return q.Consumers == len(t.clients) }, "all workers consume")
	for _, c := range t.clients {
		producers = append(producers, t.startProducer(c,
			map[string]any{"op": "bulk", "class": "Append", "queue": "one", "prefix": c.name + "-one-", "count": each / 2},
			map[string]any{"op": "bulk", "class": "Append", "queue": "two", "prefix": c.name + "-two-", "count": each / 2}))
	}
	jids := map[string]bool{}
	for _, p := range producers {
		for _, r := range p.results(t) {
			require.Empty(t, r.Error, r.Message)
			for _, jid := range r.JIDs {
				require.NotNil(t, jid, "every job is enqueued")
				jids[*jid] = true
			}
		}
	}
	require.Len(t, jids, each/2*2*len(t.clients), "every jid is another")
	t.within(4*time.Minute, func() bool {
		ran := 0
		for _, w := range workers {
			ran += w.count("ran", "")
		}
		return ran >= len(jids)
	}, "as many jobs run as there are")
	for _, w := range workers {
		w.stop(t, 30*time.Second)
		require.Positive(t, w.count("ran", ""), "%s worked", w.client.name)
		for _, e := range w.effects() {
			if e.what == "ran" {
				require.True(t, jids[e.jid], "%s ran %q twice, or a job that was never enqueued", w.client.name, e.text)
				delete(jids, e.jid)
			}
		}
	}
	require.Zero(t, len(jids), "jobs that did not run")
	t.eventually(func() bool { return len(t.metrics()) == each/2*2*len(t.clients) }, "a metric for each job")
	t.understood()
}
