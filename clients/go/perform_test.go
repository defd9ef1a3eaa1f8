package millrace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The args of a job become the parameters of its function. A job with other args fails, and the
// function does not run.
func TestArgsBecomeParameters(t *testing.T) {
	w := NewWorker(WorkerConfig{URL: "amqp://localhost"})
	got := map[string]string{}
	w.Handle("None", Func0(func(context.Context) error { got["None"] = "ran"; return nil }), nil)
	w.Handle("One", Func1(func(_ context.Context, a string) error { got["One"] = a; return nil }), nil)
	w.Handle("Two", Func2(func(_ context.Context, a int, b []string) error { got["Two"] = fmt.Sprint(a, b); return nil }), nil)
	w.Handle("Three", Func3(func(_ context.Context, a struct{ Name string }, b *bool, c any) error {
		got["Three"] = fmt.Sprintf("%s %t %v", a.Name, *b, c)
		return nil
	}), nil)

	perform := func(class, args string) error {
		return w.Perform(t.Context(), fmt.Appendf(nil, `{"class":%q,"args":%s}`, class, args), "q").Err
	}
	for _, wrong := range []struct{ class, args, says string }{
		{"None", `[1]`, "takes 0 args, the job has 1"},
		{"One", `[]`, "takes 1 arg, the job has 0"},
		{"One", `[["a"]]`, "arg 1 of One"},
		{"Two", `[1,"b"]`, "arg 2 of Two"},
		{"Two", `{"a":1}`, "args of Two"},
		{"Three", `[1,2]`, "takes 3 args, the job has 2"},
	} {
		require.ErrorContains(t, perform(wrong.class, wrong.args), wrong.says)
	}
	require.Empty(t, got)
	require.NoError(t, perform("None", `[]`))
	require.NoError(t, perform("One", `["ann"]`))
	require.NoError(t, perform("Two", `[7,["a","b"]]`))
	require.NoError(t, perform("Three", `[{"Name":"ann"},true,12345678901234567890]`))
	require.Equal(t, map[string]string{"None": "ran", "One": "ann", "Two": "7 [a b]", "Three": "ann true 12345678901234567890"}, got)
}

// Perform takes a job through everything except the broker: the bytes that a client makes, the
// middleware in its order, the handler, and the outcome of a panic.
func TestPerform(t *testing.T) {
	w := NewWorker(WorkerConfig{URL: "amqp://localhost"})
	var order []string
	for _, name := range []string{"outer", "inner"} {
		w.Use(func(next Handler) Handler {
			return func(ctx context.Context, job *RawJob) error {
				order = append(order, name)
				return next(ctx, job)
			}
		})
	}
	w.Handle("Mail", func(ctx context.Context, job *RawJob) error {
		order = append(order, fmt.Sprintf("%s %t %d", job.Queue, JobFrom(ctx) == job, job.Priority))
		select {
		case <-job.Stopping():
			order = append(order, "stopping")
		default:
		}
		return nil
	}, nil)

	w.Handle("Panic", func(context.Context, *RawJob) error { panic("help") }, nil)

	jid, body, err := EnqueueParams{Args: Args("Mail"), Options: EnqueueOptions{Priority: 3}}.Message(time.Now())
	require.NoError(t, err)
	require.Contains(t, string(body), jid)
	require.Equal(t, Outcome{Status: StatusSuccess}, w.Perform(t.Context(), body, "mails"))
	require.Equal(t, []string{"outer", "inner", "mails true 3"}, order)
	w.Stop()
	require.Equal(t, Outcome{Status: StatusSuccess}, w.Perform(t.Context(), body, "mails"))
	require.Equal(t, "stopping", order[len(order)-1])

	require.EqualError(t, w.Perform(t.Context(), []byte(`{"class":"Panic"}`), "q").Err, "panic: help")
	require.EqualError(t, w.Perform(t.Context(), []byte(`{"class":"Unhandled"}`), "q").Err, "no handler for class Unhandled")
	require.Equal(t, Outcome{Status: StatusRejected, Err: errNotUTF8}, w.Perform(t.Context(), []byte("\xff"), "q"))
	require.Error(t, w.Perform(t.Context(), []byte(`{}`), "q").Err, "a job has a class")
	_, _, err = EnqueueParams{}.Message(time.Now())
	require.ErrorIs(t, err, ErrInvalid)
}

// Perform ends an attempt with the same outcomes as Run, and calls the same hooks.
func TestOutcomesOfPerform(t *testing.T) {
	w := NewWorker(WorkerConfig{URL: "amqp://localhost", Logger: slog.New(slog.DiscardHandler)})
	var hooks []string
	w.On(Hooks{
		Failure: func(job *RawJob, err error) { hooks = append(hooks, fmt.Sprintf("failure %d %v", job.Attempt, err)) },
		Death:   func(job *RawJob, err error) { hooks = append(hooks, fmt.Sprintf("death %d %v", job.Attempt, err)) },
	})
	broken := errors.New("it broke")
	returns := func(err error) Handler { return func(context.Context, *RawJob) error { return err } }
	w.Handle("Fail", returns(broken), &HandlerOptions{RetryIn: func(count int, _ error, _ *RawJob) time.Duration { return time.Duration(count+1) * time.Hour }})
	w.Handle("Kill", returns(KillWith(broken)), nil)
	w.Handle("Discard", returns(Discard("late")), nil)
	w.Handle("HandBack", returns(ErrHandBack), nil)
	w.Handle("Goexit", func(context.Context, *RawJob) error { runtime.Goexit(); return nil }, nil)
	w.Handle("Wait", func(ctx context.Context, _ *RawJob) error { <-ctx.Done(); return ctx.Err() }, &HandlerOptions{Timeout: 10 * time.Millisecond})
	perform := func(ctx context.Context, job string) Outcome {
		hooks = nil
		return w.Perform(ctx, []byte(job), "q")
	}

	o := perform(t.Context(), `{"class":"Fail","retry_count":2}`)
	require.Equal(t, StatusFailed, o.Status)
	require.Equal(t, broken, o.Err)
	require.WithinDuration(t, time.Now().Add(3*time.Hour), o.RetryAt, time.Minute)
	require.Equal(t, []string{"failure 3 it broke"}, hooks)
	require.Equal(t, Outcome{Status: StatusDead, Err: broken}, perform(t.Context(), `{"class":"Fail","retry_count":2,"retry":2}`))
	require.Equal(t, []string{"failure 3 it broke", "death 3 it broke"}, hooks)
	require.Equal(t, Outcome{Status: StatusDiscarded, Err: broken}, perform(t.Context(), `{"class":"Fail","retry":0,"dead":false}`))
	require.Equal(t, []string{"failure 1 it broke", "death 1 it broke"}, hooks)
	require.Equal(t, Outcome{Status: StatusDead, Err: broken}, perform(t.Context(), `{"class":"Kill"}`))
	require.Equal(t, []string{"failure 1 it broke", "death 1 it broke"}, hooks)

	require.Equal(t, Outcome{Status: StatusDiscarded}, perform(t.Context(), `{"class":"Discard"}`))
	require.Empty(t, hooks)
	o = perform(t.Context(), `{"class":"Fail","expires_at":1}`)
	require.Equal(t, StatusExpired, o.Status)
	require.EqualError(t, o.Err, "expired before it began")
	require.Empty(t, hooks)
	require.EqualError(t, perform(t.Context(), `{"class":"Goexit"}`).Err, "the function ended its goroutine")
	require.EqualError(t, perform(t.Context(), `{"class":"Wait"}`).Err, "ran longer than 0.01 s")
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(ErrCancelled)
	require.Equal(t, Outcome{Status: StatusDiscarded}, perform(cancelled, `{"class":"Wait"}`))
	require.Equal(t, StatusFailed, perform(t.Context(), `{"class":"HandBack"}`).Status)
	w.Stop()
	require.Equal(t, Outcome{Status: StatusHandedBack}, perform(t.Context(), `{"class":"HandBack"}`))
}
