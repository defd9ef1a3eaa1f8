package millracetest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	millrace "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/clients/go/millracetest"
)

func signUp(ctx context.Context, jobs millrace.Enqueuer, address string) error {
	if _, err := jobs.Enqueue(ctx, millrace.Args("Welcome", address, 1), &millrace.EnqueueOptions{Queue: "mail"}); err != nil {
		return err
	}
	_, err := jobs.EnqueueIn(ctx, time.Hour, millrace.Args("Remind", address), nil)
	return err
}

func newWorker() *millrace.Worker {
	return millrace.NewWorker(millrace.WorkerConfig{URL: "amqp://localhost", Logger: slog.New(slog.DiscardHandler)})
}

type welcomeArgs struct{ To string }

func (welcomeArgs) Kind() string { return "Welcome" }

// A delayed message is a job, with the message as its args.
func TestMessages(t *testing.T) {
	fake := millracetest.NewFake(nil)
	message := millrace.Message{Exchange: "orders", Body: []byte("\xff"), Properties: millrace.MessageProperties{Timestamp: time.Unix(1795000000, 0)}}
	var jobs millrace.Enqueuer = fake
	jid, err := jobs.PublishIn(t.Context(), time.Hour, message, &millrace.EnqueueOptions{JID: "mine"})
	require.NoError(t, err)
	require.Equal(t, "mine", jid)
	_, err = jobs.PublishAt(t.Context(), time.Unix(1795000000, 0), message, nil)
	require.NoError(t, err)
	require.Equal(t, []millrace.Message{message, message}, millracetest.Enqueued[millrace.Message](t, fake))
	require.Equal(t, "millrace.messages", fake.Jobs()[0].Queue)
	require.EqualValues(t, 1795000000, fake.Jobs()[1].At.Unix())
}

// Typed args are compared as values. The options of their kind apply.
func TestEnqueued(t *testing.T) {
	t.Parallel()
	fake := millracetest.NewFake(nil)
	require.Empty(t, millracetest.Enqueued[welcomeArgs](t, fake))
	for _, to := range []string{"ann", "bob"} {
		_, err := fake.Enqueue(t.Context(), welcomeArgs{to}, &millrace.EnqueueOptions{Queue: "mail", Fields: map[string]any{"type": "scheduled_job"}})
		require.NoError(t, err)
		_, err = fake.Enqueue(t.Context(), millrace.Args("Other", 1), nil)
		require.NoError(t, err)
	}
	at := time.UnixMilli(4e12)
	_, err := fake.EnqueueAt(t.Context(), at, welcomeArgs{"cleo"}, nil)
	require.NoError(t, err)
	require.Equal(t, []welcomeArgs{{"ann"}, {"bob"}, {"cleo"}}, millracetest.Enqueued[welcomeArgs](t, fake))
	jobs := fake.Jobs("Welcome")
	require.Equal(t, "mail", jobs[0].Queue)
	require.True(t, jobs[0].At.IsZero())
	require.True(t, jobs[2].At.Equal(at))
	require.Equal(t, `[{"To":"cleo"}]`, string(jobs[2].Args))
	require.PanicsWithValue(t, "millracetest: there is no worker to run jobs: give one to NewFake or NewInline", func() { _ = fake.Drain(t.Context()) })
}

// A job goes through its retries until it is dead, as in production but without the waits.
func TestRetriesInFake(t *testing.T) {
	t.Parallel()
	w := newWorker()
	var hooks, ran []string
	w.On(millrace.Hooks{
		Failure: func(job *millrace.RawJob, err error) {
			hooks = append(hooks, fmt.Sprint("failure ", job.Attempt, " ", err))
		},
		Death: func(job *millrace.RawJob, err error) {
			hooks = append(hooks, fmt.Sprint("death ", job.Attempt, " ", err))
		},
	})
	broken := errors.New("it broke")
	millrace.Handle(w, func(_ context.Context, job *millrace.Job[welcomeArgs]) error {
		ran = append(ran, fmt.Sprint(job.Args.To, " ", job.Attempt))
		switch {
		case job.Args.To == "discard":
			return millrace.Discard("why not")
		case job.Args.To == "once" && job.Attempt > 1:
			return nil
		}
		return broken
	}, &millrace.HandlerOptions{RetryIn: func(int, error, *millrace.RawJob) time.Duration { return time.Hour }})
	fake := millracetest.NewFake(w)
	for _, to := range []string{"discard", "twice", "once"} {
		_, err := fake.Enqueue(t.Context(), welcomeArgs{to}, &millrace.EnqueueOptions{JID: to, MaxAttempts: 2})
		require.NoError(t, err)
	}
	_, err := fake.Enqueue(t.Context(), welcomeArgs{"expired"}, &millrace.EnqueueOptions{JID: "expired", ExpiresAt: time.Unix(1, 0)})
	require.NoError(t, err)

	err = fake.Drain(t.Context())
	require.EqualError(t, err, "Welcome twice, attempt 1: it broke\nWelcome once, attempt 1: it broke")
	require.ErrorIs(t, err, broken)
	require.Equal(t, []string{"discard 1", "twice 1", "once 1"}, ran)
	require.Empty(t, fake.Jobs())
	retries := fake.Retries()
	require.Len(t, retries, 2)
	require.Equal(t, "twice", retries[0].JID)
	require.Equal(t, 2, retries[0].Attempt)
	require.Equal(t, broken, retries[0].Err)
	require.WithinDuration(t, time.Now().Add(time.Hour), retries[0].At, time.Minute)

	require.EqualError(t, fake.Retry(t.Context()), "Welcome twice, attempt 2: it broke")
	require.Equal(t, []string{"twice 2", "once 2"}, ran[3:])
	require.Empty(t, fake.Retries())
	require.NoError(t, fake.Retry(t.Context()))
	dead := fake.Dead("Welcome")
	require.Len(t, dead, 2)
	require.Equal(t, "expired", dead[0].JID)
	require.Equal(t, "twice", dead[1].JID)
	require.Equal(t, 2, dead[1].Attempt)
	require.Equal(t, []string{"failure 1 it broke", "failure 1 it broke", "failure 2 it broke", "death 2 it broke"}, hooks)
}

// The context of a handler ends by a timeout, by a cancellation, or at the end of the worker.
func TestContextOfHandlerEnds(t *testing.T) {
	t.Parallel()
	w := newWorker()
	started := make(chan string, 1)
	millrace.Handle(w, func(ctx context.Context, job *millrace.Job[welcomeArgs]) error {
		started <- job.JID
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-job.Stopping():
			return millrace.ErrHandBack
		}
	}, &millrace.HandlerOptions{Timeout: time.Minute})
	fake := millracetest.NewFake(w)
	enqueue := func(o millrace.EnqueueOptions) {
		_, err := fake.Enqueue(t.Context(), welcomeArgs{"ann"}, &o)
		require.NoError(t, err)
	}
	enqueue(millrace.EnqueueOptions{Timeout: 10 * time.Millisecond})
	require.ErrorContains(t, fake.Drain(t.Context()), "ran longer than 0.01 s")
	<-started
	fake.Clear()

	enqueue(millrace.EnqueueOptions{})
	ended := make(chan error)
	go func() { ended <- fake.Drain(context.Background()) }()
	require.True(t, fake.Cancel(<-started))
	require.NoError(t, <-ended, "a job that was cancelled is dropped")
	require.Empty(t, fake.Retries())
	require.False(t, fake.Cancel("unknown"))

	enqueue(millrace.EnqueueOptions{JID: "back"})
	w.Stop()
	require.NoError(t, fake.Drain(t.Context()))
	require.Equal(t, "back", fake.Jobs()[0].JID, "it is in its queue again")
	<-started
	_, err := millracetest.NewInline(w).Enqueue(t.Context(), welcomeArgs{"ann"}, nil)
	require.ErrorIs(t, err, millrace.ErrHandBack)
}

func TestFake(t *testing.T) {
	t.Parallel()
	var seen []string
	w := newWorker()
	w.Use(func(next millrace.Handler) millrace.Handler {
		return func(ctx context.Context, job *millrace.RawJob) error {
			seen = append(seen, "through "+job.Queue)
			return next(ctx, job)
		}
	})
	fake := millracetest.NewFake(w)
	w.Handle("Welcome", millrace.Func2(func(ctx context.Context, address string, n int) error {
		seen = append(seen, address)
		_, err := fake.EnqueueBulk(ctx, []millrace.EnqueueParams{{Args: millrace.Args("Count")}})
		return err
	}), nil)

	w.Handle("Count", millrace.Func0(func(context.Context) error { panic("too much") }), nil)
	require.NoError(t, signUp(t.Context(), fake, "ann@example.com"))
	require.Len(t, fake.Jobs(), 2)
	require.Equal(t, "mail", fake.Jobs("Welcome")[0].Queue)
	require.WithinDuration(t, time.Now().Add(time.Hour), fake.Jobs("Remind")[0].At, time.Minute)
	err := fake.Drain(t.Context())
	require.ErrorContains(t, err, ", attempt 1: panic: too much")
	require.ErrorContains(t, err, ", attempt 1: no handler for class Remind")
	require.Equal(t, []string{"through mail", "ann@example.com", "through default"}, seen)

	_, err = fake.Enqueue(t.Context(), millrace.Args(""), nil)
	require.ErrorIs(t, err, millrace.ErrInvalid)
	_, err = fake.Enqueue(t.Context(), millrace.Args("Later"), nil)
	require.NoError(t, err)
	fake.Clear()
	require.Empty(t, fake.Jobs())
}

func TestInline(t *testing.T) {
	t.Parallel()
	w := newWorker()
	w.Handle("Discard", millrace.Func0(func(context.Context) error { return millrace.Discard("why not") }), nil)
	w.Handle("Welcome", millrace.Func3(func(_ context.Context, a string, b []int, c map[string]string) error {
		require.Equal(t, "a", a)
		require.Equal(t, []int{1, 2}, b)
		require.Equal(t, map[string]string{"k": "v"}, c)
		return errors.New("failed")
	}), nil)

	inline := millracetest.NewInline(w)
	_, err := inline.Enqueue(t.Context(), millrace.Args("Welcome", "a", []int{1, 2}, map[string]string{"k": "v"}), nil)
	require.EqualError(t, err, "failed")
	_, err = inline.Enqueue(t.Context(), millrace.Args("Discard"), nil)
	require.NoError(t, err, "it has ended well")
	_, err = inline.Enqueue(t.Context(), millrace.Args("Welcome", "a"), nil)
	require.ErrorContains(t, err, "takes 3 args, the job has 1")
	_, err = inline.Enqueue(t.Context(), millrace.Args("Welcome", "a", "b", "c"), nil)
	require.ErrorContains(t, err, "arg 2 of Welcome")
}

func TestFakesKeepPeriodicJobs(t *testing.T) {
	for _, f := range []interface {
		millrace.Definer
		Periodic(source string) []millrace.PeriodicJob
	}{millracetest.NewFake(nil), millracetest.NewInline(nil)} {
		a, b := millrace.PeriodicJob{Name: "a", Every: time.Minute, Args: millrace.Args("A")}, millrace.PeriodicJob{Name: "b", Cron: "@daily", Args: millrace.Args("B")}
		did, err := f.Define(t.Context(), "app", a, b)
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b"}, did.Made)
		require.Equal(t, []millrace.PeriodicJob{a, b}, f.Periodic("app"))
		changed := a
		changed.Paused = true
		did, err = f.Define(t.Context(), "app", changed)
		require.NoError(t, err)
		require.Equal(t, millrace.Defined{Made: []string{}, Changed: []string{"a"}, Forgotten: []string{"b"}}, did)
		_, err = f.Define(t.Context(), "app", millrace.PeriodicJob{Name: "c"})
		require.ErrorIs(t, err, millrace.ErrInvalid)
		require.Equal(t, []millrace.PeriodicJob{changed}, f.Periodic("app"))
		require.Empty(t, f.Periodic("other"))
	}
}

func TestFakesKeepLimits(t *testing.T) {
	for _, f := range []interface {
		millrace.Definer
		Limits(source string) []millrace.Limit
		Periodic(source string) []millrace.PeriodicJob
	}{millracetest.NewFake(nil), millracetest.NewInline(nil)} {
		a, b := millrace.Limit{Name: "a", Concurrency: 1}, millrace.Limit{Name: "b", Rate: &millrace.Rate{Jobs: 1, In: time.Minute}}
		did, err := f.DefineLimits(t.Context(), "app", a, b)
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b"}, did.Made)
		changed := millrace.Limit{Name: "a", Concurrency: 2}
		did, err = f.DefineLimits(t.Context(), "app", changed)
		require.NoError(t, err)
		require.Equal(t, millrace.Defined{Made: []string{}, Changed: []string{"a"}, Forgotten: []string{"b"}}, did)
		_, err = f.DefineLimits(t.Context(), "app", millrace.Limit{Name: "c", Rate: &millrace.Rate{Jobs: 1, In: time.Minute}, Overrides: map[string]millrace.Bound{"k": {Concurrency: 3}}})
		require.NoError(t, err)
		require.Equal(t, "c", f.Limits("app")[0].Name)
		require.Empty(t, f.Limits("other"))
		require.Empty(t, f.Periodic("app"), "limits are no periodic jobs")
	}
}

func TestFakeKeepsUniqueJobs(t *testing.T) {
	w := newWorker()
	var during millrace.Decision
	var fake *millracetest.Fake
	fails := errors.New("fails")
	w.Handle("A", func(ctx context.Context, job *millrace.RawJob) error {
		if job.Attempt > 1 {
			return nil
		}
		var err error
		during, err = fake.EnqueueUnique(ctx, millrace.Args("A", 1), nil)
		return errors.Join(err, fails)
	}, nil)
	w.Handle("B", func(context.Context, *millrace.RawJob) error { return millrace.Kill("no") }, nil)
	fake = millracetest.NewFake(w)
	enqueue := func(options millrace.EnqueueOptions, args ...any) millrace.Decision {
		t.Helper()
		decision, err := fake.EnqueueUnique(t.Context(), millrace.Args("A", args...), &options)
		require.NoError(t, err)
		return decision
	}
	first := enqueue(millrace.EnqueueOptions{}, 1)
	require.False(t, first.Duplicate)
	require.Equal(t, millrace.Decision{JID: first.JID, Duplicate: true}, enqueue(millrace.EnqueueOptions{}, 1))
	require.False(t, enqueue(millrace.EnqueueOptions{Queue: "other"}, 1).Duplicate)
	require.Len(t, fake.Jobs(), 2)
	require.ErrorIs(t, fake.Drain(t.Context()), fails)
	require.Equal(t, millrace.Decision{JID: first.JID, Duplicate: true}, during, "it runs")
	require.True(t, enqueue(millrace.EnqueueOptions{}, 1).Duplicate, "it waits for a retry")
	require.NoError(t, fake.Retry(t.Context()))
	require.False(t, enqueue(millrace.EnqueueOptions{}, 1).Duplicate, "it has ended")
	fake.Clear()
	require.False(t, enqueue(millrace.EnqueueOptions{}, 1).Duplicate, "nothing is left")

	at := time.Unix(2000000000, 0)
	older := enqueue(millrace.EnqueueOptions{ScheduledAt: at, Unique: &millrace.Unique{By: []string{"args.0.n"}}}, map[string]int{"n": 1, "x": 1})
	newer := enqueue(millrace.EnqueueOptions{Unique: &millrace.Unique{By: []string{"args.0.n"}, On: millrace.ReplaceWaiting}}, map[string]int{"n": 1, "x": 2})
	require.False(t, newer.Duplicate)
	require.NotEqual(t, older.JID, newer.JID)
	require.Equal(t, `[{"n":1,"x":2}]`, string(fake.Jobs()[1].Args))
	fake.Clear()

	scheduled := enqueue(millrace.EnqueueOptions{ScheduledAt: at}, 3)
	require.True(t, fake.Jobs()[0].At.Equal(at))
	require.Equal(t, scheduled.JID, fake.Jobs()[0].JID)
	fake.Clear()

	for _, options := range []millrace.EnqueueOptions{{Unique: &millrace.Unique{Key: "k", For: time.Hour}}, {Unique: &millrace.Unique{Key: "dead"}}} {
		_, err := fake.Enqueue(t.Context(), millrace.Args("B"), &options)
		require.NoError(t, err)
	}
	require.Error(t, fake.Drain(t.Context()))
	require.True(t, enqueue(millrace.EnqueueOptions{Unique: &millrace.Unique{Key: "k"}}).Duplicate, "for an hour")
	require.False(t, enqueue(millrace.EnqueueOptions{Unique: &millrace.Unique{Key: "dead"}}).Duplicate, "a dead job has no key")
}

func TestUniqueJobsWhileWaiting(t *testing.T) {
	w := newWorker()
	waiting := &millrace.EnqueueOptions{Unique: &millrace.Unique{While: millrace.WhileWaiting}}
	var during []millrace.Decision
	var jobs millrace.Enqueuer
	w.Handle("A", func(ctx context.Context, job *millrace.RawJob) error {
		if len(during) > 0 {
			return nil
		}
		during = append(during, millrace.Decision{})
		decision, err := jobs.EnqueueUnique(ctx, millrace.Args("A"), waiting)
		during = append(during, decision)
		return err
	}, nil)
	for _, jobs = range []millrace.Enqueuer{millracetest.NewFake(w), millracetest.NewInline(w)} {
		during = nil
		_, err := jobs.Enqueue(t.Context(), millrace.Args("A"), waiting)
		require.NoError(t, err)
		if fake, is := jobs.(*millracetest.Fake); is {
			require.NoError(t, fake.Drain(t.Context()))
		}
		require.Len(t, during, 2)
		require.False(t, during[1].Duplicate, "%T: the first one runs", jobs)
	}
	decision, err := jobs.EnqueueUnique(t.Context(), millrace.Args("A"), nil)
	require.NoError(t, err)
	require.False(t, decision.Duplicate)
}
