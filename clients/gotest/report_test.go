package gotest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	. "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// logged is a log line of a worker, as JSON.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// about returns the lines about a job, or those with a message.
func (l *logged) about(jidOrMessage string) (found []gjson.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if r := gjson.Parse(line); r.Get("jid").String() == jidOrMessage || r.Get("msg").String() == jidOrMessage {
			found = append(found, r)
		}
	}
	return found
}

// nilError panics when its text is read.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

// TestReports takes a job through each possible end, and checks what the worker logs and which
// hooks it calls. A failure is a warning that says what comes next, and where it occurred, if the
// error knows.
func TestReports(t *testing.T) {
	t.Parallel()
	r := runReported(t)
	r.failuresAreLogged()
	r.otherEndsAreLogged()
	r.failedHooksAreLogged()
	r.failedBackoffIsLogged()
	r.backtracesAreKept()
	r.startAndStopAreLogged()
}

// reports are what a worker says of its jobs: in its log, to its hooks, and in records.
type reports struct {
	t     *testing.T
	v     *brokertest.Vhost
	w     *worker
	jobs  map[string]string // their classes by jid
	logs  logged
	hooks said
}

// runReported runs a worker until all its jobs have come to an end.
func runReported(t *testing.T) *reports {
	t.Helper()
	r := &reports{t: t, v: vhost(t)}
	r.w = &worker{NewWorker(WorkerConfig{URL: r.v.AMQPURL(), Queues: []string{"default", "low"}, Concurrency: 3, Logger: r.logs.logger()}), &said{}, make(chan error, 1)}
	r.w.On(Hooks{
		Failure: func(job *RawJob, err error) {
			r.hooks.add("failure " + job.JID + " " + err.Error())
			switch job.JID {
			case "hostile":
				panic("a hook")
			case "later":
				runtime.Goexit()
			}
		},
		Death: func(job *RawJob, err error) { r.hooks.add("death " + job.JID + " " + err.Error()) },
	})
	cause := errors.New("it broke")
	fails := func(err error) Handler { return func(context.Context, *RawJob) error { return err } }
	r.w.Handle("Well", fails(nil), nil)
	r.w.Handle("Fail", fails(cause), nil)
	r.w.Handle("Nil", fails((*nilError)(nil)), nil)
	r.w.Handle("Later", fails(RetryIn(time.Hour, cause)), nil)
	r.w.Handle("Kill", fails(KillWith(cause)), nil)
	r.w.Handle("Discard", fails(fmt.Errorf("wrapped: %w", Discard("too late"))), nil)
	r.w.Handle("Panic", func(context.Context, *RawJob) error { panic("help") }, nil)
	r.w.Handle("Ends", fails(cause), &HandlerOptions{RetryIn: func(int, error, *RawJob) time.Duration { runtime.Goexit(); return 0 }})
	r.w.Handle("Backoff", fails(cause), &HandlerOptions{RetryIn: func(int, error, *RawJob) time.Duration { panic("no idea") }})

	r.jobs = map[string]string{
		"well": "Well", "fails": "Fail", "hostile": "Fail", "nil": "Nil", "later": "Later", "killed": "Kill", "discarded": "Discard", "panics": "Panic",
		"dies": "Fail", "dropped": "Fail", "backoff": "Backoff", "ends": "Ends", "unknown": "Unhandled", "expires": "Well", "vanishes": "Well", "none": "Panic", "three": "Panic",
	}
	options := map[string]EnqueueOptions{
		"dies": {MaxAttempts: 1}, "dropped": {MaxAttempts: 1, NoDead: true}, "expires": {ExpiresAt: time.Unix(1, 0)},
		"vanishes": {ExpiresAt: time.Unix(1, 0), NoDead: true}, "none": {Backtrace: -1}, "three": {Backtrace: 3},
	}
	for jid, class := range r.jobs {
		o := options[jid]
		o.JID = jid
		_, err := client(t, r.v.AMQPURL()).Enqueue(t.Context(), Args(class), &o)
		require.NoError(t, err)
	}
	r.w.start(t)
	for jid := range r.jobs {
		metricOf(t, r.v, jid)
	}
	r.w.idle(t, r.v, "default")
	r.w.stop(t)
	return r
}

// one returns the only line of the log about a job.
func (r *reports) one(jid string) gjson.Result {
	r.t.Helper()
	lines := r.logs.about(jid)
	require.Len(r.t, lines, 1, "%s: %v", jid, lines)
	return lines[0]
}

func (r *reports) failuresAreLogged() {
	for jid, want := range map[string]struct{ next, class, text string }{
		"fails": {"retry", "error", "it broke"}, "nil": {"retry", "panic", "panic: runtime error: invalid memory address or nil pointer dereference"},
		"later": {"retry", "error", "it broke"}, "panics": {"retry", "panic", "panic: help"}, "unknown": {"retry", "UnknownClass", "no handler for class Unhandled"},
		"killed": {"dead", "error", "it broke"}, "dies": {"dead", "error", "it broke"}, "dropped": {"discarded", "error", "it broke"},
	} {
		line := r.one(jid)
		require.Equal(r.t, "WARN", line.Get("level").String(), jid)
		require.Equal(r.t, "millrace: job failed", line.Get("msg").String(), jid)
		require.Equal(r.t, []string{r.jobs[jid], "default", "1"}, []string{line.Get("class").String(), line.Get("queue").String(), line.Get("attempt").Raw}, jid)
		require.Equal(r.t, []string{want.next, want.class, want.text}, []string{line.Get("next").String(), line.Get("error_class").String(), line.Get("error").String()}, jid)
		require.Equal(r.t, want.next == "retry", line.Get("retry_at").Exists(), jid)
		require.Contains(r.t, r.hooks.all(), "failure "+jid+" "+want.text)
		require.Equal(r.t, want.next != "retry", slices.Contains(r.hooks.all(), "death "+jid+" "+want.text), jid)
	}
	require.InDelta(r.t, float64(time.Hour), r.one("later").Get("retry_in").Float(), float64(2*time.Second))
	require.Contains(r.t, r.one("panics").Get("stack").String(), "report_test.go")
	require.Contains(r.t, r.one("nil").Get("stack").String(), "report_test.go")
}

func (r *reports) otherEndsAreLogged() {
	require.Empty(r.t, r.logs.about("well"))
	require.Equal(r.t, []string{"INFO", "millrace: job discarded", "too late"}, members(r.one("discarded"), "level", "msg", "reason"))
	require.Equal(r.t, []string{"WARN", "millrace: job expired", "dead"}, members(r.one("expires"), "level", "msg", "next"))
	require.Equal(r.t, []string{"INFO", "millrace: job expired", "discarded"}, members(r.one("vanishes"), "level", "msg", "next"))
	for _, line := range r.hooks.all() {
		require.NotContains(r.t, line, "expires")
		require.NotContains(r.t, line, "discarded")
	}
}

func (r *reports) failedHooksAreLogged() {
	require.Len(r.t, r.logs.about("millrace: a hook failed"), 2)
	require.Equal(r.t, []string{"ERROR", "failure"}, members(r.logs.about("millrace: a hook failed")[0], "level", "hook"))
	require.True(r.t, r.logs.about("millrace: a hook failed")[0].Get("error_class").Exists())
	recordOf(r.t, r.v, wire.Retries, "hostile")
	recordOf(r.t, r.v, wire.Retries, "later")
	recordOf(r.t, r.v, wire.Retries, "ends")
}

func (r *reports) failedBackoffIsLogged() {
	lines := r.logs.about("backoff")
	require.Len(r.t, lines, 2)
	require.Equal(r.t, []string{"WARN", "millrace: RetryIn failed, the usual backoff is used", "default", "panic", "panic: no idea"},
		members(lines[0], "level", "msg", "queue", "error_class", "error"))
	require.Contains(r.t, lines[0].Get("stack").String(), "report_test.go")
	backoff := recordOf(r.t, r.v, wire.Retries, "backoff")
	require.InDelta(r.t, 30, backoff.Get("retry_at").Float()-backoff.Get("failed_at").Float(), 15.01)
}

func (r *reports) backtracesAreKept() {
	stackOf := func(jid string) []string {
		return strings.Split(recordOf(r.t, r.v, wire.Retries, jid).Get("backtrace").String(), "\n")
	}
	require.Contains(r.t, stackOf("panics")[1], "report_test.go", "20 lines are kept by default")
	require.Greater(r.t, len(stackOf("panics")), 3)
	require.LessOrEqual(r.t, len(stackOf("panics")), 20)
	require.Len(r.t, stackOf("three"), 3)
	require.False(r.t, recordOf(r.t, r.v, wire.Retries, "none").Get("backtrace").Exists())
}

func (r *reports) startAndStopAreLogged() {
	start, stop := r.logs.about("millrace: worker started"), r.logs.about("millrace: worker stopped")
	require.Len(r.t, start, 1)
	require.Len(r.t, stop, 1)
	require.Equal(r.t, []string{"INFO", Version, r.w.Identity()}, members(start[0], "level", "version", "identity"))
	require.Equal(r.t, `["default","low"]`, start[0].Get("queues").Raw)
	require.Equal(r.t, "3", start[0].Get("concurrency").Raw)
	require.Equal(r.t, "INFO", stop[0].Get("level").String())
}

func members(r gjson.Result, names ...string) (all []string) {
	for _, name := range names {
		all = append(all, r.Get(name).String())
	}
	return all
}

// A failure hook is called before the retry is published. A job whose delivery is lost meanwhile is
// reported as such.
func TestFailureHookRunsBeforeRetry(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	p := brokertest.NewProxy(t, v.AMQPURL())
	var logs logged
	w := &worker{NewWorker(WorkerConfig{URL: p.URL(), Logger: logs.logger()}), &said{}, make(chan error, 1)}
	called, released := make(chan struct{}, 2), make(chan struct{})
	release := sync.OnceFunc(func() { close(released) })
	w.On(Hooks{Failure: func(*RawJob, error) {
		called <- struct{}{}
		<-released
	}})
	lost := make(chan struct{})
	w.Handle("Fail", func(_ context.Context, job *RawJob) error {
		w.said.add("began")
		if !slices.Contains(w.said.all(), "cut") {
			<-lost
		}
		return errors.New("it broke")
	}, nil)
	v.Publish(t, "", "queue.default", amqp.Publishing{Body: []byte(`{"jid":"j","class":"Fail"}`)})
	w.start(t)
	t.Cleanup(release) // before it is stopped
	w.said.has(t, "began")
	p.Cut(t)
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.default") == 1 }, "the broker has it back")
	w.said.add("cut")
	close(lost)
	brokertest.Eventually(t, func() bool { return len(called) == 1 }, "the hook is called, though the delivery is lost")
	p.Heal(t)
	brokertest.Eventually(t, func() bool { return len(called) == 2 }, "the hook is called again")
	require.Empty(t, v.ReadStream(t, wire.Retries), "the hook has not returned")
	release()
	recordOf(t, v, wire.Retries, "j")
	w.idle(t, v, "default")
	var next []string
	for _, line := range logs.about("j") {
		if line.Get("msg").String() == "millrace: job failed" {
			next = append(next, line.Get("next").String())
		}
	}
	require.Equal(t, []string{"redelivery", "retry"}, next)
}
