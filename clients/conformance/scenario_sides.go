package main

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/wire"
)

func middleware(t *trial) {
	t.serve()
	t.declare("default")
	got := t.produce(enqueue("Swallowed", "x"), enqueue("Wrapped", "x"), enqueue("Wrapped", "fail"))
	require.Empty(t, got[0].Error)
	require.True(t, len(got[0].JIDs) == 1 && (got[0].JIDs[0] == nil || *got[0].JIDs[0] == ""), "what was swallowed has no jid: %+v", got[0])
	t.eventually(func() bool { return t.ready("default") == 2 }, "two jobs are enqueued")
	require.NoError(t, t.channel(func(ch *amqp.Channel) error {
		d, _, err := ch.Get(wire.QueuePrefix+"default", false)
		// It may be either job. The one that found no binding yet comes through the sidecar.
		require.Equal(t, "outer inner", gjson.GetBytes(d.Body, "args.1").String()+" "+gjson.GetBytes(d.Body, "args.2").String(), "%s", d.Body)
		return err
	}))
	w := t.worker(settings{Queues: []string{"default"}, Concurrency: 1})
	body := t.record(wire.Retries, got[2].jid(t))
	require.Equal(t, "failed on purpose: fail", gjson.GetBytes(body, "error_message").String())
	t.eventually(func() bool { return w.count("outer-end", "x") == 1 }, "the one that ends well has ended")
	did := map[string][]string{}
	for _, e := range w.effects() {
		if e.attempt == 1 {
			did[e.text] = append(did[e.text], e.what)
		}
	}
	require.Equal(t, "outer inner ran inner-end outer-end", strings.Join(did["x"], " "))
	require.Contains(t, []string{"outer inner", "outer inner outer-end"}, strings.Join(did["fail"], " "), "the handler is not reached")
	w.stop(t, 20*time.Second)
}

func heartbeats(t *trial) {
	t.serve()
	t.declare("default", "heavy", "light")
	t.put("default", job("Wait", 0, "long", 600))
	w := t.worker(settings{
		Queues: []string{"default"}, Concurrency: 3, Tag: "beats", StopTimeout: 1,
		Lanes: []laneSet{{"weighted", map[string]int{"heavy": 3, "light": 1}, 2}},
	})
	w.did("began", "long")
	first := t.beat(func(wire.Heartbeat, gjson.Result) bool { return true }, "a first heartbeat, at the start")
	require.Equal(t, wire.StateRunning, first.Get("state").String())
	require.EqualValues(t, 5, first.Get("concurrency").Int())
	require.JSONEq(t, `{"heavy":3,"light":1}`, first.Get("weights").Raw)
	require.Len(t, first.Get("lanes").Array(), 2)
	require.ElementsMatch(t, []any{"default", "heavy", "light"}, first.Get("queues").Value())
	for _, name := range []string{"hostname", "pid", "version", "started_at", "beat", "rss_kb", "metrics_dropped", "labels", "busy", "work"} {
		require.True(t, first.Get(name).Exists(), "%s in %s", name, first.Raw)
	}
	w.signal(syscall.SIGTSTP)
	quiet := t.beat(func(h wire.Heartbeat, _ gjson.Result) bool { return h.State == wire.StateQuiet }, "a heartbeat with the state quiet")
	require.EqualValues(t, 1, quiet.Get("busy").Int())
	require.Equal(t, "raw-Wait-long", quiet.Get("work.0.jid").String())
	require.Equal(t, "Wait", quiet.Get("work.0.class").String())
	require.Equal(t, "default", quiet.Get("work.0.queue").String())
	require.Positive(t, quiet.Get("work.0.started_at").Float())
	w.stop(t, 20*time.Second)
	t.beat(func(h wire.Heartbeat, raw gjson.Result) bool {
		return h.State == wire.StateStopping && raw.Get("busy").Int() == 0
	}, "a last heartbeat, with nothing at work")
	t.understood()
}

// beat waits for a heartbeat for which is returns true, and returns the first one.
func (t *trial) beat(is func(wire.Heartbeat, gjson.Result) bool, what string) (found gjson.Result) {
	t.eventually(func() bool {
		for _, body := range t.seen(wire.Heartbeats) {
			h, err := wire.ParseHeartbeat(body)
			require.NoError(t, err, "%s", body)
			if raw := gjson.ParseBytes(body); is(h, raw) {
				found = raw
				return true
			}
		}
		return false
	}, "%s", what)
	return found
}

// outage starts to enqueue jobs one after the other, while something happens to the broker. finish
// checks that all are enqueued, and returns their texts.
func (t *trial) outage(prefix string, n int) (finish func() []string) {
	var commands []map[string]any
	for i := range n {
		commands = append(commands, withTimeout(150, enqueue("Append", fmt.Sprint(prefix, i))))
	}
	p := t.startProducer(t.client, commands...)
	t.eventually(func() bool { return p.done() >= n/20 }, "the producer is at work")
	return func() (texts []string) {
		for i, r := range p.results(t) {
			r.jid(t)
			texts = append(texts, fmt.Sprint(prefix, i))
		}
		return texts
	}
}
