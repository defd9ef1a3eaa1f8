package gotest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	. "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

type tooBusy struct{}

func (*tooBusy) Error() string { return "too busy" }

// TestOutcomes takes a job through each outcome.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	w := newTestWorker(t, WorkerConfig{URL: v.AMQPURL(), Tag: "test", Labels: map[string]string{"zone": "a"}})
	var deaths said
	w.On(Hooks{
		Startup: func() { w.said.add("startup") }, Quiet: func() { w.said.add("quiet") }, Shutdown: func() { panic("a hook") },
		Death: func(job *RawJob, err error) { deaths.add(job.JID + " " + err.Error()) },
	})
	w.Use(func(next Handler) Handler {
		return func(ctx context.Context, job *RawJob) error {
			if JobFrom(ctx) != job || job.Attempt != 1 {
				return errors.New("not my job")
			}
			return next(ctx, job)
		}
	})
	w.Handle("Well", w.says(nil), nil)
	w.Handle("Fail", w.says(func(context.Context, string) error { return fmt.Errorf("cannot: %w", &tooBusy{}) }), nil)
	w.Handle("Panic", w.says(func(context.Context, string) error { panic("help") }), nil)
	w.Handle("Goexit", w.says(func(context.Context, string) error { runtime.Goexit(); return nil }), nil)
	w.Handle("Slow", w.says(func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }), &HandlerOptions{Timeout: 50 * time.Millisecond})
	w.Handle("Later", w.says(func(context.Context, string) error { return RetryIn(time.Hour, &tooBusy{}) }), nil)
	w.Handle("Own", w.says(func(context.Context, string) error { return &tooBusy{} }),
		&HandlerOptions{RetryIn: func(int, error, *RawJob) time.Duration { return 2 * time.Hour }})
	w.Handle("Discard", w.says(func(context.Context, string) error { return Discard("late") }), nil)
	w.Handle("Kill", w.says(func(context.Context, string) error { return KillWith(&tooBusy{}) }), nil)

	jids := map[string]string{}
	for _, class := range []string{"Well", "Fail", "Panic", "Goexit", "Slow", "Later", "Own", "Discard", "Kill", "Unhandled"} {
		jids[class] = enqueue(t, v, class, class, &EnqueueOptions{Backtrace: 3})
	}
	jids["exhausted"] = enqueue(t, v, "Fail", "exhausted", &EnqueueOptions{MaxAttempts: 1})
	jids["dropped"] = enqueue(t, v, "Fail", "dropped", &EnqueueOptions{MaxAttempts: 1, NoDead: true})
	jids["expired"] = enqueue(t, v, "Well", "expired", &EnqueueOptions{ExpiresAt: time.Now().Add(-time.Second)})
	jids["args"] = enqueue(t, v, "Well", "args", nil)
	v.Publish(t, wire.ExchangeDirect, "default", amqp.Publishing{Body: []byte("no job")})
	w.start(t)

	for what, want := range map[string]struct{ stream, class, message, status string }{
		"Fail":      {wire.Retries, "*gotest.tooBusy", "cannot: too busy", "failed"},
		"Panic":     {wire.Retries, "panic", "panic: help", "failed"},
		"Goexit":    {wire.Retries, "Goexit", "the function ended its goroutine", "failed"},
		"Slow":      {wire.Retries, "Timeout", "ran longer than 0.05 s", "failed"},
		"Later":     {wire.Retries, "*gotest.tooBusy", "too busy", "failed"},
		"Own":       {wire.Retries, "*gotest.tooBusy", "too busy", "failed"},
		"Unhandled": {wire.Retries, "UnknownClass", "no handler for class Unhandled", "failed"},
		"Kill":      {wire.DeadJobs, "*gotest.tooBusy", "too busy", "dead"},
		"exhausted": {wire.DeadJobs, "*gotest.tooBusy", "cannot: too busy", "dead"},
		"expired":   {wire.DeadJobs, "expired", "expired before it began", "expired"},
	} {
		r := recordOf(t, v, want.stream, jids[what])
		require.Equal(t, want.class, r.Get("error_class").String(), what)
		require.Equal(t, want.message, r.Get("error_message").String(), what)
		require.Equal(t, want.status, metricOf(t, v, jids[what]).Get("status").String(), what)
	}
	for what, status := range map[string]string{"Well": "success", "Discard": "discarded", "dropped": "discarded"} {
		require.Equal(t, status, metricOf(t, v, jids[what]).Get("status").String(), what)
	}
	require.Contains(t, recordOf(t, v, wire.Retries, jids["Panic"]).Get("backtrace").String(), "worker_test.go")
	later := recordOf(t, v, wire.Retries, jids["Later"])
	require.InDelta(t, 3600, later.Get("retry_at").Float()-later.Get("failed_at").Float(), 0.01)
	own := recordOf(t, v, wire.Retries, jids["Own"])
	require.InDelta(t, 7200, own.Get("retry_at").Float()-own.Get("failed_at").Float(), 0.01)
	w.idle(t, v, "default")
	deaths.has(t, jids["Kill"]+" too busy", jids["exhausted"]+" cannot: too busy", jids["dropped"]+" cannot: too busy")
	d, ok := v.Get(t, wire.DeadLetters)
	_ = d
	require.False(t, ok, "without a policy a rejected job is gone")
	w.said.has(t, "startup")
	w.stop(t)
	require.NotContains(t, w.said.all(), "expired")

	beats := v.ReadStream(t, wire.Heartbeats)
	last, err := wire.ParseHeartbeat(beats[len(beats)-1].Body)
	require.NoError(t, err)
	require.Equal(t, w.Identity(), last.Identity)
	require.Equal(t, wire.StateStopping, last.State)
	require.Zero(t, last.Busy)
	require.Positive(t, last.RSSKB)
	require.Equal(t, "running", gjson.GetBytes(beats[0].Body, "state").String())
	require.Equal(t, `["opened","closed"]`, types(t, v))
}

// types returns the types of the records in the stream of begins.
func types(t *testing.T, v *brokertest.Vhost) string {
	t.Helper()
	text := "["
	for i, d := range v.ReadStream(t, wire.JobBegins) {
		if i > 0 {
			text += ","
		}
		text += gjson.GetBytes(d.Body, "type").Raw
	}
	return text + "]"
}

func TestStrictAndWeightedLanes(t *testing.T) {
	t.Parallel()
	v := vhost(t, "critical", "low", "slow")
	var jobs []EnqueueParams
	for i := range 20 {
		for _, q := range []string{"low", "critical"} {
			jobs = append(jobs, EnqueueParams{Args: Args("Well", fmt.Sprintf("%s %d", q, i)), Options: EnqueueOptions{Queue: q}})
		}
	}
	_, err := client(t, v.AMQPURL()).EnqueueBulk(t.Context(), jobs)
	require.NoError(t, err)
	w := newTestWorker(t, WorkerConfig{
		URL: v.AMQPURL(), Queues: []string{"critical", "low"}, Concurrency: 1,
		Lanes: []Lane{{Name: "slow", Weights: map[string]int{"slow": 2, "default": 1}, Concurrency: 1}},
	})
	enqueue(t, v, "Block", "slow job", &EnqueueOptions{Queue: "slow"})
	release := make(chan struct{})
	const lasts = 60 * time.Millisecond // by then the next critical job is there, also on a broker that delays small frames
	w.Handle("Well", w.says(func(context.Context, string) error { <-time.After(lasts); return nil }), nil)
	w.Handle("Block", w.says(func(context.Context, string) error { <-release; return nil }), nil)
	w.start(t)
	w.said.has(t, "low 19", "critical 19", "slow job")
	brokertest.Eventually(t, func() bool { return w.busy(t, v) == 1 }, "it alone still runs: the other lane did not wait for it")
	close(release)
	w.idle(t, v, "slow")
	var order []string
	for _, line := range w.said.all() {
		if line != "slow job" {
			order = append(order, line)
		}
	}
	early := 0
	for _, line := range order[:20] {
		if line[0] == 'c' {
			early++
		}
	}
	require.GreaterOrEqual(t, early, 17, "critical jobs first, except those that ran before the first critical one: %v", order)
}

func TestPriority(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	for i := range 10 {
		enqueue(t, v, "Well", fmt.Sprint(i), &EnqueueOptions{Priority: i})
	}
	w := newTestWorker(t, WorkerConfig{URL: v.AMQPURL(), Concurrency: 1})
	w.Handle("Well", w.says(nil), nil)
	w.start(t)
	w.idle(t, v, "default")
	require.Equal(t, []string{"9", "8", "7", "6", "5", "4", "3", "2", "1", "0"}, w.said.all())
}

func TestControl(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	w := newTestWorker(t, WorkerConfig{URL: v.AMQPURL(), Concurrency: 2})
	w.Handle("Well", w.says(nil), nil)
	w.Handle("Wait", w.says(func(ctx context.Context, _ string) error {
		<-ctx.Done()
		w.said.add(context.Cause(ctx).Error())
		return ctx.Err()
	}), nil)

	jid := enqueue(t, v, "Wait", "waits", nil)
	w.start(t)
	w.said.has(t, "waits")
	brokertest.Eventually(t, func() bool {
		beat := w.lastBeat(t, v)
		return len(beat.Work) == 1 && beat.Work[0].JID == jid
	}, "a heartbeat names the job")

	control(t, v, map[string]any{"op": "pause", "identity": "*", "queue": "default"})
	brokertest.Eventually(t, func() bool { return consumers(t, v, "default") == 0 }, "paused")
	enqueue(t, v, "Well", "after the pause", nil)
	control(t, v, map[string]any{"op": "cancel", "identity": "another:1:worker", "jid": jid})
	control(t, v, map[string]any{"op": "cancel", "identity": w.Identity(), "jid": jid})
	w.said.has(t, ErrCancelled.Error())
	require.Equal(t, "discarded", metricOf(t, v, jid).Get("status").String())
	require.NotContains(t, w.said.all(), "after the pause")
	control(t, v, map[string]any{"op": "resume", "identity": "*", "queue": "default"})
	w.said.has(t, "after the pause")
	control(t, v, map[string]any{"op": "quiet", "identity": "*"})
	brokertest.Eventually(t, func() bool { return consumers(t, v, "default") == 0 }, "quiet")
	brokertest.Eventually(t, func() bool { return w.lastBeat(t, v).State == wire.StateQuiet }, "a heartbeat says so")
	control(t, v, map[string]any{"op": "stop", "identity": "*"})
	brokertest.Eventually(t, func() bool { return len(w.end) == 1 }, "stopped")
	require.Empty(t, v.ReadStream(t, wire.Retries))
}

func TestPausedAtStart(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	leader := v.Channel(t)
	_, err := leader.QueueDeclare(wire.LeaderInbox, false, false, true, false, nil)
	require.NoError(t, err)
	asked, err := leader.Consume(wire.LeaderInbox, "", true, false, false, false, nil)
	require.NoError(t, err)
	w := newTestWorker(t, WorkerConfig{URL: v.AMQPURL()})
	w.Handle("Well", w.says(nil), nil)
	enqueue(t, v, "Well", "well", nil)
	w.start(t)
	question := <-asked
	require.Equal(t, "state", gjson.GetBytes(question.Body, "command").String())
	require.NoError(t, leader.Publish("", question.ReplyTo, false, false, amqp.Publishing{
		CorrelationId: question.CorrelationId, Body: []byte(`{"status":200,"paused":["default"]}`),
	}))
	brokertest.Eventually(t, func() bool { return len(v.ReadStream(t, wire.Heartbeats)) > 0 }, "it works")
	require.Zero(t, consumers(t, v, "default"))
	control(t, v, map[string]any{"op": "resume", "identity": "*", "queue": "default"})
	w.said.has(t, "well")
}

// TestStopReturnsJobs stops a worker whose job does not end.
func TestStopReturnsJobs(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	var logs logged
	w := newTestWorker(t, WorkerConfig{URL: v.AMQPURL(), StopTimeout: 100 * time.Millisecond, Logger: logs.logger()})
	release, ended := make(chan struct{}), make(chan struct{})
	w.Handle("Deaf", w.says(func(context.Context, string) error { defer close(ended); <-release; return errors.New("too late") }), nil)
	w.Handle("Polite", func(ctx context.Context, job *RawJob) error {
		w.said.add("polite")
		<-job.Stopping()
		return ErrHandBack
	}, nil)

	w.Handle("Obedient", w.says(func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }), nil)
	deaf := enqueue(t, v, "Deaf", "deaf", nil)
	enqueue(t, v, "Polite", "", nil)
	enqueue(t, v, "Obedient", "obedient", nil)
	w.start(t)
	w.said.has(t, "deaf", "polite", "obedient")
	w.stop(t)
	require.Equal(t, 3, v.QueueLength(t, "queue.default"))
	close(release)
	<-ended
	require.Empty(t, v.ReadStream(t, wire.Retries))
	require.Empty(t, v.ReadStream(t, wire.JobMetrics))
	require.Equal(t, 3, v.QueueLength(t, "queue.default"))
	lines := logs.about(deaf)
	require.Len(t, lines, 1)
	require.Equal(t, []string{"WARN", "millrace: job handed back, its handler did not end within the stop timeout", "Deaf", "default", "1"},
		members(lines[0], "level", "msg", "class", "queue", "attempt"))

	// A job that was returned on a stop is no suspect, also after several times.
	again := newTestWorker(t, WorkerConfig{URL: v.AMQPURL(), MaxDeaths: 1})
	for _, class := range []string{"Deaf", "Polite", "Obedient"} {
		again.Handle(class, again.says(nil), nil)
	}
	again.start(t)
	again.said.has(t, "deaf", "", "obedient")
	again.idle(t, v, "default")
	again.stop(t)
	require.Empty(t, v.ReadStream(t, wire.DeadJobs))

	// A handler that ends in time causes no warning.
	patient := newTestWorker(t, WorkerConfig{URL: v.AMQPURL(), Logger: logs.logger()})
	patient.Handle("Polite", func(_ context.Context, job *RawJob) error {
		patient.said.add("polite")
		<-job.Stopping()
		return ErrHandBack
	}, nil)
	polite := enqueue(t, v, "Polite", "", nil)
	patient.start(t)
	patient.said.has(t, "polite")
	patient.stop(t)
	lines = logs.about(polite)
	require.Len(t, lines, 1)
	require.Equal(t, []string{"INFO", "millrace: job handed back", "Polite", "default", "1"}, members(lines[0], "level", "msg", "class", "queue", "attempt"))
}

// TestConnectionLost cuts the network while a job runs. The job comes again, and its first outcome
// is dropped.
func TestConnectionLost(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	p := brokertest.NewProxy(t, v.AMQPURL())
	w := newTestWorker(t, WorkerConfig{URL: p.URL(), MaxDeaths: 1})
	release := make(chan struct{})
	w.Handle("Wait", w.says(func(context.Context, string) error { <-release; return errors.New("failed") }), nil)
	jid := enqueue(t, v, "Wait", "waits", nil)
	w.start(t)
	w.said.has(t, "waits")
	p.Cut(t)
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.default") == 1 }, "the broker has it back")
	p.Heal(t)
	brokertest.Eventually(t, func() bool { return len(w.said.all()) == 2 }, "it comes again")
	close(release)
	recordOf(t, v, wire.Retries, jid)
	w.idle(t, v, "default")
	w.stop(t)
	require.Len(t, v.ReadStream(t, wire.Retries), 1)
	require.Empty(t, v.ReadStream(t, wire.DeadJobs), "its process did not die")
}

// TestStopWithoutConnection stops a worker that cannot reach its broker any more.
func TestStopWithoutConnection(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	p := brokertest.NewProxy(t, v.AMQPURL())
	w := newTestWorker(t, WorkerConfig{URL: p.URL()})
	w.start(t)
	brokertest.Eventually(t, func() bool { return consumers(t, v, "default") == 1 }, "it consumes")
	p.Cut(t)
	brokertest.Eventually(t, func() bool { return consumers(t, v, "default") == 0 }, "it is cut off")
	w.stop(t)
}

func TestInvalidConfigurations(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]WorkerConfig{
		"URL": {URL: "x"}, "both": {Queues: []string{"a"}, Weights: map[string]int{"a": 1}}, "weight": {Weights: map[string]int{"a": 0}},
		"twice": {Queues: []string{"a", "a"}}, "name": {Queues: []string{""}}, "weighted name": {Weights: map[string]int{"a\n": 1}},
		"lanes": {Lanes: []Lane{{Name: "x", Queues: []string{"a"}}, {Name: "x", Queues: []string{"b"}}}}, "empty lane": {Lanes: []Lane{{}}},
		"concurrency": {Lanes: []Lane{{Queues: []string{"a"}, Concurrency: -1}}}, "tag": {Tag: "a:b"},
	} {
		if cfg.URL == "" {
			cfg.URL = "amqp://localhost"
		}
		require.Error(t, NewWorker(cfg).Run(t.Context()), name)
	}
	v := vhost(t)
	u, err := amqp.ParseURI(v.AMQPURL())
	require.NoError(t, err)
	u.Password = "wrong"
	require.ErrorContains(t, NewWorker(WorkerConfig{URL: u.String()}).Run(t.Context()), "turns us away")
}
