package millrace

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// A handler that would replace another one, or would never be called, is refused when it is
// registered.
func TestInvalidRegistrations(t *testing.T) {
	w := NewWorker(WorkerConfig{URL: "amqp://localhost"})
	good := func(context.Context, *RawJob) error { return nil }
	typed := func(context.Context, *Job[sendEmailArgs]) error { return nil }
	w.Handle("Mail", good, nil)
	Handle(w, typed, nil)
	require.PanicsWithValue(t, "millrace: Handle: class Mail has a handler already", func() { w.Handle("Mail", good, nil) })
	require.PanicsWithValue(t, "millrace: Handle: class SendEmail has a handler already", func() { Handle(w, typed, nil) })
	require.PanicsWithValue(t, "millrace: Handle: the class is empty", func() { w.Handle("", good, nil) })
	require.PanicsWithValue(t, "millrace: Handle: the handler of Nil is nil", func() { w.Handle("Nil", nil, nil) })
	require.PanicsWithValue(t, "millrace: HandleOthers: the handler is nil", func() { w.HandleOthers(nil, nil) })
	w.HandleOthers(good, nil)
	require.PanicsWithValue(t, "millrace: HandleOthers was called before", func() { w.HandleOthers(good, nil) })
}

// The handler for other classes gets the jobs for which no handler is registered, with the
// middleware around it.
func TestHandleOthers(t *testing.T) {
	w := NewWorker(WorkerConfig{URL: "amqp://localhost"})
	var ran []string
	note := func(name string) Handler {
		return func(_ context.Context, job *RawJob) error {
			ran = append(ran, name+" "+job.Class)
			return nil
		}
	}
	w.Handle("Mail", note("its own"), nil)
	w.HandleOthers(note("others"), nil)
	w.Use(func(next Handler) Handler {
		return func(ctx context.Context, job *RawJob) error {
			ran = append(ran, "middleware")
			return next(ctx, job)
		}
	})
	for _, class := range []string{"Mail", "Report"} {
		require.NoError(t, w.Perform(t.Context(), []byte(`{"class":"`+class+`","args":[]}`), "mails").Err)
	}
	require.Equal(t, []string{"middleware", "its own Mail", "middleware", "others Report"}, ran)
}
