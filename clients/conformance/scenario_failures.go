package main

import (
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/wire"
)

func outcomes(t *trial) {
	t.serve()
	w := t.worker(settings{Queues: []string{"default"}, Concurrency: 4}).ready("default")
	never := map[string]any{"retry": 0}
	// From here on the queue is bound. A job that waited for that would expire in the sidecar.
	t.metric(t.produce(enqueue("Append", "first"))[0].jid(t))
	got := t.produce(
		enqueue("Fail", "fail"), enqueue("Fatal", "fatal"), enqueue("Discard", "discard"), enqueue("Kill", "kill"), enqueue("Unhandled", "unhandled"),
		with(map[string]any{"timeout": 0.3}, "Wait", "timeout", 30),
		with(map[string]any{"expires_at": now() - 10}, "Append", "expired"),
		with(never, "Fail", "exhausted"), with(map[string]any{"retry": 0, "dead": false}, "Fail", "dropped"),
		with(map[string]any{"retry": 0, "backtrace": 5}, "Fatal", "traced"), with(map[string]any{"retry": false}, "Unhandled", "never"),
	)
	jid := func(i int) string { return got[i].jid(t) }
	type expected struct{ stream, reason, class, message, status string }
	for i, want := range map[int]expected{
		0: {wire.Retries, "", "", "failed on purpose: fail", "failed"}, 1: {wire.Retries, "", "", "", "failed"},
		2: {"", "", "", "", "discarded"}, 3: {wire.DeadJobs, "killed", "Killed", "killed on purpose: kill", "dead"},
		4: {wire.Retries, "", "UnknownClass", "no handler for class Unhandled", "failed"},
		5: {wire.Retries, "", "Timeout", "ran longer than 0.3 s", "failed"},
		6: {wire.DeadJobs, "expired", "expired", "expired before it began", "expired"},
		7: {wire.DeadJobs, "exhausted", "", "failed on purpose: exhausted", "dead"}, 8: {"", "", "", "", "discarded"},
		9: {wire.DeadJobs, "exhausted", "", "", "dead"}, 10: {wire.DeadJobs, "exhausted", "UnknownClass", "", "dead"},
	} {
		require.Equal(t, want.status, t.metric(jid(i)).Get("status").String(), "%+v", want)
		if want.stream == "" {
			continue
		}
		body := t.record(want.stream, jid(i))
		entry, err := wire.ParseEntry(want.stream, 1, body)
		require.NoError(t, err)
		require.Equal(t, want.reason, gjson.GetBytes(body, "reason").String(), "%s", body)
		require.NotEmpty(t, entry.ErrorClass)
		if want.class != "" {
			require.Equal(t, want.class, entry.ErrorClass)
		}
		if want.message != "" {
			require.Equal(t, want.message, entry.ErrorMessage)
		}
		if want.stream == wire.Retries {
			require.Equal(t, 1, entry.Attempt)
			delay := gjson.GetBytes(body, "retry_at").Float() - gjson.GetBytes(body, "failed_at").Float()
			require.True(t, delay >= 14.99 && delay <= 45.01, "the first backoff is 15 to 45 s: %f", delay)
		}
	}
	lines := strings.Split(gjson.GetBytes(t.record(wire.DeadJobs, jid(9)), "backtrace").String(), "\n")
	require.True(t, len(lines) <= 5 && lines[0] != "", "a backtrace of at most 5 lines: %q", lines)
	lines = strings.Split(gjson.GetBytes(t.record(wire.Retries, jid(1)), "backtrace").String(), "\n")
	require.True(t, len(lines) <= 20 && lines[0] != "", "20 lines of a backtrace are kept by default: %q", lines)
	t.eventually(func() bool { return w.count("death", "-") >= 5 }, "the death hooks are called: kill, exhausted, dropped, traced, never")
	require.Zero(t, w.count("ran", "expired"))
	t.put("default", amqp.Publishing{Body: []byte("no job at all")})
	t.eventually(func() bool { return t.ready("default") == 0 }, "what is no job is taken away")
	t.produce(enqueue("Append", "still alive"))
	w.did("ran", "still alive")
	w.stop(t, 20*time.Second)
	require.Zero(t, t.left("default"))
}

func retries(t *trial) {
	t.serve()
	w := t.worker(settings{Queues: []string{"mail"}, Concurrency: 2}).ready("mail")
	got := t.produce(
		with(map[string]any{"queue": "mail", "traceparent": traceparent}, "FailSoon", "well in the end", 3),
		with(map[string]any{"queue": "mail", "traceparent": traceparent, "retry": 2}, "FailSoon", "dies", 99),
		with(map[string]any{"queue": "mail", "traceparent": traceparent}, "Kill", "killed"),
	)
	body := t.record(wire.DeadJobs, got[1].jid(t))
	require.EqualValues(t, 2, gjson.GetBytes(body, "retry_count").Int())
	require.EqualValues(t, 2, gjson.GetBytes(body, "job.retry_count").Int(), "the sidecar's, as the job came last")
	require.Equal(t, "exhausted", gjson.GetBytes(body, "reason").String())
	t.eventually(func() bool { return w.count("ran", "well in the end") == 4 }, "three failures and a success")
	require.Equal(t, 3, w.count("ran", "dies"))
	// The sidecar delivered the second retry. So this shows the traceparent of the first retry,
	// too.
	require.Equal(t, []string{traceparent, traceparent, traceparent}, t.traceparents(wire.Retries, got[0].jid(t), 3), "a retry has the job's traceparent")
	for _, dead := range got[1:] {
		require.Equal(t, []string{traceparent}, t.traceparents(wire.DeadJobs, dead.jid(t), 1), "a dead job has the job's traceparent")
	}
	attempts := map[string]int{}
	for _, e := range w.effects() {
		if e.what == "ran" {
			attempts[e.text]++
			require.Equal(t, attempts[e.text], e.attempt, "attempts are counted")
		}
	}
	t.eventually(func() bool { return len(t.metrics()[got[0].jid(t)]) == 4 }, "a metric for each attempt")
	w.stop(t, 20*time.Second)
	require.Len(t, t.records(wire.DeadJobs), 2)
	t.understood()
}

// confirm makes a job fail before the stream for its retry exists. The job must not be acknowledged
// until the stream exists.
func confirm(t *trial) {
	t.declare("default")
	t.put("default", job("Fail", 0, "early"), job("Kill", 0, "early too"))
	w := t.worker(settings{Queues: []string{"default"}, Concurrency: 2})
	w.did("ran", "early")
	w.did("ran", "early too")
	t.pause(3 * time.Second)
	w.kill()
	t.within(soon, func() bool { return t.ready("default") == 2 }, "the broker still has both jobs")
	w.launch()
	t.eventually(func() bool { return w.count("ran", "early") >= 2 }, "it runs again")
	t.serve()
	t.record(wire.Retries, "raw-Fail-early")
	t.record(wire.DeadJobs, "raw-Kill-early too")
	w.stop(t, 40*time.Second)
	require.Zero(t, t.left("default"))
}
