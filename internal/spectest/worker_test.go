package spectest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// The workers know two jobs besides those of the specification. FlakyJob fails the first time for
// each argument, with the shortest backoff if the language allows that. BrokenJob always fails.

// enqueue calls section 4.2's Python producer. Its usage lines enqueue one more SendEmailJob.
func enqueue(t *testing.T, v *brokertest.Vhost, calls ...[]any) {
	t.Helper()
	raw, err := json.Marshal(calls)
	require.NoError(t, err)
	python.client(t, v, pythonProducer(t, v)).run(t, "enqueue", string(raw))
}

func call(args ...any) []any { return args }

// work makes a worker meet everything that can happen to its jobs.
func work(t *testing.T, v *brokertest.Vhost, s *sidecar, w *process) {
	t.Helper()
	const soon = 1.5
	enqueue(t, v,
		call("enqueue", "SendEmailJob", []any{"critical@example.com", "Quick!"}, "critical"),
		call("schedule", "SendEmailJob", []any{"later@example.com", "Hello again!"}, soon),
		call("enqueue", "FlakyJob", []any{"retried"}),
		call("enqueue", "FlakyJob", []any{"dead"}, "default", 0),
		call("enqueue", "BrokenJob", []any{"for ever"}, "default", 1),
	)
	w.says(t, "Sending email to user@example.com: Hello!")
	w.says(t, "Sending email to critical@example.com: Quick!")
	w.says(t, "Sending email to later@example.com: Hello again!")

	// A failed job comes back as a retry.
	retry := s.entry(t, "retries", "FlakyJob")
	require.Equal(t, int64(1), retry.Get("retry_count").Int())
	require.Equal(t, "not the first time", retry.Get("error_message").String())
	require.Greater(t, retry.Get("retry_at").Float()-retry.Get("failed_at").Float(), 14.9, "the backoff is 15 s at least")
	s.post(t, "/api/retries/%s/retry", retry.Get("jid").String())
	w.says(t, "FlakyJob ran: retried")

	// A job without attempts left becomes a dead job, and comes back when a user retries it.
	dead := s.entry(t, "dead-jobs", "FlakyJob")
	require.Equal(t, int64(0), dead.Get("retry_count").Int())
	s.post(t, "/api/dead-jobs/%s/retry", dead.Get("jid").String())
	w.says(t, "FlakyJob ran: dead")

	jid := s.entry(t, "retries", "BrokenJob").Get("jid").String()
	s.post(t, "/api/retries/%s/retry", jid)
	dead = s.entry(t, "dead-jobs", "BrokenJob")
	require.Equal(t, jid, dead.Get("jid").String())
	require.Equal(t, int64(1), dead.Get("retry_count").Int())
	require.Equal(t, "never works", dead.Get("error_message").String())
	w.saysTimes(t, 2, "BrokenJob fails: for ever")

	// A dead job that is retried starts with attempt 1.
	s.post(t, "/api/dead-jobs/%s/retry", jid)
	require.Equal(t, int64(1), s.entry(t, "retries", "BrokenJob").Get("retry_count").Int())
	w.saysTimes(t, 3, "BrokenJob fails: for ever")
	s.entries(t, 0, "dead-jobs", "FlakyJob")
	s.entries(t, 0, "dead-jobs", "BrokenJob")
}

// comesBack checks that a failed job comes back at its time, and not before.
func comesBack(t *testing.T, v *brokertest.Vhost, s *sidecar, w *process) {
	t.Helper()
	enqueue(t, v, call("enqueue", "FlakyJob", []any{"by itself"}))
	retry := s.entry(t, "retries", "FlakyJob")
	at := retry.Get("retry_at").Float()
	require.InDelta(t, retry.Get("failed_at").Float()+15, at, 0.5, "the shortest backoff")
	w.saysWithin(t, 30*time.Second, 1, "FlakyJob ran: by itself")
	require.GreaterOrEqual(t, float64(time.Now().UnixNano())/1e9, at)
	s.entries(t, 0, "retries", "FlakyJob")
}

func TestPythonWorker(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := serve(t, v)
	code := specification(t, "3.3-worker.py", imports("import json, random, time"), supplied)
	w := python.client(t, v, code).start(t, "work")
	w.says(t, "Worker started")
	work(t, v, s, w)
	comesBack(t, v, s, w)
}

func rubyWorker(t *testing.T, v *brokertest.Vhost, differences ...difference) *client {
	t.Helper()
	return ruby.client(t, v, specification(t, "4.3-worker.rb", append(differences, host(v, `'amqp://localhost'`), rubyQueues, rubyJobs)...))
}

func TestRubyWorkerAsWrittenDeclaresFirst(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	w := rubyWorker(t, v).start(t, "specification")
	brokertest.Eventually(t, func() bool {
		q, _ := inspect(t, v, "queue.default")
		return q.Consumers == 10
	}, "the worker consumes")
	s := serve(t, v)
	work(t, v, s, w)
	comesBack(t, v, s, w)

	brokertest.Eventually(t, func() bool { return len(v.ReadStream(t, "heartbeats")) > 0 }, "the worker's heartbeat")
	require.Contains(t, string(v.ReadStream(t, "heartbeats")[0].Body), `"queues":["queue.critical","queue.default"]`)
	metrics := ""
	for _, d := range v.ReadStream(t, "job_metrics") {
		metrics += string(d.Body)
	}
	require.Contains(t, metrics, `"status":"success"`)
	require.Contains(t, metrics, `"status":"failed"`)
}

func TestRubyWorkerBehindMillrace(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := serve(t, v)
	enqueue(t, v, call("enqueue", "SendEmailJob", []any{"first@example.com", "Hello!"}, "critical"))
	brokertest.Eventually(t, func() bool { return hasQueue(t, v, "queue.critical") && hasQueue(t, v, "queue.default") }, "Millrace makes the queues")

	asWritten := ruby.client(t, v, "").start(t, "declare_plain", "queue.critical")
	asWritten.fails(t)
	require.Contains(t, asWritten.said(), "PRECONDITION_FAILED", "without the argument no client can declare a queue that has it")

	w := rubyWorker(t, v, priority).start(t, "specification")
	w.says(t, "Sending email to first@example.com: Hello!")
	work(t, v, s, w)
}

func TestGoWorker(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := serve(t, v)
	// This worker declares nothing, so its queues must exist.
	require.Contains(t, python.client(t, v, "").run(t, "declare", "queue.critical", "queue.default"), "declared")
	w := goProgram(t, v, "worker", specification(t, "4.4-worker.go.txt", goImport, goHost, goQueues, goHostname, goJobs))
	w.says(t, "Worker started")
	work(t, v, s, w)

	// It rejects a job of an unknown class, which becomes a dead job.
	enqueue(t, v, call("enqueue", "UnknownJob", []any{}))
	require.Equal(t, "rejected", s.entry(t, "dead-jobs", "UnknownJob").Get("error_class").String())

	// As written, it never acknowledges a failed job. When it ends, the broker delivers these jobs
	// again, although they have long been handed over as retries or dead jobs.
	require.Zero(t, v.QueueLength(t, "queue.default"))
	w.kill()
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.default") == 5 }, "five failures, five jobs that come again")
}

// goProgram builds a program from the specification's code and a driver, and starts it.
func goProgram(t *testing.T, v *brokertest.Vhost, name, code string) *process {
	t.Helper()
	dir := t.TempDir()
	return start(t, "Go's "+name, command(t.Context(), dir, v.AMQPURL(), goBinary(t, dir, name, code)))
}

func TestGoMetric(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	serve(t, v)
	dir := t.TempDir()
	run(t, command(t.Context(), dir, v.AMQPURL(), goBinary(t, dir, "metric", specification(t, "3.6-metric.go.txt", goPackage))))

	brokertest.Eventually(t, func() bool { return len(v.ReadStream(t, "job_metrics")) == 2 }, "two metrics")
	records := v.ReadStream(t, "job_metrics")
	require.True(t, strings.Contains(string(records[0].Body), `"status":"success"`), "%s", records[0].Body)
	require.True(t, strings.Contains(string(records[1].Body), `"status":"failed"`), "%s", records[1].Body)
}

func TestHeartbeatOfSectionThree(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	serve(t, v)
	asWritten := ruby.client(t, v, specification(t, "3.5-heartbeat.rb", hurry)).start(t, "heartbeat")
	asWritten.says(t, "o exchange 'heartbeats'") // "no" or "No"
	require.Empty(t, v.ReadStream(t, "heartbeats"))

	ruby.client(t, v, specification(t, "3.5-heartbeat.rb", hurry, bodyFirst)).start(t, "heartbeat")
	brokertest.Eventually(t, func() bool { return len(v.ReadStream(t, "heartbeats")) > 0 }, "a heartbeat")
	require.Contains(t, string(v.ReadStream(t, "heartbeats")[0].Body), `"type":"heartbeat"`)
}
