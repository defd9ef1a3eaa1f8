package millracetest_test

import (
	"context"
	"errors"
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

func TestFake(t *testing.T) {
	t.Parallel()
	var seen []string
	w := millrace.NewWorker(millrace.WorkerConfig{URL: "amqp://localhost"})
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
	require.ErrorContains(t, err, "Count: panic: too much")
	require.ErrorContains(t, err, "Remind: no handler for class Remind")
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
	w := millrace.NewWorker(millrace.WorkerConfig{URL: "amqp://localhost"})
	w.Handle("Welcome", millrace.Func3(func(_ context.Context, a string, b []int, c map[string]string) error {
		require.Equal(t, "a", a)
		require.Equal(t, []int{1, 2}, b)
		require.Equal(t, map[string]string{"k": "v"}, c)
		return errors.New("failed")
	}), nil)

	inline := millracetest.NewInline(w)
	_, err := inline.Enqueue(t.Context(), millrace.Args("Welcome", "a", []int{1, 2}, map[string]string{"k": "v"}), nil)
	require.EqualError(t, err, "failed")
	_, err = inline.Enqueue(t.Context(), millrace.Args("Welcome", "a"), nil)
	require.ErrorContains(t, err, "takes 3 args, the job has 1")
	_, err = inline.Enqueue(t.Context(), millrace.Args("Welcome", "a", "b", "c"), nil)
	require.ErrorContains(t, err, "arg 2 of Welcome")
}
