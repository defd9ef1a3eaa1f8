package main

import (
	"net/http"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/wire"
)

func control(t *trial) {
	sidecar := t.serve()
	t.declare("default", "other")
	w := t.worker(settings{Queues: []string{"default", "other"}, Concurrency: 3}).ready("other")
	t.control(map[string]any{"id": "1", "op": "pause", "identity": "*", "queue": "default"})
	t.eventually(func() bool { return !t.consumed("default") }, "default is paused")
	t.put("default", job("Append", 0, "paused"))
	t.put("other", job("Append", 0, "not paused"), job("Wait", 0, "cancelled", 600))
	w.did("ran", "not paused")
	w.did("began", "cancelled")
	require.Zero(t, w.count("ran", "paused"))
	t.control(map[string]any{"id": "2", "op": "cancel", "identity": "another:1:x", "jid": "raw-Wait-cancelled"})
	t.control(map[string]any{"id": "3", "op": "resume", "identity": "*", "queue": "default"})
	w.did("ran", "paused")
	require.Zero(t, w.count("stopped", "cancelled"), "the command was for another worker")
	t.control(map[string]any{"id": "4", "op": "cancel", "identity": "*", "jid": "raw-Wait-cancelled"})
	w.did("stopped", "cancelled")
	require.Equal(t, "discarded", t.metric("raw-Wait-cancelled").Get("status").String())
	t.control(map[string]any{"id": "5", "op": "quiet", "identity": "*"})
	t.eventually(func() bool { return !t.consumed("default") && !t.consumed("other") }, "it is quiet")
	w.did("quiet", "-")
	t.control(map[string]any{"id": "6", "op": "nonsense", "identity": "*"})
	t.runs(w.program)
	t.control(map[string]any{"id": "7", "op": "stop", "identity": "*"})
	t.eventually(w.hasExited, "it stops")
	require.NoError(t, w.err)
	require.Empty(t, t.records(wire.Retries))

	// A worker that starts after a queue was paused asks for the paused queues.
	t.must(http.MethodPut, "/api/job-queues/default/pause")
	t.put("default", job("Append", 0, "paused for later"))
	w = t.worker(settings{Queues: []string{"default", "other"}, Concurrency: 3}).ready("other")
	t.put("other", job("Append", 0, "at once"))
	w.did("ran", "at once")
	require.Zero(t, w.count("ran", "paused for later"))
	require.False(t, t.consumed("default"))
	t.must(http.MethodPut, "/api/job-queues/default/resume")
	w.did("ran", "paused for later")

	// A worker that reconnects while there is no leader keeps what it knew.
	t.must(http.MethodPut, "/api/job-queues/default/pause")
	t.eventually(func() bool { return !t.consumed("default") }, "default is paused again")
	sidecar.stop(t, 20*time.Second)
	t.closeWorkers()
	t.put("default", job("Append", 0, "paused without a leader"))
	t.put("other", job("Append", 0, "connected again"))
	w.did("ran", "connected again")
	require.Zero(t, w.count("ran", "paused without a leader"))
	require.False(t, t.consumed("default"))
	w.stop(t, 20*time.Second)
}

func stop(t *trial) {
	t.serve()
	t.declare("default")
	w := t.worker(settings{Queues: []string{"default"}, Concurrency: 3, StopTimeout: 2}).ready("default")
	t.put("default", job("Sleep", 0, "soon done", 1.5))
	w.did("began", "soon done")
	w.signal(syscall.SIGTSTP)
	w.did("quiet", "-")
	t.eventually(func() bool { return !t.consumed("default") }, "it is quiet")
	t.put("default", job("Append", 0, "for later"))
	w.did("ran", "soon done")
	t.runs(w.program)
	w.stop(t, 20*time.Second)
	require.Equal(t, 1, t.ready("default"))

	// One job ignores the stop and one heeds it. Both are handed back, and neither counts as a
	// death.
	w = t.worker(settings{Queues: []string{"default"}, Concurrency: 3, StopTimeout: 2, MaxDeaths: 1})
	w.did("ran", "for later")
	t.put("default", job("Sleep", 0, "deaf", 600), job("Wait", 0, "polite", 600))
	w.handsBack()
	require.Equal(t, 1, w.count("shutdown", "-"))

	// A second SIGTERM ends the wait.
	w = t.worker(settings{Queues: []string{"default"}, Concurrency: 3, StopTimeout: 600, MaxDeaths: 1})
	w.did("began", "deaf")
	w.did("began", "polite")
	w.signal(syscall.SIGTERM)
	w.did("stopped", "polite")
	w.handsBack()
	require.Equal(t, 1, w.count("shutdown", "-"))
}

// handsBack waits until both jobs have begun, stops the worker, and checks that both are back.
func (w *worker) handsBack() {
	t := w.t
	w.did("began", "deaf")
	w.did("began", "polite")
	w.stop(t, 20*time.Second)
	t.within(soon, func() bool { return t.ready("default") == 2 }, "both are back")
	require.Equal(t, 1, w.count("stopped", "polite"))
	require.Empty(t, t.records(wire.Retries))
	require.Empty(t, t.records(wire.DeadJobs))
	for _, r := range t.records(wire.JobBegins) {
		require.NotEqual(t, "ended", gjson.GetBytes(r, "type").String(), "a job that was handed back has not ended: %s", r)
	}
}
