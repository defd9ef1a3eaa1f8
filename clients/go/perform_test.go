package millrace

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A job's args become the variables of its function; a job with others fails, and its function does not run.
func TestArgsOfFunctions(t *testing.T) {
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
		return w.Perform(t.Context(), fmt.Appendf(nil, `{"class":%q,"args":%s}`, class, args), "q")
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

// Without a broker a job goes through all that it would go through with one: the bytes that a client makes, the middleware in its order,
// the handler, and what becomes of a panic.
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
	require.NoError(t, w.Perform(t.Context(), body, "mails"))
	require.Equal(t, []string{"outer", "inner", "mails true 3"}, order)
	w.Stop()
	require.NoError(t, w.Perform(t.Context(), body, "mails"))
	require.Equal(t, "stopping", order[len(order)-1])

	require.EqualError(t, w.Perform(t.Context(), []byte(`{"class":"Panic"}`), "q"), "panic: help")
	require.EqualError(t, w.Perform(t.Context(), []byte(`{"class":"Nobody"}`), "q"), "no handler for class Nobody")
	require.ErrorIs(t, w.Perform(t.Context(), []byte("\xff"), "q"), errNotUTF8)
	require.Error(t, w.Perform(t.Context(), []byte(`{}`), "q"), "a job has a class")
	_, _, err = EnqueueParams{}.Message(time.Now())
	require.ErrorIs(t, err, ErrInvalid)
}
