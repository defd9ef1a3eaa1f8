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
}
